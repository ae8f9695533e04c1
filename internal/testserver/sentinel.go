package testserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Sentinels is a primary with two replicas, watched by three sentinels. A test
// that kills the primary calls DeadAfter before: with half a second, failover
// takes about two.
type Sentinels struct {
	Name      string    // of the primary, as sentinels are asked for it
	Data      []*Server // at first: 0 is the primary, 1 and 2 are replicas
	Sentinels []*Server
}

// Addrs returns the addresses of the sentinels.
func (sentinels *Sentinels) Addrs() []string { return addrs(sentinels.Sentinels) }

// DeadAfter makes the sentinels take a server for dead that has been silent for
// that long.
func (sentinels *Sentinels) DeadAfter(silent time.Duration) {
	for _, n := range sentinels.Sentinels {
		n.MustDo("SENTINEL", "SET", sentinels.Name, "down-after-milliseconds", strconv.FormatInt(silent.Milliseconds(), 10))
	}
}

// StartSentinels runs three servers and three sentinels. When it returns, after
// two to three seconds, all sentinels know each other and both replicas.
// extraArgs go to the three servers.
func StartSentinels(tb testing.TB, k Kind, extraArgs ...string) *Sentinels {
	tb.Helper()
	sentinels := &Sentinels{Name: "mymaster"}
	args := append([]string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, extraArgs...)
	primary := Start(tb, k, args...)
	sentinels.Data = append(sentinels.Data, primary)
	host, port, _ := net.SplitHostPort(primary.Addr())
	for range 2 {
		sentinels.Data = append(sentinels.Data, StartReplica(tb, primary, args...))
	}
	for _, r := range sentinels.Data[1:] {
		await(tb, r, "it replicates", func() error {
			return expect(r, []string{"INFO", "replication"}, func(t string) bool { return field(t, "master_link_status") == "up" })
		})
	}

	const conf = "sentinel monitor %[1]s %[2]s %[3]s 2\n" +
		"sentinel down-after-milliseconds %[1]s 500\n" +
		"sentinel failover-timeout %[1]s 2000\n" +
		"sentinel parallel-syncs %[1]s 2\n" +
		"sentinel auth-user %[1]s " + Admin + "\nsentinel auth-pass %[1]s " + AdminPassword + "\n" +
		"sentinel sentinel-user " + Admin + "\nsentinel sentinel-pass " + AdminPassword + "\n"
	for range 3 {
		sentinels.Sentinels = append(sentinels.Sentinels, start(tb, k, func(version, own, dir string) ([]string, error) {
			// A sentinel keeps its state in its configuration file.
			file := filepath.Join(dir, "sentinel.conf")
			err := os.WriteFile(file, fmt.Appendf([]byte(sentinelUsers(version, extraArgs)), conf, sentinels.Name, host, port), 0o600)
			return []string{file, "--port", own, "--bind", "127.0.0.1", "--dir", dir, "--protected-mode", "no", "--sentinel"}, err
		}))
	}
	for _, n := range sentinels.Sentinels {
		await(tb, n, "the sentinels agree", func() error { return sentinels.agrees(n) })
	}
	sentinels.DeadAfter(calm)
	return sentinels
}

// agrees returns nil when the sentinel knows all others and the replicas.
func (sentinels *Sentinels) agrees(n *Server) error {
	v, err := n.Do("SENTINEL", "MASTER", sentinels.Name)
	if err != nil {
		return err
	}
	pairs, _ := v.([]any)
	got := make(map[string]string)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		got[name], _ = pairs[i+1].(string)
	}
	if got["num-slaves"] != "2" || got["num-other-sentinels"] != "2" || got["flags"] != "master" {
		return fmt.Errorf("SENTINEL MASTER says %v", got)
	}
	_, err = n.Do("SENTINEL", "CKQUORUM", sentinels.Name)
	return err
}

// Primary returns the server that sentinel 0 names as the primary.
func (sentinels *Sentinels) Primary() (*Server, error) {
	v, err := sentinels.Sentinels[0].Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinels.Name)
	if err != nil {
		return nil, err
	}
	addr := strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ":"), "[]")
	for _, d := range sentinels.Data {
		if d.Addr() == addr {
			return d, nil
		}
	}
	return nil, fmt.Errorf("testserver: the sentinel names %v as the primary, which is none of ours", v)
}
