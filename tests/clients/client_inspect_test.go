package clients

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func TestInfoSaysWhoHoldsALock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		who := redlatch.Identity{Name: "billing", Host: "host-7", PID: 4121}
		c := w.Client(redlatch.Config{Identity: who})
		l := c.Lock("orders")
		info, err := admin.LockInfo(bg, l)
		if err != nil || info.Held() || info.Name != "orders" {
			t.Fatalf("free: %+v, %v", info, err)
		}
		start := time.Now()
		h := w.Acquire(bg, l)
		time.Sleep(time.Second)
		inner := w.Acquire(h.Context(), l)
		info, err = admin.LockInfo(bg, l)
		if err != nil || len(info.Holders) != 1 {
			t.Fatalf("held: %+v, %v", info, err)
		}
		if got, want := info.Holders[0], (admin.Holder{Owner: h.ID(), Client: c.ID(), Count: 2, Redlatch: true, TTL: info.TTL, By: who.String(), Since: start, Renewed: true}); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if info.TTL < 29*time.Second || info.TTL > 30*time.Second {
			t.Fatalf("TTL %v", info.TTL)
		}
		w.Release(inner)
		w.Release(h)
	})
}

// Each key takes a request. One after the other, a hundred thousand of them took
// minutes at a server that is a millisecond away.
func TestAListingLooksAtManyKeysInARoundTrip(t *testing.T) {
	const keys, rtt = 320, 100 * time.Millisecond
	locktest.InFakeTime(t, func(w *locktest.World) {
		for i := range keys {
			name := fmt.Sprint("java:", i)
			w.Server.HSet(name, "0f8fad5b-d9cb-469f-a165-70867728950e:42", "1")
			w.Server.SetTTL(name, time.Hour)
		}
		w.Timeout = 10 * rtt // what is given up would be asked again
		c := w.ClientOver(rtt, redlatch.Config{})
		start, n := time.Now(), 0
		for _, err := range admin.New(c).Locks(bg, "java:*") {
			w.OK(err)
			n++
		}
		if took := time.Since(start); n != keys || took > keys/2*rtt {
			t.Errorf("%d locks in %v", n, took)
		}
	})
}

func TestLocksListsWhatLooksLikeALock(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, name := range []string{"orders:1", "orders:2", "stock:1"} {
			w.Acquire(bg, c.Lock(name))
		}
		w.Server.HSet("java", "0f8fad5b-d9cb-469f-a165-70867728950e:42", "1")
		w.Server.SetTTL("java", time.Minute)
		w.Server.HSet("profile:7", "name", "Ada") // somebody's hash
		w.Server.HSet("forever", "0f8fad5b-d9cb-469f-a165-70867728950e:42", "1")
		if err := w.Server.Set("text", "x"); err != nil {
			t.Fatal(err)
		}
		list := func(pattern string) (names []string) {
			for info, err := range admin.New(c).Locks(bg, pattern) {
				if err != nil {
					t.Fatal(err)
				}
				if info.Name == "java" && info.Holders[0].Redlatch {
					t.Error("a Redisson client was taken for one of redlatch")
				}
				names = append(names, info.Name)
			}
			sort.Strings(names)
			return names
		}
		if got := list(""); len(got) != 4 || got[0] != "java" || got[3] != "stock:1" {
			t.Fatalf("all: %q", got)
		}
		if got := list("orders:*"); len(got) != 2 {
			t.Fatalf("orders: %q", got)
		}
		for _, err := range admin.New(c).Locks(bg, "") {
			if err != nil {
				t.Fatal(err)
			}
			break // an early stop leaves nothing behind
		}
		if got := list("nothing*"); len(got) != 0 {
			t.Fatalf("nothing: %q", got)
		}
	})
}
