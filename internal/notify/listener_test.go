package notify

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A feed is the far end of a Listener's subscription.
type feed struct {
	*testing.T
	Listener

	notice         func(confirmed bool)
	started, ended int
	reported       int // how often foreign messages were reported
}

func listen(t *testing.T) *feed {
	f := &feed{T: t}
	f.Start(f.subscribe, f.foreign)
	return f
}

func (f *feed) subscribe(notice func(bool)) func() {
	f.started, f.notice = f.started+1, notice
	return func() { f.ended++ }
}

func (f *feed) foreign() {
	f.reported++
	f.Foreign() // no lock is held
}

func (f *feed) confirm() { f.notice(true) }

func (f *feed) messages(n int) {
	for range n {
		f.notice(false)
	}
}

// woken takes what Wake delivers, if anything.
func (f *feed) woken() bool {
	select {
	case <-f.Wake():
		return true
	default:
		return false
	}
}

func (f *feed) wantForeign(want int) {
	f.Helper()
	if got := f.Foreign(); got != want || f.reported != want {
		f.Errorf("%d foreign messages, %d reported, want %d", got, f.reported, want)
	}
}

func TestHintsCoalesce(t *testing.T) {
	f := listen(t)
	if f.woken() || f.Confirmed() {
		t.Error("news before there was any")
	}
	f.confirm()
	if !f.Confirmed() {
		t.Error("not confirmed")
	}
	if !f.woken() {
		t.Error("a confirmed subscription did not wake")
	}
	f.messages(3)
	f.confirm()
	if !f.woken() {
		t.Error("messages did not wake")
	}
	if f.woken() {
		t.Error("woken twice for what came before the first time")
	}
	f.messages(1)
	if !f.woken() {
		t.Error("a message after waking did not wake again")
	}
}

func TestOneWakeIsEnoughForWhoeverSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := listen(t)
		woken := false
		go func() {
			<-f.Wake()
			woken = true
		}()
		synctest.Wait()
		if woken {
			t.Error("woken by nothing")
		}
		f.messages(1)
		synctest.Wait()
		if !woken {
			t.Error("not woken")
		}
	})
}

func TestOwnAndForeignMessages(t *testing.T) {
	f := listen(t)
	f.confirm()
	f.messages(1)
	f.wantForeign(1)

	f.Expect()
	f.Expect()
	f.messages(2) // ours, whatever came first
	f.wantForeign(1)
	if !f.woken() {
		t.Error("a message of ours did not wake: somebody here may wait for it")
	}
	f.messages(2)
	f.wantForeign(3)
}

func TestUnexpect(t *testing.T) {
	f := listen(t)
	f.confirm()
	f.Expect()
	f.Answered(false) // nothing was published
	f.messages(1)
	f.wantForeign(1)
	f.Answered(false) // there is nothing to take back
	f.Expect()
	f.messages(2)
	f.wantForeign(2)
}

// What is published before anybody listens is not heard.
func TestExpectBeforeTheSubscriptionIsConfirmed(t *testing.T) {
	f := listen(t)
	f.Expect()
	f.Answered(true)
	f.confirm()
	f.messages(1)
	f.wantForeign(1)
}

// A message of ours was taken for another's when it came right after the
// confirmation of the subscription: then the process paused for itself.
func TestAMessageOfOursRightAfterTheConfirmationIsNotForeign(t *testing.T) {
	f := listen(t)
	f.Expect()
	f.confirm()
	f.messages(1)
	if f.Foreign() != 0 || f.reported != 1 {
		t.Errorf("%d foreign messages, %d reported; want none, and a report", f.Foreign(), f.reported)
	}
	f.Answered(true)
	f.messages(1)
	if f.Foreign() != 1 {
		t.Errorf("%d foreign messages, want 1", f.Foreign())
	}
	f.confirm()
	f.messages(1)
	if f.Foreign() != 2 {
		t.Errorf("%d foreign messages after all was answered, want 2", f.Foreign())
	}
}

// What was in flight when a connection broke is lost: waiting for it would hide
// the next foreign message.
func TestReconfirmationForgetsWhatWasExpected(t *testing.T) {
	f := listen(t)
	f.confirm()
	f.messages(1)
	f.Expect()
	f.Expect()
	f.Answered(true)
	f.Answered(true)
	f.confirm()
	f.messages(1)
	f.wantForeign(2) // of before and of now
	f.Expect()
	f.messages(1)
	f.wantForeign(2)
}

func TestStartSubscribesOnce(t *testing.T) {
	f := listen(t)
	f.Start(f.subscribe, f.foreign)
	if f.started != 1 {
		t.Errorf("subscribed %d times", f.started)
	}
	if !f.Stop() || f.ended != 1 {
		t.Errorf("Stop has ended %d subscriptions, want 1", f.ended)
	}
	// What still comes is nobody's business.
	f.messages(1)
	if f.reported != 0 {
		t.Error("reported a message after Stop")
	}
}

// What an earlier subscription still delivers is not taken for the present one's,
// and what was announced to it is not waited for.
func TestAListenerThatIsStartedAgainHearsItsSubscriptionOnly(t *testing.T) {
	f := listen(t)
	f.confirm()
	f.messages(2)
	f.Expect()
	f.Answered(true)
	stale := f.notice
	f.Stop()
	if f.Confirmed() {
		t.Error("confirmed without a subscription")
	}
	f.Start(f.subscribe, f.foreign)
	f.woken()
	stale(true)
	stale(false)
	if f.Confirmed() || f.woken() {
		t.Error("an earlier subscription was heard")
	}
	f.wantForeign(2)
	f.confirm()
	f.messages(1)
	f.wantForeign(3)
	if !f.Stop() || f.started != 2 || f.ended != 2 {
		t.Errorf("%d subscriptions, %d ended", f.started, f.ended)
	}
}

// A Listener that was never started is as good as new.
func TestStopWithoutStart(t *testing.T) {
	f := &feed{T: t}
	if f.Stop() {
		t.Error("Stop has ended a subscription that there was not")
	}
	f.Start(f.subscribe, f.foreign)
	if f.ended != 0 {
		t.Error("the subscription ended at once")
	}
	f.messages(1)
	f.wantForeign(1)
	if !f.Stop() || f.ended != 1 {
		t.Errorf("Stop has ended %d subscriptions, want 1", f.ended)
	}
}

// A driver may deliver before Subscribe returns.
func TestNoticeWhileSubscribing(t *testing.T) {
	f := &feed{T: t}
	f.Start(func(notice func(bool)) func() {
		notice(true)
		notice(false)
		return func() {}
	}, f.foreign)
	f.wantForeign(1)
	if !f.Confirmed() || !f.woken() {
		t.Error("the notices were not heard")
	}
}

// Stop while the driver subscribes ends the subscription nevertheless.
func TestStopWhileSubscribing(t *testing.T) {
	f := &feed{T: t}
	f.Start(func(notice func(bool)) func() {
		if !f.Stop() {
			t.Error("Stop did not see the subscription")
		}
		return f.subscribe(notice)
	}, f.foreign)
	if f.ended != 1 {
		t.Errorf("%d subscriptions ended, want 1", f.ended)
	}
}

// Every method at once; in the end each message was counted.
func TestHammer(t *testing.T) {
	const goroutines, rounds = 8, 500
	var l Listener
	var mu sync.Mutex
	reported, ended := 0, 0
	var notice func(bool)
	l.Start(func(n func(bool)) func() {
		notice = n
		return func() { ended++ }
	}, func() {
		mu.Lock()
		defer mu.Unlock()
		reported++
	})
	notice(true)
	done := make(chan struct{})
	var sleeper, senders sync.WaitGroup
	sleeper.Go(func() {
		for {
			select {
			case <-l.Wake():
			case <-done:
				return
			}
		}
	})
	for range goroutines {
		senders.Go(func() {
			for range rounds {
				l.Expect()
				notice(false) // announced
				notice(false) // foreign
				l.Foreign()
				l.Confirmed()
			}
		})
	}
	senders.Wait()
	close(done)
	sleeper.Wait()
	l.Stop()
	if want := goroutines * rounds; l.Foreign() != want || reported != want || ended != 1 {
		t.Errorf("%d foreign messages, %d reported, %d ended; want %d, %d, 1", l.Foreign(), reported, ended, want, want)
	}
}
