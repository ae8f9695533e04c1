package election

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/notify"
	"github.com/redlatch/redlatch/internal/request"
)

// soonest is how long after a look the next one is while nobody leads. Nobody is
// told of a leader that begins.
const soonest = 50 * time.Millisecond

// Watch has somebody look at who leads, at once and again when that may have
// changed, until it does not want to any more, or an end comes. look says whether
// somebody leads, and whether it goes on.
func (all *Elections) Watch(ctx context.Context, channel string, look func() (led, more bool)) error {
	var news notify.Listener
	defer news.Stop()
	pause := soonest
	for {
		led, more := look()
		if !more {
			return nil
		}
		if led {
			pause = request.LongestPause
		}
		all.Server.Listen(&news, channel, nil, nil)
		heard, err := request.Pause(ctx, all.Server.Quit, news.Wake(), time.Time{}, request.Jittered(pause))
		if err != nil {
			return err
		}
		pause = min(2*pause, request.LongestPause)
		if led || heard {
			pause = soonest
		}
	}
}
