package nameclash

import (
	"fmt"
	"testing"
)

func TestNamesWithTwinsAreNotRememberedForEver(t *testing.T) {
	var ts Names
	for i := range 50_000 {
		if err := ts.Use(Rates, fmt.Sprint("x", i)); err != nil {
			t.Fatal(err)
		}
		if n := len(ts.names) + len(ts.before); n > 2*mostTwins {
			t.Fatalf("%d names are remembered", n)
		}
		if err := ts.Use(Queues, "y"); err != nil { // used all the time, and so remembered
			t.Fatal(err)
		}
	}
	for name, refused := range map[string]bool{"{x49999}": true, "{x0}": false, "{y}": false} {
		if err := ts.Use(Rates, name); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ts.Use(Queues, "{y}"); err == nil {
		t.Error("a name that was in use is forgotten")
	}
}
