package connect

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that opens with one client library links no other, and one that only
// reads settings links none.
func TestAnOpenerLinksOneClientLibrary(t *testing.T) {
	libraries := map[string]string{"redlatchgoredis": "github.com/redis/go-redis/v9", "redlatchrueidis": "github.com/redis/rueidis", "redlatchvalkey": "github.com/valkey-io/valkey-go"}
	links := func(pkg string) string {
		out, err := exec.Command("go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		return "\n" + string(out)
	}
	for _, library := range libraries {
		if strings.Contains(links("github.com/redlatch/redlatch/connect"), "\n"+library) {
			t.Errorf("connect itself links %s", library)
		}
	}
	for opener, its := range libraries {
		deps := links("github.com/redlatch/redlatch/" + opener)
		for _, library := range libraries {
			if got := strings.Contains(deps, "\n"+library+"\n"); got != (library == its) {
				t.Errorf("%s links %s: %v", opener, library, got)
			}
		}
	}
}
