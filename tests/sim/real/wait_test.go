package real

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/testserver"
)

// What released gives back a second time is not there any more, and nothing is
// written. Nobody relies on the acknowledgement: a permit that a replica still has
// costs others its lease.
const released = "expirable.release"

// acked returns the scripts that say that they may have to be acknowledged.
func acked(t *testing.T) (names []string) {
	t.Helper()
	scripts := os.DirFS("../../../internal/lua")
	files, err := fs.Glob(scripts, "*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(file, ".lua"); script.Load(scripts, name).Header().Acked {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatal("no script does")
	}
	return names
}

// TestNothingIsAcknowledgedThatNoReplicaHas asks twice for what has to be
// acknowledged, the second time on another connection, and for less, so that
// nothing is left to do. The replica has stood still since before the first time.
// WAIT of Redis 8 and of Valkey would take it to have all that the second
// connection has written, so that has to be something.
func TestNothingIsAcknowledgedThatNoReplicaHas(t *testing.T) {
	const owner, other = "c0ffee00-0000-8000-8000-000000000001:1", "c0ffee00-0000-8000-8000-000000000001:2"
	const reads = "{k}:" + owner + ":rwlock_timeout:1"
	for _, kind := range testserver.EveryKind() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, kind)
			replica := testserver.StartReplica(t, s)
			for end := time.Now().Add(time.Minute); s.MustDo("WAIT", "1", "100") != int64(1); {
				if time.Now().After(end) {
					t.Fatal("the replica does not come")
				}
			}
			replica.Pause()
			defer replica.Resume()
			first, met := dialled(t, s), map[string]bool{}
			for _, x := range []struct {
				script       *script.Script
				before       string // a command
				keys         string
				asked, again string // arguments
			}{
				{lua.LockTake, "", "k", "60000 " + owner, "30000 " + owner},
				{lua.LockTake, "", "k tokens", "60000 " + owner + " 0", "30000 " + owner + " 0"},
				{lua.LockRenew, "HSET k " + owner + " 1", "k", owner + " 60000 0", owner + " 30000 0"},
				{lua.LockTransfer, "HSET k " + owner + " 1", "k", owner + " " + other + " 60000", owner + " " + other + " 30000"},
				{lua.LockYield, "HSET k " + owner + " 1", "k", owner + " " + other + " 60000 c 0 0", owner + " " + other + " 30000 c 0 0"},
				{lua.FairLockTake, "", "k queue timeouts alive", "60000 " + owner + " c client 0 5000", "30000 " + owner + " c client 0 5000"},
				{lua.GroupLockTake, "", "k", "60000 " + owner + " 1 value 0", "30000 " + owner + " 1 value 0"},
				{lua.GroupLockRenew, "HSET k value " + owner, "k", owner + " 60000 0 1 value 0", owner + " 30000 0 1 value 0"},
				{lua.MultiLockTake, "", "k l", "60000 " + owner + " " + other, "30000 " + owner + " " + other},
				{lua.ReadWriteReadTake, "", "k " + reads, "60000 " + owner, "30000 " + owner},
				{lua.ReadWriteReadReenter, "HSET k mode write " + owner + ":write 1", "k " + reads, owner + " 60000", owner + " 30000"},
				{lua.ReadWriteWriteTake, "", "k", "60000 " + owner, "30000 " + owner},
				{lua.ReadWriteWriteTransfer, "HSET k mode write " + owner + ":write 1", "k", owner + " " + other + " 60000", owner + " " + other + " 30000"},
				{lua.ReadWriteWriteYield, "HSET k mode write " + owner + ":write 1", "k", owner + " " + other + " 60000 c 0 0", owner + " " + other + " 30000 c 0 0"},
				{lua.ReadWriteRenew, "HSET k mode read " + owner + " 1", "k " + reads, owner + " 60000 0", owner + " 30000 0"},
				{lua.ExpirableTake, "SET k 3", "k timeouts", "c 60000 1 id", "c 30000 1 id"},
				{lua.ExpirableTake, "SET k 3 PX 90000", "k timeouts", "c 60000 1 id", "c 30000 1 id"},
				{lua.ExpirableRenew, "ZADD k 9000000000000 id", "k", "id 60000", "id 30000"},
				{lua.ExpirableTrySet, "", "k timeouts session", "1 60000 c 3", "-1 60000 c 3"},
				{lua.ExpirableSet, "", "k timeouts session", "1 60000 c 3", "-1 60000 c 3"},
				{lua.ExpirableAdd, "", "k timeouts session", "1 60000 c 3", "-1 60000 c 3"},
				{lua.ExpirableDelete, "SET k 3", "k timeouts session", "1 60000", "-1 60000"},
				{lua.ExpirableGiveBack, "SET k 3", "k timeouts session", "1 60000 c 1 id", "-1 60000 c 1 id"},
				{lua.SemaphoreSet, "", "k session", "1 60000 c 3 0", "-1 60000 c 3 0"},
				{lua.SemaphoreAdd, "SET k 3", "k session", "1 60000 c 2 0", "-1 60000 c 2 0"},
				{lua.SemaphoreDrain, "SET k 3", "k session", "1 60000", "-1 60000"},
				{lua.SemaphoreDelete, "SET k 3", "k session", "1 60000", "-1 60000"},
				{lua.KeyExpire, "SET k 3", "k session", "1 60000 90000 string", "-1 60000 90000 string"},
				{lua.SemaphoreExchange, "SET k 3", "k session", "1 60000 c 0 0 0 1", "-1 60000 c 0 0 0 1"},
			} {
				met[x.script.Name()] = true
				first("FLUSHALL")
				if x.before != "" {
					first(strings.Fields(x.before)...)
				}
				run := func(ask asker, args string) any {
					keys := strings.Fields(x.keys)
					return ask(slices.Concat([]string{"EVAL", x.script.Source(), strconv.Itoa(len(keys))}, keys, strings.Fields(args))...)
				}
				second := dialled(t, s) // of which WAIT knows nothing yet
				if a, b := granted(run(first, x.asked)), granted(run(second, x.again)); a != b || strings.HasPrefix(a, "-") {
					t.Errorf("%s answers %s, and then %s", x.script.Name(), a, b)
				}
				if got := second("WAIT", "1", "1"); got != ":0" {
					t.Errorf("%s on %q, again with %q: %v replicas have it", x.script.Name(), x.keys, x.again, got)
				}
			}
			for _, name := range acked(t) {
				if !met[name] && name != released {
					t.Errorf("%s may have to be acknowledged, and is not asked for twice here", name)
				}
			}
		})
	}
}

// granted returns what a script's answer begins with: the rest may be times.
func granted(answer any) string {
	if list, ok := answer.([]any); ok && len(list) > 0 {
		answer = list[0]
	}
	return fmt.Sprint(answer)
}
