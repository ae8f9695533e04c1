package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/acl"
	"github.com/redlatch/redlatch/internal/testserver"
)

// A vault has the password of the user ann, or is closed.
type vault struct {
	mu       sync.Mutex
	password string
	err      error
	asked    int
	told     []string
}

func (v *vault) ask(ctx context.Context) (string, string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	if _, bounded := ctx.Deadline(); !bounded {
		return "", "", errors.New("asked without a limit")
	}
	return "ann", v.password, v.err
}

func (v *vault) set(password string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.password, v.err = password, err
	if password != "" {
		v.told = append(v.told, password)
	}
}

func (v *vault) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked
}

var errSealed = errors.New("the vault is sealed")

// logged is where a client logs.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A rotation is a change of the password of ann, at all servers, that is noticed
// because somebody cuts the connections.
type rotation struct {
	t       *testing.T
	opener  opener
	servers []*testserver.Server
	vault   vault
	log     logged
	shown   []string
}

func (r *rotation) client(s connect.Settings) *redlatch.Client {
	r.t.Helper()
	cfg := redlatch.Config{
		WatchdogTimeout: time.Minute, OutageTimeout: time.Minute,
		Logger: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	c, err := r.opener.open(s, cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// server sets the password of ann at the servers, and cuts her connections.
func (r *rotation) server(password string) {
	r.t.Helper()
	for _, s := range r.servers {
		words := testserver.Rule(s.Kind(), acl.Rule{}).Words()
		if role, ok := s.MustDo("ROLE").([]any); ok && role[0] == "sentinel" {
			words = acl.Sentinel(testserver.Rule(s.Kind(), acl.Rule{}).Version)
		}
		s.MustDo(slices.Concat([]string{"ACL", "SETUSER", "ann", "reset", "on", ">" + password}, words)...)
		for _, kind := range []string{"normal", "pubsub"} {
			s.MustDo("CLIENT", "KILL", "USER", "ann", "TYPE", kind)
		}
	}
}

// story is: a holds what b waits for, while the password changes.
func (r *rotation) story(s connect.Settings) {
	t := r.t
	s.Timeout = 500 * time.Millisecond
	s.Credentials = r.vault.ask
	r.vault.set("hunter1", nil)
	r.server("hunter1")
	a, b := r.client(s), r.client(s)
	hold, err := a.Lock("rotated").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		hold, err := b.Lock("rotated").Acquire(t.Context())
		if err == nil {
			err = hold.Release(t.Context())
		}
		got <- err
	}()

	// The servers know the new password before the vault does; then the vault does
	// not answer; then it has it.
	r.server("hunter2")
	r.wantTried(3)
	r.vault.set("", errSealed)
	r.wantTried(3)
	err = r.fails(s, errSealed.Error())
	if !errors.Is(err, redlatch.ErrUnavailable) || !errors.Is(err, errSealed) || !redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "connect: the credentials: the vault is sealed") {
		t.Errorf("while the vault is sealed: %v", err)
	}
	var re *driver.RunError
	if !errors.As(err, &re) || re.Outcome != driver.NotExecuted {
		t.Errorf("while the vault is sealed: %v, want that it was not executed", err)
	}
	r.vault.set("hunter0", nil)
	err = r.fails(s, "WRONGPASS")
	if !errors.Is(err, redlatch.ErrUnavailable) || !redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with the wrong password: %v", err)
	}
	r.vault.set("hunter2", nil)

	if err := a.Lock("other").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := hold.Err(); err != nil {
		t.Errorf("the hold: %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-got:
		if err != nil {
			t.Errorf("the waiter: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the waiter does not go on")
	}
	for _, text := range append(r.shown, r.log.String(), fmt.Sprint(s), fmt.Sprintf("%+v %#v", s, s)) {
		if strings.Contains(text, "hunter") {
			t.Errorf("a password is shown: %s", text)
		}
	}
}

// wantTried waits until the vault has been asked a few times more.
func (r *rotation) wantTried(n int) {
	r.t.Helper()
	n += r.vault.count()
	for end := time.Now().Add(time.Minute); r.vault.count() < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("nobody connects again")
		}
	}
}

// fails returns the error of a new client.
func (r *rotation) fails(s connect.Settings, want string) error {
	r.t.Helper()
	err := r.opener.failure(r.t, s, want)
	for e := err; e != nil; e = errors.Unwrap(e) {
		r.shown = append(r.shown, e.Error(), fmt.Sprintf("%+v", e))
	}
	return err
}

// each tells the story with each of the openers, at the same servers.
func each(t *testing.T, servers []*testserver.Server, settings func(o opener, v *vault) connect.Settings) {
	t.Helper()
	for _, o := range openers {
		t.Run(o.name, func(t *testing.T) {
			r := &rotation{t: t, opener: o, servers: servers}
			r.story(settings(o, &r.vault))
		})
	}
}

func TestCredentialsThatRotate(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, kind)
			each(t, []*testserver.Server{s}, func(opener, *vault) connect.Settings { return connect.Settings{Addresses: []string{s.Addr()}} })
		})
	}
	if testing.Short() {
		return // what follows is for make check
	}
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s := testserver.StartSentinels(t, testserver.Redis)
		each(t, slices.Concat(s.Data, s.Sentinels), func(o opener, v *vault) connect.Settings {
			settings := connect.Settings{Mode: connect.Sentinel, Addresses: s.Addrs(), MasterName: s.Name, SentinelCredentials: v.ask}
			if o.name != "goredis" {
				return settings
			}
			if _, err := o.open(settings, redlatch.Config{}); err == nil || !strings.Contains(err.Error(), "SentinelUser") {
				t.Errorf("go-redis would ask a function for the credentials of sentinels: %v", err)
			}
			for _, n := range s.Sentinels {
				rights := acl.Sentinel(testserver.Rule(n.Kind(), acl.Rule{}).Version)
				n.MustDo(slices.Concat([]string{"ACL", "SETUSER", "bob", "reset", "on", ">hunter3"}, rights)...)
			}
			settings.SentinelCredentials, settings.SentinelUser, settings.SentinelPassword = nil, "bob", "hunter3"
			return settings
		})
	})
	t.Run("sentinels have their own", func(t *testing.T) {
		t.Parallel()
		s := testserver.StartSentinels(t, testserver.Valkey)
		for _, n := range s.Sentinels {
			n.MustDo(slices.Concat([]string{"ACL", "SETUSER", "bob", "reset", "on", ">hunter3"}, acl.Sentinel(""))...)
			n.MustDo("ACL", "SETUSER", "default", "off")
		}
		each(t, s.Data, func(opener, *vault) connect.Settings {
			return connect.Settings{Mode: connect.Sentinel, Addresses: s.Addrs(), MasterName: s.Name, SentinelUser: "bob", SentinelPassword: "hunter3"}
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := testserver.StartCluster(t, testserver.Redis)
		each(t, c.Nodes, func(opener, *vault) connect.Settings {
			return connect.Settings{Mode: connect.Cluster, Addresses: c.Addrs()}
		})
	})
}

// Who does not answer is not waited for.
func TestCredentialsThatDoNotCome(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis)
	never := make(chan struct{})
	defer close(never)
	settings := connect.Settings{
		Addresses: []string{s.Addr()}, Timeout: 300 * time.Millisecond,
		Credentials: func(context.Context) (string, string, error) { <-never; return "", "", nil },
	}
	for _, o := range openers {
		start := time.Now()
		err := o.failure(t, settings, "answer")
		if !errors.Is(err, redlatch.ErrUnavailable) || !strings.Contains(err.Error(), "no answer within") && !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s: %v", o.name, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: it took %v", o.name, took)
		}
	}
}
