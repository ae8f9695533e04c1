package interop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/interop/peer"
)

// stageLimit bounds one story of many that wait for each other.
const stageLimit = 3 * time.Minute

// A stage is more than one server: a set with sentinels or a cluster. Stories are
// told on it one after the other, by clients that they share.
type stage struct {
	at        place
	redisson  peer.Options // how it connects
	nodes     []*testserver.Server
	primaries []*testserver.Server
	serverOf  func(key string) *testserver.Server
	sharded   bool            // Redisson tells by SPUBLISH
	goes      redlatch.PubSub // how redlatch tells
}

func sentinels(t *testing.T) stage {
	t.Helper()
	s := testserver.StartSentinels(t, testserver.Redis, testserver.Open...)
	return stage{
		at:        place{addrs: s.Addrs(), master: s.Name},
		redisson:  peer.Options{Sentinels: s.Addrs(), Master: s.Name},
		nodes:     s.Data,
		primaries: s.Data[:1],
		serverOf:  func(string) *testserver.Server { return s.Data[0] },
	}
}

func cluster(t *testing.T) stage {
	t.Helper()
	c := testserver.StartCluster(t, testserver.Redis, testserver.Open...)
	return stage{
		at:        place{addrs: c.Addrs(), cluster: true},
		redisson:  peer.Options{Cluster: c.Addrs()},
		nodes:     c.Nodes,
		primaries: c.Nodes[:3],
		serverOf:  c.PrimaryOf,
	}
}

// A troupe is the clients of some stories on a stage.
type troupe struct {
	cast
	stage
	java *peer.Client
	gone *redlatch.Client
}

// troupe opens clients that end with the test.
func (s stage) troupe(t *testing.T, version, driver string) *troupe {
	t.Helper()
	w := &world{cast: cast{version: version, driver: driver}, t: t, at: s.at, stage: &s}
	ctx, cancel := context.WithTimeout(context.Background(), storyLimit)
	t.Cleanup(cancel)
	w.ctx = ctx
	return &troupe{w.cast, s, w.javaClient(), w.goClient()}
}

// world is that of the next story.
func (p *troupe) world(t *testing.T, kind string) *world {
	t.Helper()
	w := &world{cast: cast{p.version, p.driver, kind}, t: t, at: p.at, stage: &p.stage, java: p.java, gone: p.gone}
	w.name = "stories:" + t.Name()
	w.server = p.serverOf(w.name)
	return w.begin(stageLimit)
}

// primaries returns the servers on which something may stay.
func (w *world) primaries() []*testserver.Server {
	if w.stage == nil {
		return []*testserver.Server{w.server}
	}
	return w.stage.primaries
}

// serverOf returns the server that has a key.
func (w *world) serverOf(key string) *testserver.Server {
	if w.stage == nil {
		return w.server
	}
	return w.stage.serverOf(key)
}

// sharded says whether Redisson's messages are those of sharded Pub/Sub.
func (w *world) sharded() bool { return w.stage != nil && w.stage.sharded }

// publish is the command by which Redisson tells others.
func (w *world) publish() string {
	if w.sharded() {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// subscribers returns how many subscriptions of one kind there are of the channels
// of this pattern, on whatever server.
func (w *world) subscribers(sharded bool, pattern string) (n int64) {
	w.t.Helper()
	list, count := "CHANNELS", "NUMSUB"
	if sharded {
		list, count = "SHARDCHANNELS", "SHARDNUMSUB"
	}
	nodes := w.primaries()
	if w.stage != nil {
		nodes = w.stage.nodes
	}
	for _, node := range nodes {
		channels, _ := node.MustDo("PUBSUB", list, pattern).([]any)
		for _, c := range channels {
			reply, _ := node.MustDo("PUBSUB", count, c.(string)).([]any)
			n += reply[1].(int64)
		}
	}
	return n
}

// forget makes all servers forget which commands they ran.
func (s stage) forget() {
	for _, node := range s.nodes {
		node.MustDo("CONFIG", "RESETSTAT")
	}
}

// ran says whether a server has run a command since forget.
func (s stage) ran(command string) bool {
	for _, node := range s.nodes {
		stats, _ := node.MustDo("INFO", "commandstats").(string)
		if strings.Contains(stats, "cmdstat_"+command+":") {
			return true
		}
	}
	return false
}

// wantTold checks by which kinds of Pub/Sub the troupe's stories went.
func (p *troupe) wantTold(t *testing.T) {
	t.Helper()
	classic := !p.sharded || p.goes == redlatch.PubSubBoth
	sharded := p.sharded || p.goes == redlatch.PubSubBoth
	for command, want := range map[string]bool{"publish": classic, "spublish": sharded, "ssubscribe": sharded} {
		if got := p.ran(command); got != want {
			t.Errorf("%s was sent: %v, want %v", strings.ToUpper(command), got, want)
		}
	}
}

// A tale is a story and the kinds it is told of.
type tale struct {
	name  string
	story func(t *testing.T, w *world)
	kinds []string
}

// wakes are the stories of who waits for the other side and goes on by its
// message.
var wakes = []tale{
	{"GoReleaseWakesJava", goReleaseWakesJava, exclusive},
	{"JavaUnlockWakesGo", javaUnlockWakesGo, exclusive},
	{"FairQueueOfBoth", fairQueueOfBoth, []string{peer.Fair}},
	{"WriterWakesAllReaders", writerWakesAllReaders, []string{peer.Write}},
	{"LastReaderWakesWriter", lastReaderWakesWriter, []string{peer.Write}},
	{"GoDowngradeWakesJavaReaders", goDowngradeWakesJavaReaders, []string{peer.Write}},
	{"GroupReleaseWakesTheOther", groupReleaseWakesTheOther, []string{peer.Group}},
	{"SemaphoreWakes", semaphoreWakes, []string{peer.Semaphore}},
	{"PermitsWake", permitsWake, []string{peer.Permits}},
	{"Latch", latchOfBoth, []string{peer.Latch}},
}

// multis are the stories of several locks, which are in several slots.
var multis = []tale{
	{"JavaMultiOverWhatGoHolds", javaMultiOverWhatGoHolds, []string{peer.Plain}},
	{"GoMultiOverWhatJavaHolds", goMultiOverWhatJavaHolds, []string{peer.Plain}},
}

// tell tells stories of all kinds that this Redisson has.
func (p *troupe) tell(t *testing.T, all ...tale) {
	t.Helper()
	p.forget()
	for _, s := range all {
		for _, kind := range s.kinds {
			if has(p.version, kind) {
				t.Run(fmt.Sprintf("%s/%s", s.name, kind), func(t *testing.T) {
					tell(t, func(t *testing.T) *world { return p.world(t, kind) }, s.story)
				})
			}
		}
	}
	p.wantTold(t)
}

// Behind sentinels messages are classic ones, as with one server.
func TestBehindSentinels(t *testing.T) {
	needsServers(t)
	t.Parallel()
	s := sentinels(t)
	for _, version := range versions {
		for driver := range adapters {
			t.Run(version+"/"+driver, func(t *testing.T) { s.troupe(t, version, driver).tell(t, wakes...) })
		}
	}
	for version, driver := range map[string]string{peer.Newest: "rueidis", peer.Oldest: "goredis"} {
		t.Run(version+"/no replica", func(t *testing.T) {
			p := s.troupe(t, version, driver)
			tell(t, func(t *testing.T) *world { return p.world(t, peer.Plain) }, noReplicaAcknowledges)
		})
	}
}

// In a cluster both sides have to tell in the same way: a new Redisson by sharded
// Pub/Sub unless it is told otherwise, an old one by classic.
func TestInACluster(t *testing.T) {
	needsServers(t)
	t.Parallel()
	s := cluster(t)
	all := append(slices.Clone(wakes), multis...)
	for _, as := range []struct {
		version, mode string // of Redisson
		sharded       bool
		goes          redlatch.PubSub
		driver        string
		tales         []tale
	}{
		{peer.Newest, "", true, redlatch.PubSubAuto, "goredis", all},
		{peer.Newest, "AUTO", true, redlatch.PubSubAuto, "rueidis", all},
		{peer.Newest, "ON", true, redlatch.PubSubSharded, "goredis", wakes[:3]},
		{peer.Newest, "OFF", false, redlatch.PubSubClassic, "rueidis", wakes[:3]},
		{peer.Oldest, "", false, redlatch.PubSubClassic, "goredis", all},
		{peer.Oldest, "", false, redlatch.PubSubBoth, "rueidis", all},
	} {
		s.sharded, s.goes, s.redisson.Sharded = as.sharded, as.goes, as.mode
		t.Run(fmt.Sprintf("%s%s/%d/%s", as.version, as.mode, as.goes, as.driver), func(t *testing.T) {
			s.troupe(t, as.version, as.driver).tell(t, as.tales...)
		})
	}
	t.Run("fleet", func(t *testing.T) { fleets(t, s) })
}
