package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Lists follow one another; a server that goes away and comes back is said, and
// survived.
func TestWatch(t *testing.T) {
	t.Parallel()
	r := newRedis(t)
	r.hold("one", time.Hour)
	j := start(t, r.command("ls", "--watch", "--interval", "1s"))
	j.says("\none   lock ")
	r.hold("two", time.Hour)
	j.says("\ntwo   lock ")
	r.Close()
	j.says("; trying again every 1s")
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	j.says("redlatch: the server answers again\n")
	j.signal(os.Interrupt)
	j.ends(0)
	if out := j.output(); strings.Contains(out, "\x1b") || strings.Count(out, "trying again") != 1 {
		t.Errorf("%q", out)
	}
}

// A page is no wider and no longer than the terminal.
func TestPaintable(t *testing.T) {
	t.Parallel()
	got := paintable([]string{"head", "123456789", "äöüäöüäöü", "last"}, 6, 4)
	if want := "\x1b[Hhead\x1b[K\n1234…\x1b[K\nand …\x1b[K\n\x1b[J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := paintable([]string{"a"}, 80, 24), "\x1b[Ha\x1b[K\n\x1b[J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
