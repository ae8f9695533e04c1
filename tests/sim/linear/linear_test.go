package linear

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const s = time.Second

// op is a call of process 1.
func op(what string, from, to time.Duration, n int) Op {
	return Op{What: what, Process: 1, From: from, To: to, N: n}
}

func lost(what string, from time.Duration, n int) Op {
	return Op{What: what, Process: 1, From: from, To: from, N: n, Lost: true}
}

// held is one hold of an owner: asked for, had, and given up.
func held(who, weight int, token int64, asked, from, to time.Duration) []Op {
	return []Op{
		{What: Acquire, Process: who, Who: who, N: weight, Token: token, From: asked, To: from},
		{What: End, Process: who, Who: who, N: weight, From: to, To: to},
	}
}

// A model is only as good as what it refuses.
func TestTheModelsRefuse(t *testing.T) {
	both := slices.Concat[[]Op]
	later := func(what string, from time.Duration, n int) Op {
		o := lost(what, from, n)
		o.To = Forever
		return o
	}
	mute := func(from, to time.Duration) Op {
		return Op{What: Broken, Process: 1, From: from, To: to, Mute: true}
	}
	mayReset := func(from, to time.Duration) Op {
		return Op{What: Reset, Process: 1, From: from, To: to, Lost: true}
	}
	for _, test := range []struct {
		model, name string
		capacity    int
		ops         []Op
		want        string // where the order stops; nothing: that is right
	}{
		{"holds", "one after the other", 1, both(held(1, 1, 0, 0, s, 2*s), held(2, 1, 0, 0, 3*s, 4*s)), ""},
		{"holds", "one gives it up, and another one has it at that moment", 1, both(held(1, 1, 0, 0, s, 2*s), held(2, 1, 0, 0, 2*s, 4*s)), ""},
		{"holds", "two at a time", 1, both(held(1, 1, 0, 0, s, 3*s), held(2, 1, 0, 0, 2*s, 4*s)), "taken by 1:1*1, and process 2 acquires 1"},
		{"holds", "an owner again", 1, both(held(1, 1, 0, 0, s, 4*s), held(1, 1, 0, s, 2*s, 3*s)), ""},
		{"holds", "an owner has ended only one of two", 1, both(held(1, 1, 0, 0, s, 6*s), held(1, 1, 0, s, 2*s, 3*s), held(2, 1, 0, 0, 4*s, 5*s)), "process 2 acquires 1"},
		{"holds", "who ends what it does not have", 1, []Op{op(End, 0, s, 1)}, "free, and process 1 ends"},
		{"holds", "readers", 10, both(held(1, 1, 0, 0, s, 3*s), held(2, 1, 0, 0, s, 3*s)), ""},
		{"holds", "a writer beside a reader", 10, both(held(1, 1, 0, 0, s, 3*s), held(2, 10, 0, 0, 2*s, 3*s)), "process 2 acquires 10"},
		{"holds", "a reader that is the writer", 10, both(held(1, 10, 0, 0, s, 3*s), held(1, 1, 0, s, 2*s, 4*s)), ""},
		{"holds", "a reader that was the writer, and another writer", 10, both(held(1, 10, 0, 0, s, 3*s), held(1, 1, 0, s, 2*s, 6*s), held(2, 10, 0, 0, 4*s, 5*s)), "process 2 acquires 10"},
		{"holds", "as many permits as there are", 3, both(held(1, 2, 0, 0, s, 3*s), held(2, 1, 0, 0, 2*s, 3*s)), ""},
		{"holds", "more permits than there are", 3, both(held(1, 2, 0, 0, s, 3*s), held(2, 2, 0, 0, 2*s, 3*s)), "process 2 acquires 2"},
		{"holds", "tokens rise", 1, both(held(1, 1, 7, 0, s, 2*s), held(2, 1, 8, 0, 3*s, 4*s)), ""},
		{"holds", "tokens repeat", 1, both(held(1, 1, 7, 0, s, 2*s), held(2, 1, 7, 0, 3*s, 4*s)), "with the token 7"},
		{"holds", "tokens fall", 1, both(held(1, 1, 7, 0, s, 2*s), held(2, 1, 6, 0, 3*s, 4*s)), "with the token 6"},

		{"semaphore", "as many as there are", 3, []Op{op(Acquire, 0, s, 2), op(Acquire, s, 2*s, 1)}, ""},
		{"semaphore", "more than there are", 3, []Op{op(Acquire, 0, s, 2), op(Acquire, 2*s, 3*s, 2)}, "1 are free, and process 1 acquires 2"},
		{"semaphore", "what somebody gives back meanwhile", 3, []Op{op(Acquire, 0, s, 2), op(Acquire, 2*s, 5*s, 2), op(Release, 3*s, 4*s, 2)}, ""},
		{"semaphore", "what somebody gives back too late", 3, []Op{op(Acquire, 0, s, 2), op(Acquire, 2*s, 3*s, 2), op(Release, 4*s, 5*s, 2)}, "acquires 2"},
		{"semaphore", "it is not set up", 3, []Op{op(Look, 0, s, 0)}, ""},
		{"semaphore", "it finds what is free", 3, []Op{op(Acquire, 0, s, 2), op(Look, 2*s, 3*s, 1)}, ""},
		{"semaphore", "it finds more than is free", 3, []Op{op(Acquire, 0, s, 2), op(Look, 2*s, 3*s, 2)}, "finds free 2"},
		{"semaphore", "a permit is lost", 3, []Op{op(Acquire, 0, s, 2), op(Release, 2*s, 3*s, 2), op(Look, 4*s, 5*s, 2)}, "finds free 2"},
		{"semaphore", "a permit is perhaps on its way", 3, []Op{op(Acquire, 0, s, 2), lost(Release, 2*s, 2), op(Look, 4*s, 5*s, 2)}, ""},
		{"semaphore", "a permit that was on its way has come", 3, []Op{op(Acquire, 0, s, 2), lost(Release, 2*s, 2), op(Acquire, 4*s, 5*s, 3)}, ""},
		{"semaphore", "a request without an answer may have taken it", 3, []Op{op(Acquire, 0, s, 1), lost(Acquire, 2*s, 1), op(Look, 4*s, 5*s, 1)}, ""},
		{"semaphore", "a request without an answer takes no more than it wants", 3, []Op{op(Acquire, 0, s, 1), lost(Acquire, 2*s, 1), op(Look, 4*s, 5*s, 0)}, "1 to 2 are free, and process 1 finds free 0"},
		{"semaphore", "a request without an answer gives nothing", 3, []Op{op(Acquire, 0, s, 3), lost(Acquire, 2*s, 1), op(Look, 4*s, 5*s, 1)}, "finds free 1"},
		{"semaphore", "nothing is on its way, and a permit is lost", 3, []Op{op(Acquire, 0, s, 1), lost(Acquire, 2*s, 1), op(Settle, 3*s, 3*s, 0), op(Look, 4*s, 5*s, 1)}, "2 are free, and process 1 finds free 1"},
		{"semaphore", "it is refused, and there are too few", 3, []Op{op(Acquire, 0, s, 2), op(Refuse, 2*s, 3*s, 2)}, ""},
		{"semaphore", "it is refused, and there are enough", 3, []Op{op(Acquire, 0, s, 2), op(Refuse, 2*s, 3*s, 1)}, "is refused 1"},
		{"semaphore", "all are drained", 3, []Op{op(Acquire, 0, s, 1), op(Drain, 2*s, 3*s, 2), op(Release, 4*s, 5*s, 3), op(Acquire, 6*s, 7*s, 3)}, ""},
		{"semaphore", "more than all are drained", 3, []Op{op(Acquire, 0, s, 1), op(Drain, 2*s, 3*s, 3)}, "drains 3"},
		{"semaphore", "fewer than all are drained", 3, []Op{op(Acquire, 0, s, 1), op(Drain, 2*s, 3*s, 1)}, "drains 1"},
		{"semaphore", "what was drained is taken", 3, []Op{op(Acquire, 0, s, 1), op(Drain, 2*s, 3*s, 2), op(Acquire, 4*s, 5*s, 1)}, "acquires 1"},
		{"semaphore", "less than none is drained", 3, []Op{op(Acquire, 0, s, 3), op(Add, s+1, 2*s, -2), op(Drain, 3*s, 4*s, 0), op(Look, 5*s, 6*s, 0)}, ""},
		{"semaphore", "some are added", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, 1), op(Acquire, 4*s, 5*s, 1)}, ""},
		{"semaphore", "some are taken away", 3, []Op{op(Acquire, 0, s, 1), op(Add, 2*s, 3*s, -1), op(Acquire, 4*s, 5*s, 2)}, "acquires 2"},
		{"semaphore", "what was taken away is passed on", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, 1), op(Acquire, 4*s, 5*s, 1), op(Add, 6*s, 7*s, -1), lost(Release, 8*s, 1), op(Acquire, 9*s, 10*s, 1)}, ""},
		{"semaphore", "what was taken away is given back, and had", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, 1), op(Acquire, 4*s, 5*s, 1), op(Add, 6*s, 7*s, -1), op(Release, 8*s, 9*s, 1), op(Acquire, 9*s, 10*s, 1)}, "0 are free, and process 1 acquires 1"},
		{"semaphore", "more than was taken away is passed on", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, 1), op(Acquire, 4*s, 5*s, 1), op(Add, 6*s, 7*s, -1), lost(Release, 8*s, 1), op(Acquire, 9*s, 10*s, 2)}, "acquires 2"},
		{"semaphore", "some are taken away, and added again", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, -1), op(Add, 4*s, 5*s, 1), lost(Release, 6*s, 1), op(Acquire, 7*s, 8*s, 2)}, "acquires 2"},
		{"semaphore", "it owes some", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, -1), op(Look, 4*s, 5*s, -1)}, ""},
		{"semaphore", "it owes some, and finds none", 3, []Op{op(Acquire, 0, s, 3), op(Add, 2*s, 3*s, -1), op(Look, 4*s, 5*s, 0)}, "finds free 0"},
		{"semaphore", "some are perhaps added, and had", 3, []Op{op(Acquire, 0, s, 3), lost(Add, 2*s, 1), op(Acquire, 4*s, 5*s, 1)}, ""},
		{"semaphore", "some are perhaps added, and more are had", 3, []Op{op(Acquire, 0, s, 3), lost(Add, 2*s, 1), op(Acquire, 4*s, 5*s, 2)}, "acquires 2"},
		{"semaphore", "some are perhaps added, and never again", 3, []Op{op(Acquire, 0, s, 3), lost(Add, 2*s, 1), op(Settle, 3*s, 3*s, 0), op(Look, 4*s, 5*s, 0)}, ""},
		{"semaphore", "some are perhaps taken away", 3, []Op{op(Acquire, 0, s, 1), lost(Add, 2*s, -1), op(Settle, 3*s, 3*s, 0), op(Look, 4*s, 5*s, 1)}, ""},

		{"latch", "it is counted down", 0, []Op{op(Set, 0, s, 2), op(Down, 2*s, 3*s, 0), op(Look, 4*s, 5*s, 1), op(Down, 6*s, 7*s, 0), op(GoesOn, s, 8*s, 0)}, ""},
		{"latch", "somebody goes on too early", 0, []Op{op(Set, 0, s, 2), op(Down, 2*s, 3*s, 0), op(GoesOn, 4*s, 5*s, 0), op(Down, 6*s, 7*s, 0)}, "at 1, and process 1 goes on"},
		{"latch", "a count-down is not counted", 0, []Op{op(Set, 0, s, 2), op(Down, 2*s, 3*s, 0), op(Look, 4*s, 5*s, 2)}, "finds free 2"},
		{"latch", "a count-down is counted twice", 0, []Op{op(Set, 0, s, 3), op(Down, 2*s, 3*s, 0), op(Look, 4*s, 5*s, 1)}, "finds free 1"},
		{"latch", "the count rises", 0, []Op{op(Set, 0, s, 3), op(Down, 2*s, 9*s, 0), op(Look, 4*s, 5*s, 2), op(Look, 6*s, 7*s, 3)}, "finds free 3"},
		{"latch", "a count-down without an answer may have counted", 0, []Op{op(Set, 0, s, 1), later(Down, 2*s, 0), op(GoesOn, 3*s, 4*s, 0)}, ""},
		{"latch", "a count-down without an answer may count later", 0, []Op{op(Set, 0, s, 1), later(Down, 2*s, 0), op(Look, 3*s, 4*s, 1), op(GoesOn, 5*s, 6*s, 0)}, ""},
		{"latch", "a count-down without an answer counts only once", 0, []Op{op(Set, 0, s, 2), later(Down, 2*s, 0), op(GoesOn, 3*s, 4*s, 0)}, "goes on"},
		{"latch", "a setting without an answer may come later", 0, []Op{later(Set, 0, 2), op(Look, 2*s, 3*s, 0), op(Look, 4*s, 5*s, 2)}, ""},
		{"latch", "nobody has set it", 0, []Op{op(Look, 2*s, 3*s, 2)}, "at 0, and process 1 finds free 2"},
		{"latch", "it is set, and can be set", 0, []Op{op(Set, 0, s, 2), op(Set, 2*s, 3*s, 2)}, "at 2, and process 1 sets 2"},
		{"latch", "it is not set, and cannot be set", 0, []Op{op(IsSet, 0, s, 2)}, "at 0, and process 1 finds it is set"},
		{"latch", "it is set once more, when it has come to 0", 0, []Op{op(Set, 0, s, 1), op(Down, 2*s, 3*s, 0), op(Down, 4*s, 5*s, 0), op(Set, 6*s, 7*s, 2), op(Look, 8*s, 9*s, 2)}, ""},

		{"barrier", "all have met", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 1), op(Met, 2*s, 5*s, 0)}, ""},
		{"barrier", "two have met", 3, []Op{op(Met, 0, s, 2), op(Met, 0, s, 1), op(Met, 2*s, 3*s, 0)}, "process 1 meets the others"},
		{"barrier", "two were the last", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 0), op(Met, 2*s, 5*s, 0)}, "1 of 3 are there"},
		{"barrier", "they were not there in that order", 3, []Op{op(Met, 4*s, 5*s, 2), op(Met, s, 2*s, 1), op(Met, 2*s+1, 5*s, 0)}, "comes when 1 are missing"},
		{"barrier", "two generations", 2, []Op{op(Met, 0, 2*s, 1), op(Met, 1, 2*s, 0), op(Met, 2*s, 4*s, 1), op(Met, 3*s, 4*s, 0)}, ""},
		{"barrier", "the third may have come", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 1), op(Untold, 2*s, 3*s, 0)}, ""},
		{"barrier", "the third may have come between", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 0), op(Untold, 2*s, 3*s, 0)}, ""},
		{"barrier", "the third had left before", 3, []Op{op(Met, 2*s, 5*s, 2), op(Met, 2*s, 5*s, 1), op(Untold, 0, s, 0)}, "2 of 3 are there"},
		{"barrier", "the third comes later", 3, []Op{op(Met, 0, s, 2), op(Met, 0, s, 1), op(Untold, 2*s, 3*s, 0)}, "2 of 3 are there"},
		{"barrier", "one who was told nothing is at two meetings", 2, []Op{op(Met, 0, s, 1), op(Met, 2*s, 3*s, 1), op(Untold, 0, 9*s, 0)}, "1 of 2 are there"},
		{"barrier", "it breaks, and all are told", 3, []Op{op(Broken, 0, 5*s, 0), op(Broken, s, 5*s, 0), op(Untold, 0, 3*s, 0)}, ""},
		{"barrier", "it breaks for no reason", 3, []Op{op(Broken, 0, 5*s, 0), op(Broken, s, 5*s, 0)}, "is told that the barrier is broken"},
		{"barrier", "one of them was not heard", 3, []Op{op(Broken, 0, 5*s, 0), mute(s, 5*s)}, ""},
		{"barrier", "one was not heard in the next generation", 3, []Op{op(Broken, 0, 2*s, 0), mute(3*s, 5*s)}, "is told that the barrier is broken"},
		{"barrier", "one has left before it began", 3, []Op{op(Untold, 0, s, 0), op(Broken, 2*s, 5*s, 0)}, "is told that the barrier is broken"},
		{"barrier", "one leaves, and two generations break", 3, []Op{op(Untold, 0, 9*s, 0), op(Broken, s, 2*s, 0), op(Broken, 3*s, 4*s, 0)}, "is told that the barrier is broken"},
		{"barrier", "it breaks, and somebody resets it", 3, []Op{op(Broken, 0, 5*s, 0), op(Reset, 2*s, 3*s, 0)}, "is told that the barrier is broken"},
		{"barrier", "it breaks, and is there for the next ones", 2, []Op{mute(0, 2*s), op(Met, s, 5*s, 1), op(Met, 3*s, 5*s, 0)}, ""},
		{"barrier", "one is told that it is broken, and two that they have met", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 1), op(Broken, 2*s, 5*s, 0)}, "2 of 3 are there"},
		{"barrier", "who leaves breaks it", 3, []Op{op(Untold, 0, 9*s, 0), op(Broken, s, 2*s, 0), op(Met, 3*s, 6*s, 2), op(Met, 4*s, 6*s, 1), op(Met, 5*s, 6*s, 0)}, ""},
		{"barrier", "it is reset, and all are told", 3, []Op{op(WasReset, 0, 5*s, 0), op(WasReset, s, 5*s, 0), op(Reset, 2*s, 3*s, 0)}, ""},
		{"barrier", "it is reset, and is there for the next ones", 2, []Op{op(WasReset, 0, 3*s, 0), op(Reset, s, 2*s, 0), op(Met, 2*s, 5*s, 1), op(Met, 3*s, 5*s, 0)}, ""},
		{"barrier", "nobody has reset it", 3, []Op{op(WasReset, 0, 5*s, 0)}, "process 1 is told that the barrier was reset"},
		{"barrier", "it was reset before", 3, []Op{op(Reset, 0, s, 0), op(WasReset, 2*s, 5*s, 0)}, "is told that the barrier was reset"},
		{"barrier", "it is reset later", 3, []Op{op(WasReset, 0, s, 0), op(Reset, 2*s, 3*s, 0)}, "is told that the barrier was reset"},
		{"barrier", "it may have been reset", 3, []Op{op(WasReset, 0, 5*s, 0), mayReset(0, 9*s)}, ""},
		{"barrier", "it may not have been reset", 2, []Op{op(Met, 0, 5*s, 1), op(Met, 4*s, 5*s, 0), mayReset(s, 2*s)}, ""},
		{"barrier", "it may have been reset only before", 3, []Op{mayReset(0, s), op(WasReset, 2*s, 5*s, 0)}, "is told that the barrier was reset"},
		{"barrier", "it is reset, and those who were there meet", 2, []Op{op(Met, 0, 5*s, 1), op(Reset, 2*s, 3*s, 0), op(Met, 4*s, 5*s, 0)}, ""},
		{"barrier", "it is reset, and those who are certain to have been there meet", 3, []Op{op(Met, 0, 5*s, 1), op(Met, 0, s, 2), op(Reset, 2*s, 3*s, 0), op(Met, 4*s, 5*s, 0)}, "process 1 meets the others"},
		{"barrier", "one is told that it was reset, and one that it is broken", 3, []Op{op(WasReset, 0, 3*s, 0), op(Reset, s, 2*s, 0), mute(0, 3*s)}, ""},
		{"barrier", "one is told of a reset, and two that they have met", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 1), op(WasReset, 2*s, 5*s, 0), op(Reset, 3*s, 4*s, 0)}, "2 of 3 are there"},
		{"barrier", "who resets does not meet the others", 3, []Op{op(Met, 0, 5*s, 2), op(Met, s, 5*s, 1), op(Reset, 2*s, 3*s, 0)}, "2 of 3 are there"},
		{"barrier", "two generations, and one reset", 3, []Op{op(WasReset, 0, 3*s, 0), op(Reset, s, 2*s, 0), op(WasReset, 4*s, 5*s, 0)}, "is told that the barrier was reset"},

		{"limiter", "all of an interval", 5, []Op{op(Acquire, 0, s/10, 3), op(Acquire, 0, s/10, 2)}, ""},
		{"limiter", "more than all of an interval", 5, []Op{op(Acquire, 0, s/10, 3), op(Acquire, 0, s/10, 3)}, "process 1 acquires 3"},
		{"limiter", "more than all of an interval, in two", 5, []Op{op(Acquire, 0, s/10, 5), op(Acquire, s/10, s+s/10, 5)}, ""},
		{"limiter", "more than all of an interval, a little too early", 5, []Op{op(Acquire, s/10, s/2, 5), op(Acquire, s/5, s+s/20, 1)}, "acquires 1"},
		{"limiter", "what was given first has come back", 5, []Op{op(Acquire, 0, s/10, 2), op(Acquire, s/2, s, 3), op(Acquire, s, s+s/10, 2)}, ""},
		{"limiter", "what was given later has not come back", 5, []Op{op(Acquire, 0, s/10, 2), op(Acquire, s/2, s, 3), op(Acquire, s, s+s/10, 3)}, "acquires 3"},
		{"limiter", "an early call is given late", 5, []Op{op(Acquire, 0, 2*s, 4), op(Acquire, s/10, s/5, 5), op(Acquire, s+s/2, 3*s, 1)}, ""},
		{"limiter", "an early call is given late, and too much", 5, []Op{op(Acquire, 0, 2*s, 4), op(Acquire, s/10, s/5, 5), op(Acquire, s+s/2, 2*s, 2)}, "acquires 2"},
		{"limiter", "it finds what can be had", 5, []Op{op(Acquire, 0, s/10, 2), op(Look, s/5, s/4, 3), op(Look, s/5, s/4, 0), op(Look, s, s+1, 5)}, ""},
		{"limiter", "it finds more than can be had", 5, []Op{op(Acquire, 0, s/10, 2), op(Look, s/5, s/4, 4)}, "finds free 4"},
		{"limiter", "it finds more than can be had then", 5, []Op{op(Acquire, 0, s/10, 2), op(Acquire, s/2, s*6/10, 3), op(Look, s, s*19/10, 5), op(Acquire, s, s*12/10, 2)}, "acquires 2"},
		{"limiter", "it finds more than there are", 5, []Op{op(Look, 0, s, 6)}, "finds free 6"},
	} {
		t.Run(test.model+", "+test.name, func(t *testing.T) {
			h := &History{Model: test.model, Name: "a", Capacity: test.capacity, Every: s, Ops: test.ops}
			verdict, stop := h.Check()
			want := Right
			if test.want != "" {
				want = Wrong
			}
			if verdict != want || !strings.Contains(stop.Why, test.want) {
				t.Errorf("%s: %q, want something with %q", verdict, stop.Why, test.want)
			}
			if err := Draw(filepath.Join(t.TempDir(), "a.html"), []History{*h}, max(stop.At, 9*s), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A search that does not end is not one that has found an order, nor one that has
// found none.
func TestASearchThatComesToItsLimitKnowsNothing(t *testing.T) {
	var ops []Op
	for i := range 12 {
		ops = append(ops, op(Acquire, 0, s+time.Duration(i), 1), op(Release, 2*s, 3*s, 1))
	}
	h := &History{Model: "semaphore", Name: "a", Capacity: 12, Ops: ops}
	if verdict, _ := h.check(1000); verdict != Right {
		t.Errorf("%s", verdict)
	}
	if verdict, _ := h.check(20); verdict != Unknown {
		t.Errorf("in twenty steps: %s", verdict)
	}
	h.Capacity = 11
	if verdict, _ := h.check(1000); verdict != Unknown {
		t.Errorf("of what cannot be, in a thousand steps: %s", verdict)
	}
	if verdict, _ := h.Check(); verdict != Wrong {
		t.Errorf("of what cannot be: %s", verdict)
	}
}

// The page shows where it goes wrong, in a long history too, and what struck then.
func TestADrawingShowsTheMomentAndWhatStruck(t *testing.T) {
	var ops []Op
	for i := range 600 {
		at := time.Duration(i) * s
		ops = append(ops, held(i, 1, 0, at, at+s/4, at+s/2)...)
	}
	late := Op{What: Acquire, Process: 7, Who: 7777, N: 1, From: 299 * s, To: Forever, Note: "it waits"}
	ops = append(ops, held(9999, 1, 0, 300*s, 300*s+s/3, 301*s)...)
	h := History{Model: "holds", Name: "orders0", Capacity: 1, Ops: append(ops, late)}
	verdict, stop := h.Check()
	if verdict != Wrong || stop.At < 300*s || stop.At > 301*s {
		t.Fatalf("%s at %v: %s", verdict, stop.At, stop.Why)
	}
	file := filepath.Join(t.TempDir(), "a.html")
	marks := []Mark{
		{Row: "faults", From: 299 * s, To: 310 * s, Text: "FAULT 1001: cut", Colour: Bad},
		{Row: "faults", From: 100 * s, To: 110 * s, Text: "long before", Colour: Bad},
		{Row: "faults", From: 200 * s, To: Forever, Text: "FAULT 1: stall", Colour: Bad},
	}
	if err := Draw(file, []History{h}, stop.At, marks); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"orders0: process 9999 acquires 1 of 1 as hold 9999", "orders0: what was before", "FAULT 1001: cut", `"faults (2)"`, "process 7: acquires 1 of 1 as hold 7777, later", "it waits", "taken by 300:1*1"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, far := range []string{"long before", "process 200 acquires", "process 400 acquires"} {
		if strings.Contains(string(text), far) {
			t.Errorf("the page has %q, which is far away", far)
		}
	}
}
