package demo

import (
	"context"
	"time"
)

// story is what happens to the workers. It returns when it has been told, or
// with ctx.
func (d *demo) story(ctx context.Context) error {
	pause(ctx, 2500*time.Millisecond)
	if err := d.crash(ctx); err != nil {
		return err
	}
	pause(ctx, 1500*time.Millisecond)
	return d.loss(ctx)
}

// holding makes a worker stay in its next section, and waits until its lease has
// been renewed, and the renewed one lasts.
func (d *demo) holding(ctx context.Context, p *process, title string) error {
	p.say(cmdStay)
	if err := d.board.await(ctx, func(rows []row) bool { return rows[p.id-1].staying }); err != nil {
		return err
	}
	d.board.say("%-6s worker %d holds the lock; the watchdog renews its lease", title, p.id)
	pause(ctx, d.Watchdog*9/20)
	return ctx.Err()
}

// nextAfter waits until a worker other than id has entered after t, and
// returns which and when.
func (d *demo) nextAfter(ctx context.Context, id int, t time.Time) (next row, err error) {
	err = d.board.await(ctx, func(rows []row) bool {
		next = row{}
		for _, r := range rows {
			if r.id != id && r.entered.After(t) && (next.id == 0 || r.entered.Before(next.entered)) {
				next = r
			}
		}
		return next.id != 0
	})
	return next, err
}

// crash kills a worker that holds the lock.
func (d *demo) crash(ctx context.Context) error {
	victim := d.processes[1]
	if err := d.holding(ctx, victim, "CRASH"); err != nil {
		return err
	}
	at := time.Now()
	victim.kill()
	left := d.server.TTL(lockName)
	d.board.update(victim.id, func(r *row) { r.enter(killed, at); r.staying = false })
	if err := d.recorder.write(at, victim.pid, victim.id, died); err != nil {
		return err
	}
	d.board.say("       kill -9 of worker %d (pid %d), the holder; %.2f s of its lease left", victim.id, victim.pid, left.Seconds())
	next, err := d.nextAfter(ctx, victim.id, at)
	if err != nil {
		return err
	}
	d.board.say("       the lock is back: worker %d has it %.2f s after the kill", next.id, next.entered.Sub(at).Seconds())
	victim.proxy.Close()
	p, err := d.startProcess(victim.id)
	if err != nil {
		return err
	}
	d.processes[1] = p
	d.board.say("       worker %d starts again (pid %d)", p.id, p.pid)
	return nil
}

// loss cuts off a worker that holds the lock.
func (d *demo) loss(ctx context.Context) error {
	victim := d.processes[0]
	if err := d.holding(ctx, victim, "LOSS"); err != nil {
		return err
	}
	cut := time.Now()
	victim.proxy.Blackhole(true)
	d.board.update(victim.id, func(r *row) { r.cutOff = true })
	d.board.say("       worker %d cut off: packets vanish, connections stay; it works on", victim.id)
	var told time.Time
	err := d.board.await(ctx, func(rows []row) bool {
		told = rows[victim.id-1].toldLost
		return told.After(cut)
	})
	if err != nil {
		return err
	}
	d.board.say("       told at %.3f s: worker %d's context ended (ErrLost), it left", told.Sub(d.board.start).Seconds(), victim.id)
	next, err := d.nextAfter(ctx, victim.id, cut)
	if err != nil {
		return err
	}
	given := next.entered
	d.board.say("       given away at %.3f s, %d ms later: worker %d has the lock",
		given.Sub(d.board.start).Seconds(), given.Sub(told).Milliseconds(), next.id)
	victim.say(cmdGo)
	victim.proxy.Blackhole(false)
	victim.proxy.BreakAll() // what has lost bytes cannot go on
	d.board.update(victim.id, func(r *row) { r.cutOff = false })
	d.board.say("       worker %d is connected again", victim.id)
	return nil
}
