package interop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/drivers"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// versions are the Redissons that every story is told with.
var versions = []string{peer.Newest, peer.Oldest}

func TestMain(m *testing.M) {
	if text := os.Getenv(holderEnv); text != "" {
		os.Exit(holderMain(text))
	}
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run()) // every story skips itself
	}
	// A stale peer would prove nothing; the script does nothing when it is not.
	build := exec.Command("./build.sh")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "interop: the Java peer was not built:", err)
		os.Exit(1)
	}
	// Stories mostly wait, so many fit on few processors.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8")
	}
	os.Exit(leaktest.Run(func() int {
		defer closePeers()
		return m.Run()
	}, drivers.Lingering...))
}

// Stories share a Java process per version, each with a Redisson client of its
// own, unless they end or stop the process.
var (
	peersMu sync.Mutex
	peers   = map[string]*peer.Peer{}
)

func sharedPeer(version string) (*peer.Peer, error) {
	peersMu.Lock()
	defer peersMu.Unlock()
	if p := peers[version]; p != nil {
		return p, nil
	}
	p, err := peer.Start(version, os.Stderr)
	if err == nil {
		peers[version] = p
	}
	return p, err
}

func closePeers() {
	for _, p := range peers {
		p.Close()
	}
}
