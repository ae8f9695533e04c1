package rueidis_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchrueidis"
	"github.com/redlatch/redlatch/tests/internal/adaptertest"
)

// dialling is an adaptertest.Bubble.
func dialling(t *testing.T, f func(t *testing.T, open adaptertest.Dial)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, func(t *testing.T, dial func(context.Context) (net.Conn, error)) driver.Redis {
			d, err := redlatchrueidis.New(through(dial))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			return d
		})
	})
}

func TestLeaversAreInTime(t *testing.T) { adaptertest.LeaversAreInTime(t, dialling) }

func TestLeaversCostNothing(t *testing.T) { adaptertest.LeaversCostNothing(t, dialling) }

func TestAFarMemberCostsNothing(t *testing.T) { adaptertest.AFarMemberCostsNothing(t, dialling) }
