package connect

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redissonyaml"
	"github.com/redlatch/redlatch/redlatchgoredis"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

// connected counts the connections with a name.
func connected(t *testing.T, s *testserver.Server, name string) int {
	t.Helper()
	list, ok := s.MustDo("CLIENT", "LIST").(string)
	if !ok {
		t.Fatal("CLIENT LIST is no text")
	}
	return strings.Count(list, " name="+name+" ")
}

// awaitGone waits until no connection has the name: a server notices an end a
// little later.
func awaitGone(t *testing.T, s *testserver.Server, name string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); connected(t, s, name) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are left", connected(t, s, name))
		}
	}
}

// Programs forget to close two things in the right order.
func TestAClosedClientLeavesNoConnection(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	for _, o := range openers {
		settings := patient(settingsOf(t, "redis://"+s.Addr()+"?client_name=me"))
		c, err := o.open(settings, redlatch.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Lock("x").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if connected(t, s, "me") == 0 {
			t.Errorf("%s: there is no connection", o.name)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", o.name, err)
		}
		awaitGone(t, s, "me")

		// Nor does one that there is not.
		if _, err := o.open(settings, redlatch.Config{WatchdogTimeout: time.Millisecond}); !errors.Is(err, redlatch.ErrInvalid) {
			t.Errorf("%s: %v", o.name, err)
		}
		awaitGone(t, s, "me")
	}
}

func TestAClosedClientLeavesTheDriverToAnother(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	d, err := redlatchrueidis.New(rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true, ClientName: "me"})
	if err != nil {
		t.Fatal(err)
	}
	var clients []*redlatch.Client
	for range 2 {
		c, err := redlatch.New(d, redlatch.Config{OutageTimeout: 2 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if err := clients[0].Close(); err != nil {
		t.Error(err)
	}
	if err := clients[1].Lock("x").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := clients[1].Close(); err != nil {
		t.Error(err)
	}
	awaitGone(t, s, "me")
}

// What the program says goes before the file, what it does not say is the file's,
// and nobody has to ask for warnings.
func TestAFilesConfigIsTheClients(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	settings, err := redissonyaml.Parse([]byte("singleServerConfig: {address: 'redis://"+s.Addr()+"', connectionPoolSize: 3, timeout: 30000}\nlockWatchdogTimeout: 60000\nthreads: 3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ own, want time.Duration }{{0, time.Minute}, {45 * time.Second, 45 * time.Second}} {
		var log bytes.Buffer
		c, err := redlatchrueidis.OpenSettings(patient(settings), redlatch.Config{WatchdogTimeout: test.own, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		hold, err := c.Lock("x").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ttl, ok := s.MustDo("PTTL", "x").(int64); !ok || ttl > test.want.Milliseconds() || ttl < test.want.Milliseconds()/2 {
			t.Errorf("with %v the lock has %d ms left, want %v", test.own, ttl, test.want)
		}
		if err := errors.Join(hold.Release(t.Context()), c.Close()); err != nil {
			t.Error(err)
		}
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "level=WARN msg=\"a key of Redisson's file\" line=1 key=singleServerConfig.timeout") ||
			!strings.Contains(text, `keys="[singleServerConfig.connectionPoolSize threads]"`) {
			t.Errorf("the log is %s", text)
		}
	}
}

// A program's own client of Redis outlives what uses it.
func TestADriverOfTheProgramsOwnClientServesOneClientAfterTheOther(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	opt := rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true}
	own, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	for name, d := range map[string]driver.Redis{"rueidis": redlatchrueidis.Use(own, opt), "go-redis": redlatchgoredis.Use(rdb)} {
		for range 2 {
			c, err := redlatch.New(d, redlatch.Config{WatchdogTimeout: 3 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.Lock("x").Do(t.Context(), func(context.Context) error { return nil }), c.Close()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := own.Do(t.Context(), own.B().Ping().Build()).Error(); err != nil {
		t.Error(err)
	}
}
