package connect

import "testing"

func TestWithoutAProgramTheNameBeginsWithTheHost(t *testing.T) {
	for want, args := range map[string][]string{"billing": {"/usr/bin/billing", "x"}, "": {""}} {
		if got := program(args); got != want {
			t.Errorf("%q is named %q", args, got)
		}
	}
	if got := program(nil); got != "" {
		t.Errorf("no program is named %q", got)
	}
}
