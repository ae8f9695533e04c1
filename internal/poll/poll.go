package poll

import (
	"context"
	"math"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/queue"
	"github.com/redlatch/redlatch/internal/request"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/waitq"
)

// A poll is what callers share that wait for the same thing.
type poll struct {
	waitq.Queue[Question]

	ps      *Polls
	key     string
	about   claim.Claim
	channel string
	news    notify.Listener
}

// Polls are what the callers of a client wait for, by its keys.
type Polls struct {
	server *request.Server
	all    queue.Registry[string, *poll]
}

// A Question is what is asked for all that wait.
type Question struct {
	Script     *script.Script
	Keys, Args []string
	// Read says whether an answer ends the waiting, and with what.
	Read func(driver.Reply) (over bool, err error)
	// About has the name and the kind of what is waited for, and the site and the
	// owner id of the caller.
	About claim.Claim
}

// New returns the polls of a client whose requests go to server.
func New(server *request.Server) *Polls { return &Polls{server: server} }

// joinPause is how long the worker waits for more callers, to ask for all of them
// at once.
const joinPause = 5 * time.Millisecond

// Wait waits until the answer to q ends the waiting. q is the same for all that
// wait under the same key.
func (ps *Polls) Wait(ctx context.Context, key, channel string, q Question) error {
	if ps.server.Closed() {
		return request.ErrClosed
	}
	if ctx.Err() != nil {
		return request.ContextError(ctx)
	}
	w := &waitq.Waiter[Question]{Want: q, Wait: claim.Wait{Ctx: ctx, Since: time.Now(), Site: q.About.Site, Owner: q.About.Owner}}
	p := ps.all.Get(key, func() *poll {
		p := &poll{ps: ps, key: key, about: claim.Claim{Name: q.About.Name, Kind: q.About.Kind}, channel: channel}
		p.Start(ps.server, q.Keys, p.work)
		return p
	})
	defer p.put()
	p.Lock()
	works := p.JoinLocked(w, func() { ps.all.Retain(p) })
	p.Unlock()
	if works {
		p.Nudge()
	}
	err := p.Await(w, func(why error) error { return why })
	return request.During(ps.server.NoAnswer(q.Keys[0], &p.Refusals), err)
}

func (p *poll) put() {
	if p.ps.all.Put(p.key, p, nil) {
		p.news.Stop()
	}
}

// work asks for as long as anybody waits.
func (p *poll) work() {
	defer p.put()
	srv := p.ps.server
	for {
		batch := p.Batch(math.MaxInt)
		if len(batch) == 0 {
			return
		}
		q, ctx := batch[0].Want, p.While(batch[0])
		call := request.Call{Server: srv, Script: q.Script, Keys: q.Keys, Args: q.Args, Lease: srv.Length, Stop: ctx.Done(), Refusals: &p.Refusals}
		reply, err := call.Run(context.WithoutCancel(ctx))
		over := false
		switch {
		case err == nil:
			over, err = q.Read(reply)
		case request.Outlasted(err): // each of them sees that for itself
			continue
		}
		if over || err != nil {
			p.Lock()
			for _, w := range batch {
				p.TellLocked(w, err)
			}
			p.Unlock()
			continue
		}
		srv.Listen(&p.news, p.channel, nil, nil)
		p.sleep(batch[len(batch)-1].Nth)
	}
}

// sleep waits until it is time to ask again; asked is the last one that was asked
// for.
func (p *poll) sleep(asked int) {
	if !p.cameAfter(asked) {
		p.Sleep(request.Jittered(min(request.LongestPause, p.ps.server.Length/3)), p.news.Wake())
	}
	if p.cameAfter(asked) {
		p.Sleep(joinPause, p.news.Wake())
	}
}

// cameAfter says whether anybody has come since that one.
func (p *poll) cameAfter(nth int) bool {
	p.Lock()
	defer p.Unlock()
	return p.Came > nth
}

// Claims tells what callers of this client wait for, each as it is when it is
// looked at. No mutex is locked while yield runs.
func (ps *Polls) Claims(yield claim.Yield) {
	var list claim.List
	for _, p := range ps.all.All() {
		p.Queue.Claims(&list, func(*waitq.Waiter[Question]) claim.Claim { return p.about })
		if !list.Tell(yield) {
			return
		}
	}
}
