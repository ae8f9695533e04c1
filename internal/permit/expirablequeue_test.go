package permit

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/request"
)

// A queue that is new hears of releases that began before it, and would take their
// messages for those of others.
func TestAQueueLastsForTheReleasesThatItHearsOf(t *testing.T) {
	all := New(Options{Server: &request.Server{}})
	s, qs := all.Expirable("desks"), &all.expirable
	q, _, foreign := qs.releasing(&s)
	if other, _, _ := qs.releasing(&s); other != q {
		t.Error("the second release has a queue of its own")
	}
	qs.released(q, driver.Reply{}, foreign, time.Now())
	if qs.all.Find(s.Key) != q {
		t.Error("a release is in flight, and its queue is gone")
	}
	qs.released(q, driver.Reply{}, foreign, time.Now())
	if len(qs.all.All()) != 0 {
		t.Error("the queue stays")
	}
}
