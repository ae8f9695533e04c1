package permit

import (
	"time"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/wire"
)

// renew raises the times of a batch of permits with one script, each with a result
// of its own.
func (all *Semaphores) renew(batch []*renew.Lease) {
	keys := make([]string, len(batch))
	args := make([]string, 0, 2*len(batch))
	bound, now := all.Server.Length, time.Now()
	prolongs := false
	for i, l := range batch {
		p := l.Holder.(*Permit) //nolint:forcetypeassert // this kind's holders are permits
		if l.Ask > 0 {
			prolongs = true
			bound = min(bound, 3*l.Left(now)) // there must be time for another attempt
		}
		keys[i] = p.sem.keys[1]
		args = append(args, p.id, all.leaseMs(l.Ask))
	}
	server := all.Server
	call := request.Call{
		Server: server, Script: lua.ExpirableRenew, Keys: keys, Args: args, Lease: bound,
		Acks: server.Acks.Renews && prolongs,
		Key:  batch[0].Holder.(*Permit).sem.Key, //nolint:forcetypeassert // as above
	}
	if call.Renew(batch) {
		request.AtATime(len(batch), func(i int) bool { all.renew(batch[i : i+1]); return true })
	}
}

// leaseMs returns what a permit's lease is written as. Redisson clients take a
// permit back when it is over by their own clock, which may be ahead of the
// server's by Options.Skew: so it is written so much later, and trusted
// for what was asked for. 0, which only asks, stays 0.
func (all *Semaphores) leaseMs(lease time.Duration) string {
	if lease > 0 {
		lease += all.Skew
	}
	return wire.Millis(lease)
}
