package redlatch

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/handoff"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/request"
)

// An exchange is one request of a permitLine: what is in hand goes back to
// Redis, and the first in line ask for theirs.
//
// There is one at a time, and nobody waits for it but the worker: a caller that
// leaves cuts nothing short. What was granted to somebody who has left meanwhile
// is in hand, for the next one in line or for the next exchange.
type exchange struct {
	give      int
	doubted   bool // what it gives is not to be handed out should it fail
	wants     []int
	turn      string       // whether others go first: see the script
	releasers []chan error // whose permits these are
	foreign   int          // messages heard before
}

// mostWants is for how many callers one exchange asks.
const mostWants = 64

// work does exchanges for as long as there is anything to do.
func (ln *permitLine) work() {
	defer ln.c.permitLines.put(ln)
	for {
		x, pause := ln.next()
		switch {
		case x != nil:
			ln.send(x)
		case pause > 0:
			ln.listen()
			ln.sleep(pause)
		default:
			return
		}
	}
}

// next returns the next exchange, or how long there is nothing to do; if that is
// 0 the work is over.
func (ln *permitLine) next() (*exchange, time.Duration) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	now := time.Now()
	open := ln.c.open() == nil
	owes := ln.owes(now)
	for owes && ln.first != nil && ln.first.once {
		ln.refuse(ln.first, handoff.Owed(ln.turns.Owed))
	}
	if ln.hand == 0 && (ln.first == nil || !open) {
		ln.working = false
		return nil, 0
	}
	if !now.Before(ln.poll) {
		ln.heard = true
	}
	ask := open && !owes && (ln.curious() || (ln.first != nil && ln.hand > 0))
	if ln.hand == 0 && !ask {
		until := ln.poll
		if owes {
			until = ln.turns.Rest
		}
		return nil, max(until.Sub(now), 1)
	}
	x := &exchange{give: ln.hand, doubted: ln.doubted, turn: "0", releasers: ln.releasers, foreign: ln.news.Foreign()}
	if ln.first != nil && ln.hand >= ln.first.n && ln.turns.Yields(now) {
		// What could have been handed out is there because a quantum is over. Who
		// releases meanwhile goes on with the next one.
		x.turn = "1"
		if ln.turns.Last(now) {
			x.turn = "2"
		}
		ln.turns.Begin(now, false)
	}
	ln.hand, ln.releasers, ln.doubted = 0, nil, false
	if ask {
		for w := ln.first; w != nil && len(x.wants) < mostWants; w = w.next {
			w.asked, w.place = true, len(x.wants)
			x.wants = append(x.wants, w.n)
		}
		ln.heard = false
	}
	if ln.silent.IsZero() {
		ln.silent = now
	}
	return x, 0
}

// send does an exchange.
func (ln *permitLine) send(x *exchange) {
	args := []string{ln.channel, strconv.Itoa(x.give), x.turn, ln.c.server.Own(&ln.news, ln.channel)}
	for _, n := range x.wants {
		args = append(args, strconv.Itoa(n))
	}
	o := ln.session.Call(lua.SemaphoreExchange, ln.keys, args)
	o.Acks = ln.c.server.Acks.Holds
	o.Retried = func() {
		ln.mu.Lock()
		defer ln.mu.Unlock()
		ln.cause = o.Failed
	}
	if x.give > 0 {
		ln.news.Expect()
	}
	var answer int64
	var err error
	ln.session.Deliver(&o, false, func(a int64, e error) { answer, err = a, e })
	if answer > int64(len(x.wants)) || answer < -maxPermits {
		err = fmt.Errorf("redlatch: semaphore %q: %s answered %d to %d callers", ln.name, o.Script.Name(), answer, len(x.wants))
	}
	if x.give > 0 {
		ln.news.Answered(err == nil)
	}
	if err != nil {
		ln.failed(x, err)
		return
	}
	short := o.Doubt(answer > 0)
	if x.give > 0 && (answer <= 0 || short != nil) {
		o.Unacked() // what was given back counts
	}
	if ln.answered(x, int(answer), short) {
		ln.listen()
	}
}

// listen starts the line's subscription, if it has none.
func (ln *permitLine) listen() {
	if ln.c.open() != nil {
		return
	}
	ln.news.Start(func(h func(confirmed bool)) func() {
		return ln.c.server.Subscribe(ln.channel, func(n driver.Notice) {
			h(n.Subscribed)
			if n.Subscribed {
				ln.look()
			}
		}, ln.look)
	}, ln.look)
}

// look notes that Redis may have permits.
func (ln *permitLine) look() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.heard = true
	ln.turns.Used(ln.news.Foreign())
	ln.stir()
}

// answered notes what became of an exchange, and says whether there is anything
// to listen for.
func (ln *permitLine) answered(x *exchange, answer int, short error) (listen bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	now := time.Now()
	ln.silent, ln.cause = time.Time{}, nil
	ln.tell(x.releasers, nil)
	if len(x.wants) > 0 {
		ln.poll = soon(now)
	}
	switch {
	case answer < 0: // others go first
		if x.turn == "2" && answer == -1 {
			answer = 0 // whoever they are
		}
		ln.turns.Yield(-answer, x.foreign, now)
		ln.turns.Begin(now, true) // for what we still have
		ln.fresh = true
		ln.c.permitLines.keep(ln)
		ln.heard = true
		ln.refused = math.MaxInt
		for ln.first != nil && ln.first.once && ln.first.asked {
			ln.refuse(ln.first, handoff.Owed(ln.turns.Owed))
		}
		return ln.first != nil
	case len(x.wants) == 0:
		ln.heard = true // what we gave
		ln.turns.Free()
		if ln.c.blind.Yields(ln.channel, now.Add(-handoff.Keep), now) {
			ln.turns.Yield(0, x.foreign, now)
			ln.c.permitLines.keep(ln)
		}
		return false
	}
	for _, n := range x.wants[:answer] {
		ln.hand += n
	}
	if short != nil {
		ln.doubted = true // what is in hand goes back before anybody gets it
		for w := ln.first; w != nil && w.asked && w.place < answer; w = ln.first {
			ln.remove(w)
			w.told <- short
		}
		return false // there is something to send at once
	}
	if answer > 0 && ln.turns.Owed > 0 {
		ln.turns.Settled(ln.news.Foreign(), now)
	}
	if answer > 0 && ln.fresh {
		ln.turns.Begin(now, true)
		ln.fresh = false
	}
	ln.refused = math.MaxInt
	ln.serve(now, true)
	if answer < len(x.wants) {
		ln.refused = x.wants[answer]
		for w := ln.first; w != nil && w.once && w.asked && w.n >= ln.refused; w = ln.first {
			ln.refuse(w, request.ErrWaitOver)
		}
	}
	return answer < len(x.wants) && ln.first != nil
}

// failed notes that an exchange was not done, or that nobody will know.
func (ln *permitLine) failed(x *exchange, err error) {
	if ln.lost(x, err) {
		ln.c.report.releaseFailed(ln.name, "", err)
	}
}

// lost does what failed says, and says whether permits were to be given back that
// nobody is told of.
func (ln *permitLine) lost(x *exchange, err error) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	forgotten := errors.Is(err, request.ErrForgotten)
	if errors.Is(err, ErrUnavailable) && !forgotten && ln.c.open() == nil {
		// Not done, and not refused: it will be tried again for as long as
		// anybody wants something. Callers lose patience by themselves.
		ln.cause = err
		ln.hand += x.give
		ln.doubted = ln.doubted || x.doubted
		ln.releasers = append(x.releasers, ln.releasers...)
		ln.heard = true
		return false
	}
	ln.silent, ln.cause = time.Time{}, nil
	ln.tell(x.releasers, err)
	if forgotten {
		// What was given may be there, and is not given again. Who wants something
		// does not have it, and asks once more.
		ln.heard = true
		return true
	}
	ln.fail(err)
	return x.give > 0 && len(x.releasers) == 0
}

// refuse tells a caller that only tries that its permits are not there.
func (ln *permitLine) refuse(w *permitWaiter, why error) {
	ln.remove(w)
	w.told <- why
}
