package redlatchrueidis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

// RunBatch implements [driver.Batcher]. The requests go out in one piece for each
// node. Those whose scripts the server does not know go out once more, in another
// piece. Each request is judged by itself, as Run judges it.
//
// RunBatch takes no longer than a Run. If the connection is lost, the outcome
// of a request may be unknown although its answer had come.
func (d *Driver) RunBatch(requests []*driver.Request) {
	// What rueidis sends again by itself, and why that is safe here: after an error
	// only read-only commands, which scripts are not; after MOVED and ASK only the
	// requests that were answered so, hence not executed; after the end of a
	// ConnLifetime more, so New and Use do not allow one; after REDIRECT everything.
	ctx, release := d.bound(context.Background())
	defer release()
	client, err := d.commands.get(ctx)
	if err != nil {
		for _, r := range requests {
			r.Reply, r.Err = driver.Reply{}, d.creds.Judge(notExecuted(err))
		}
		return
	}
	cluster := client.Mode() == rueidis.ClientModeCluster
	if d.redirects || cluster && slices.ContainsFunc(requests, unfit) {
		d.runEach(ctx, client, requests)
		return
	}
	unknown, broken := d.send(ctx, client, bySHA, requests)
	if cluster && slices.ContainsFunc(requests, lacksNode) {
		// If one slot has no node rueidis sends nothing at all.
		var unsent []*driver.Request
		for _, r := range requests {
			if lacksNode(r) {
				unsent = append(unsent, r)
			}
		}
		d.runEach(ctx, client, unsent)
	}
	if len(unknown) > 0 {
		_, again := d.send(ctx, client, bySource, unknown)
		broken = cmp.Or(broken, again)
	}
	d.breaks.Sent(requests, broken)
}

// unfit says that with r among others rueidis would panic.
func unfit(r *driver.Request) bool { return len(r.Keys) == 0 || !sameSlot(r.Keys) }

// lacksNode says that r was not sent because there was no node for it, or for
// another one.
func lacksNode(r *driver.Request) bool { return errors.Is(r.Err, rueidis.ErrNoSlot) }

// runEach runs the requests one by one, at the same time.
func (d *Driver) runEach(ctx context.Context, client rueidis.Client, requests []*driver.Request) {
	var wg sync.WaitGroup
	for _, r := range requests {
		wg.Go(func() { r.Reply, r.Err = d.run(ctx, client, r.Script, r.Keys, r.Args) })
	}
	wg.Wait()
}

// buffers are slices of commands, for send.
var buffers sync.Pool

// send sends the requests and sets what became of them. Those sent bySHA whose
// script is unknown it returns instead, and one that met a break if there is one.
func (d *Driver) send(
	ctx context.Context, client rueidis.Client, f form, requests []*driver.Request,
) (unknown []*driver.Request, broken *driver.Request) {
	buf, ok := buffers.Get().(*[]rueidis.Completed)
	if !ok {
		buf = new([]rueidis.Completed)
	}
	cmds, b := (*buf)[:0], client.B()
	for _, r := range requests {
		cmds = append(cmds, command(b, r.Script, f, r.Keys, r.Args))
	}
	answered := true
	for i, res := range client.DoMulti(ctx, cmds...) {
		r := requests[i]
		answered = answered && res.NonRedisError() == nil
		r.Err = nil
		if f == bySHA && unknownScript(res) {
			unknown = append(unknown, r)
			continue
		}
		var re *driver.RunError
		if r.Reply, re = convert(res); re != nil {
			r.Err = d.creds.Judge(re)
			if adapter.IsBreak(re) {
				broken = r
			}
		}
	}
	// What was not answered may still be on its way: then the slice stays rueidis'.
	if answered {
		clear(cmds)
		*buf = cmds
		buffers.Put(buf)
	}
	return unknown, broken
}
