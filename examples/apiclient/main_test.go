package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/examples/internal/embedded"
	"github.com/redlatch/redlatch/examples/internal/shown"
	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/ratelimit"
)

func TestMain(m *testing.M) {
	leaktest.Main(m, "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
}

// A body whose request is refused is closed, as http.RoundTripper wants it: else a
// file or a pipe behind it stays open.
func TestARefusedRequestClosesItsBody(t *testing.T) {
	processes, stop, err := embedded.Clients(1)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	body := &closable{Reader: strings.NewReader("text")}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1", body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := limited{ratelimit.New(processes[0], "api", rate), http.DefaultTransport}.RoundTrip(r)
	if err == nil {
		_ = answer.Body.Close()
	}
	if !errors.Is(err, context.Canceled) || !body.closed {
		t.Errorf("%v; the body is closed: %v", err, body.closed)
	}
}

type closable struct {
	io.Reader

	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }

// The program does what its README says, and sees for itself that it does.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	shown.Check(t, out.String())
}
