package holdctx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errLoss   = fmt.Errorf("%w: no answer", ErrLost)
	errClosed = errors.New("closed")
)

// A listener notes what it is told, and which of its methods was called.
type listener struct {
	mu   sync.Mutex
	told []string
}

func (l *listener) hear(by string, how End, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, fmt.Sprint(by, " ", how, " ", err))
}

func (l *listener) Released(how End, _ time.Time, err error) { l.hear("released", how, err) }
func (l *listener) Ended(how End, _ time.Time, err error)    { l.hear("ended", how, err) }

// want fails the test unless the listener was told exactly that.
func (l *listener) want(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if fmt.Sprint(l.told) != fmt.Sprint(want) {
		t.Errorf("told %q, want %q", l.told, want)
	}
}

const (
	toldLoss    = "ended lost redlatch: lock lost: no answer"
	toldRelease = "released released <nil>"
)

// live returns the state of something live, and who listens to it.
func live(ctx context.Context) (*State, *listener) {
	s, l := &State{}, &listener{}
	s.Under(ctx)
	s.Observe(l)
	return s, l
}

// However many release at once, one of them is the first. It alone hears of a
// loss.
func TestOneReleaseIsTheFirst(t *testing.T) {
	for _, over := range []error{nil, errLoss} {
		s, _ := live(t.Context())
		want := ErrReleased
		if over != nil {
			want = s.Finish(over)
		}
		var firsts atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				<-start
				switch first, why := s.NoteRelease(); {
				case first:
					firsts.Add(1)
					if !errors.Is(why, want) {
						t.Errorf("the first release is told %v, want %v", why, want)
					}
				case !errors.Is(why, ErrReleased) || errors.Is(why, ErrLost):
					t.Errorf("a later release is told %v", why)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := firsts.Load(); n != 1 {
			t.Errorf("%d releases were the first", n)
		}
	}
}

// Whichever of a loss and a release comes first says how it ended, to whoever asks
// and to the observer, which is told once.
func TestALossAndAReleaseAreOneEnd(t *testing.T) {
	lose := func(s *State) { _ = s.Finish(errLoss) }
	release := func(s *State) {
		if first, why := s.NoteRelease(); first {
			if errors.Is(why, ErrReleased) {
				why = nil
			}
			s.TellRelease(EndOfRelease(why), time.Now(), why)
		}
	}
	check := func(s *State, l *listener) {
		t.Helper()
		want := toldLoss
		if errors.Is(s.Over(), ErrReleased) {
			want = toldRelease
		}
		l.want(t, want)
		if cause := context.Cause(s.Context()); !errors.Is(cause, s.Over()) {
			t.Errorf("it is over for %v, its context for %v", s.Over(), cause)
		}
	}
	for i := range 1000 {
		s, l := live(t.Context())
		switch i {
		case 0:
			lose(s)
			release(s)
			l.want(t, toldLoss)
		case 1:
			release(s)
			lose(s)
			l.want(t, toldRelease)
		default:
			var wg sync.WaitGroup
			wg.Go(func() { lose(s) })
			release(s)
			wg.Wait()
		}
		check(s, l)
	}
}

// A loss between the end by a release and the answer to its request is none, and
// its observer waits for that answer.
func TestALossAfterAReleaseIsNone(t *testing.T) {
	s, l := live(t.Context())
	_, _ = s.NoteRelease()
	if err := s.Finish(errLoss); !errors.Is(err, ErrReleased) || errors.Is(err, ErrLost) {
		t.Errorf("over for %v, want the release", err)
	}
	l.want(t)
	s.TellRelease(EndReleased, time.Now(), nil)
	l.want(t, toldRelease)
}

// Between the end by a release and the answer to its request, somebody else may
// have told the observer. Then the answer is not told.
func TestWhoTellsFirstTellsAlone(t *testing.T) {
	s, l := live(t.Context())
	_, _ = s.NoteRelease()
	s.Tell(EndDropped, nil)
	s.Tell(EndClosed, nil)
	s.TellRelease(EndReleased, time.Now(), nil)
	l.want(t, "ended dropped <nil>")
}

// Who comes after the end is told of it at once, and how it came. Who was there
// before is told no more.
func TestWhoObservesTooLateIsToldAtOnce(t *testing.T) {
	for err, want := range map[error]string{
		errLoss:     toldLoss,
		ErrReleased: "ended released " + ErrReleased.Error(),
		errClosed:   "ended closed closed",
	} {
		s, l := live(t.Context())
		end := s.Context()
		l.want(t)
		if got := s.Finish(err); !errors.Is(got, err) || !errors.Is(context.Cause(end), err) {
			t.Errorf("over for %v, and its context for %v; want %v", got, context.Cause(end), err)
		}
		l.want(t, want)
		var late listener
		s.Observe(&late)
		late.want(t, want)
		_ = s.Finish(errClosed)
		s.Tell(EndClosed, nil)
		l.want(t, want)
		late.want(t, want)
	}
}

// A context that is cut ends for that reason, whoever has it already and whoever
// asks for it later. What is held goes on, and may be lost. The context of
// something that is over is not cut.
func TestACutContextLeavesTheRestLive(t *testing.T) {
	type key struct{}
	for _, asked := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
			defer cancel()
			s, l := live(ctx)
			cut := make(chan time.Time, 1)
			if asked {
				context.AfterFunc(s.Context(), func() { cut <- time.Now() })
			}
			time.Sleep(time.Minute) // longer than the context of its acquisition lasts
			if asked && s.Context().Err() != nil {
				t.Errorf("the context ends with that of its acquisition: %v", context.Cause(s.Context()))
			}
			start := time.Now()
			s.CutContext(errClosed)
			if asked && !(<-cut).Equal(start) {
				t.Error("who has the context already does not see it end")
			}
			if s.Over() != nil {
				t.Errorf("it is over for %v when its context is cut", s.Over())
			}
			l.want(t)
			time.Sleep(time.Minute)
			if err := s.Finish(errLoss); !errors.Is(err, errLoss) || !errors.Is(s.Over(), errLoss) {
				t.Errorf("it is over for %v, want the loss", err)
			}
			l.want(t, toldLoss)
			if got := context.Cause(s.Context()); !errors.Is(got, errClosed) || s.Context().Value(key{}) != "value" {
				t.Errorf("the context ended for %v", got)
			}
		})
	}
	s, _ := live(t.Context())
	_ = s.Finish(errLoss)
	s.CutContext(errClosed)
	if got := context.Cause(s.Context()); !errors.Is(got, errLoss) {
		t.Errorf("the context of what is over ended for %v", got)
	}
}
