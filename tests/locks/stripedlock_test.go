package locks

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/locktest"
)

func stripeOf(t *testing.T, s *redlatch.StripedLock, key string) int {
	t.Helper()
	_, digits, _ := strings.Cut(s.For(key).Name(), ":")
	i, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Two versions, or two processes, that disagree here would both hold one key.
// These numbers never change.
func TestTheStripeOfAKeyNeverChanges(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		keys := []string{"", "a", "b", "orders:1", "orders:2", "orders:42", "käse", "\x00\xff", "{user}:1", strings.Repeat("x", 1000)}
		for n, want := range map[int][]int{
			1:    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
			2:    {1, 0, 0, 1, 1, 0, 0, 1, 1, 1},
			7:    {6, 0, 1, 3, 6, 1, 0, 4, 5, 3},
			64:   {61, 0, 15, 34, 61, 18, 8, 41, 53, 32},
			1000: {957, 10, 243, 545, 963, 282, 127, 652, 837, 511},
		} {
			s := c.StripedLock("s", n)
			for i, key := range keys {
				if got := stripeOf(t, s, key); got != want[i] {
					t.Errorf("%d stripes: key %.10q has stripe %d, want %d", n, key, got, want[i])
				}
			}
		}
	})
}

func TestStripesGetEqualShares(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		const keys = 30_000
		for shape, key := range map[string]func(i int) string{
			"numbers":     strconv.Itoa,
			"orders":      func(i int) string { return fmt.Sprintf("orders:%d", i) },
			"padded":      func(i int) string { return fmt.Sprintf("%08d", i) },
			"in a tag":    func(i int) string { return fmt.Sprintf("{user:%d}:cart", i) },
			"every 1000":  func(i int) string { return strconv.Itoa(1000 * i) },
			"same length": func(i int) string { return fmt.Sprintf("%x-%x", i*2654435761, i) },
		} {
			for _, n := range []int{2, 3, 16, 64, 100} {
				s := c.StripedLock("s", n)
				count := make([]float64, n)
				for i := range keys {
					count[stripeOf(t, s, key(i))]++
				}
				mean, chi := float64(keys)/float64(n), 0.0
				for _, x := range count {
					chi += (x - mean) * (x - mean) / mean
				}
				// Six standard deviations of a chi-square with n-1 degrees of freedom.
				if df := float64(n - 1); (chi-df)*(chi-df) > 36*2*df+400 && chi > df {
					t.Errorf("%s over %d stripes: chi-square %.0f", shape, n, chi)
				}
			}
		}
	})
}

func TestStripesAreLocksOfTheirOwn(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := c.StripedLock("s", 64)
		if s.For("orders:1").Name() == s.For("orders:2").Name() {
			t.Fatal("pick other keys")
		}
		h := w.Acquire(bg, s.For("orders:1"))
		w.Release(w.Acquire(bg, s.For("orders:2")))
		_, err := c.StripedLock("s", 64).For("orders:1").TryAcquire(bg, 0)
		w.WantErr(err, redlatch.ErrBusy)
		w.Release(h)
		m := w.AcquireWithin(bg, redlatch.MultiLock(s.For("orders:2"), s.For("orders:1")), time.Second)
		w.Release(m)
		w.WantNothing()
	})
}

func TestFewerThanOneStripeIsRefused(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		for _, n := range []int{0, -1, -1 << 62} {
			if _, err := c.StripedLock("s", n).For("x").TryAcquire(bg, 0); err == nil || !strings.Contains(err.Error(), "at least one") {
				t.Errorf("%d stripes: %v", n, err)
			}
		}
		if _, err := c.StripedLock("s{", 3).For("x").TryAcquire(bg, 0); err == nil {
			t.Error("a name that cannot be")
		}
		w.WantNothing()
	})
}

// Two keys share a stripe as often as there are stripes; MultiLock took that for a
// lock that is given twice.
func TestSeveralKeysOfOneStripeAreOneMember(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := c.StripedLock("s", 2)
		m := redlatch.MultiLock(s.For("a"), s.For("orders:1"), s.For("b"), c.Lock("other"), c.StripedLock("s", 2).For("a"))
		var names []string
		for _, l := range locktest.Members(m) {
			names = append(names, l.Name())
		}
		if got := strings.Join(names, " "); got != "other s:0 s:1" {
			t.Errorf("its members are %q", got)
		}
		h := w.Acquire(bg, m)
		if n := len(h.Members()); n != 3 {
			t.Errorf("%d holds", n)
		}
		w.Release(h)
		_, err := redlatch.MultiLock(s.For("a"), c.Lock(s.For("a").Name())).Acquire(bg) // somebody has mixed two things up
		w.WantErr(err, redlatch.ErrInvalid)
		w.WantNothing()
	})
}

func TestForOfSeveralKeysIsTheirDifferentStripes(t *testing.T) {
	locktest.InFakeTime(t, func(w *locktest.World) {
		c := w.Client(redlatch.Config{})
		s := c.StripedLock("s", 2, redlatch.Lease(time.Minute))
		if one := s.For("a"); locktest.Members(one) != nil && len(locktest.Members(one)) > 0 {
			t.Error("one key is several locks")
		}
		h := w.Acquire(bg, s.For("a", "orders:1", "b"))
		if len(h.Members()) != 2 || h.Name() != "s:0,s:1" || h.ID() != "" || w.Server.TTL("s:1") != time.Minute {
			t.Errorf("%d holds of %q, %q, for %v", len(h.Members()), h.Name(), h.ID(), w.Server.TTL("s:1"))
		}
		w.Release(h)
		_, err := s.For().Acquire(bg)
		w.WantErr(err, redlatch.ErrInvalid)
		w.WantNothing()
	})
}
