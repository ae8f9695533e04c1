package locktest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/observe"
)

// A Blockable driver pretends that every script does what it should, until it
// is blocked: then no call returns before the end of the test.
type Blockable struct {
	Blocked atomic.Bool
	End     chan struct{}
}

// Run returns what the script should, or never.
func (b *Blockable) Run(_ context.Context, s *driver.Script, keys, _ []string) (driver.Reply, error) {
	if b.Blocked.Load() {
		<-b.End
		return driver.Reply{}, &driver.RunError{Outcome: driver.Unknown, Err: errors.New("the test is over")}
	}
	one := driver.Reply{Kind: driver.ReplyInt, Int: 1}
	if !strings.HasSuffix(s.Name(), ".renew") {
		return one, nil
	}
	list := make([]driver.Reply, len(keys))
	for i := range list {
		list[i] = one
	}
	return driver.Reply{Kind: driver.ReplyList, List: list}, nil
}

// Subscribe hears nothing.
func (*Blockable) Subscribe(string, bool, func(driver.Notice)) func() { return func() {} }

// Primaries has none.
func (*Blockable) Primaries(context.Context) ([]driver.Primary, error) { return nil, nil }

// Node is the same for all keys.
func (*Blockable) Node(string) string { return "" }

// OnBreak has nothing to tell.
func (*Blockable) OnBreak(func(string)) func() { return func() {} }

// Traits are those of a driver with go-redis' time-out.
func (b *Blockable) Traits() driver.Traits {
	return driver.Traits{Name: "blockable", Timeout: 3 * time.Second}
}

// Pretending returns a client whose driver does nothing.
func Pretending(tb testing.TB, of ...observe.Hooks) *redlatch.Client {
	tb.Helper()
	end := make(chan struct{})
	tb.Cleanup(func() { close(end) })
	return Observed(ClientOf(tb, &Blockable{End: end}, redlatch.Config{}), of...)
}

// PairAllocs returns how often a lock of such a client allocates when it is
// acquired and released.
func PairAllocs(t *testing.T, c *redlatch.Client) float64 {
	t.Helper()
	l := c.Lock("orders")
	return testing.AllocsPerRun(2000, func() {
		h, err := l.Acquire(bg)
		if err == nil {
			err = h.Release(bg)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}
