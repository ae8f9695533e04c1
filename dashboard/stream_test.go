package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/overview"
)

// A listener is a browser that listens.
type listener struct {
	*testing.T

	body   *bufio.Reader
	end    context.CancelFunc
	answer *pipeWriter
	done   chan struct{}
}

// A pipeWriter is a ResponseWriter whose reader is a browser.
type pipeWriter struct {
	*io.PipeWriter

	head http.Header
	code chan int

	mu    sync.Mutex
	timer *time.Timer
}

func (w *pipeWriter) Header() http.Header { return w.head }

func (w *pipeWriter) Flush() {}

func (w *pipeWriter) WriteHeader(code int) {
	select {
	case w.code <- code:
	default:
	}
}

// SetWriteDeadline ends the stream then, as over HTTP/2, whether anybody writes or
// not.
func (w *pipeWriter) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if !at.IsZero() {
		w.timer = time.AfterFunc(time.Until(at), func() { _ = w.CloseWithError(context.DeadlineExceeded) })
	}
	return nil
}

func (w *pipeWriter) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.PipeWriter.Write(text)
}

func listen(t *testing.T, h *Handler, target string) *listener {
	t.Helper()
	read, write := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	l := &listener{T: t, body: bufio.NewReader(read), end: end, done: make(chan struct{}), answer: &pipeWriter{PipeWriter: write, head: http.Header{}, code: make(chan int, 1)}}
	go func() {
		defer close(l.done)
		defer write.Close()
		h.ServeHTTP(l.answer, httptest.NewRequest(http.MethodGet, target, nil).WithContext(ctx))
	}()
	t.Cleanup(func() { end(); _ = read.Close(); <-l.done })
	return l
}

// hears returns the next event: its name and the parts in it.
func (l *listener) hears() (event string, parts map[string]string) {
	l.Helper()
	for {
		line, err := l.body.ReadString('\n')
		if err != nil {
			l.Fatal(err)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = strings.TrimSpace(name)
		}
		data, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		if event == "look" {
			if err := json.Unmarshal([]byte(data), &parts); err != nil {
				l.Fatal(err)
			}
		}
		return event, parts
	}
}

// A browser hears what has changed, that the server does not answer, and that it
// does again.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		s.set(nil, held("orders", "billing"))
		h := handler(t, s, Options{})
		l := listen(t, h, "/events?")
		_, first := l.hears() // there was no look yet
		contains(t, first["state"], "Asking")
		_, second := l.hears()
		contains(t, second["state"], "Live")
		contains(t, second["main"], "orders", "billing")
		_, third := l.hears()
		if _, again := third["main"]; again || third["time"] == "" {
			t.Errorf("%q", third)
		}
		s.set(errors.New("<connection refused>"))
		_, down := l.hears()
		contains(t, down["state"], "has not answered since", "&lt;connection refused&gt;")
		if _, gone := down["main"]; gone {
			t.Error("the last list is gone")
		}
		s.set(nil, held("stock", "shipping"))
		for {
			if _, up := l.hears(); strings.Contains(up["state"], "Live") {
				contains(t, up["main"], "stock")
				break
			}
		}
		if got := l.answer.head.Get("Content-Type"); got != "text/event-stream" {
			t.Error(got)
		}
		l.end()
		<-l.done
		synctest.Wait()
		looks, _ := s.asked()
		time.Sleep(time.Hour)
		if again, _ := s.asked(); again != looks {
			t.Errorf("nobody looks, and it asks on: %d, %d", looks, again)
		}
	})
}

// However many look, the server is asked once; and once more for each lock that
// they show.
func TestManyShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		h := handler(t, s, Options{})
		var all []*listener
		for i := range 40 {
			all = append(all, listen(t, h, fmt.Sprint("/events?name=l", i%2)))
		}
		for _, l := range all {
			for {
				if _, parts := l.hears(); strings.Contains(parts["main"], "Nothing is stored") {
					break
				}
			}
		}
		looks, names := s.asked()
		if looks > 2 || len(names) != 2 { // some may have come when the first had begun
			t.Errorf("%d looks, of %q at last", looks, names)
		}
	})
}

// A browser that takes nothing is left, and nobody waits for it.
func TestASlowBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handler(t, &source{}, Options{})
		slow := listen(t, h, "/events?")
		other := listen(t, h, "/events?")
		start := time.Now()
		for range 3 {
			other.hears()
		}
		if took := time.Since(start); took > 2*defaultInterval {
			t.Errorf("the other one waited %v", took)
		}
		go func() { // it goes on to listen
			for {
				if _, err := other.body.ReadString('\n'); err != nil {
					return
				}
			}
		}()
		<-slow.done
		if took := time.Since(start); took > 2*mostSending {
			t.Errorf("it was left after %v", took)
		}
	})
}

// A page that has nothing to say is heard nevertheless.
func TestASilentLookIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listen(t, handler(t, &source{}, Options{Interval: time.Hour}), "/events?")
		l.hears()
		l.hears()
		start := time.Now()
		if event, _ := l.hears(); event != "alive" || time.Since(start) > beat {
			t.Errorf("%s after %v", event, time.Since(start))
		}
	})
}

func TestThereIsRoomForSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handler(t, &source{}, Options{})
		open := func(target string) int { return <-listen(t, h, target).answer.code }
		for i := range mostNames {
			if code := open(fmt.Sprint("/events?name=l", i)); code != http.StatusOK {
				t.Fatalf("%d: %d", i, code)
			}
		}
		if code := open("/events?name=more"); code != http.StatusServiceUnavailable {
			t.Errorf("%d", code)
		}
		for i := mostNames; i < mostViewers; i++ {
			if code := open("/events?name=l1"); code != http.StatusOK {
				t.Fatalf("%d: %d", i, code)
			}
		}
		w := get(t, h, "/events?")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d", w.Code)
		}
		contains(t, w.Body.String(), "200 pages are open")
	})
}

// Close ends what is open and what is asked, and what comes later is refused.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		h := newHandler(func(ctx context.Context, _ []string) (overview.Listing, error) {
			close(asked)
			<-ctx.Done()
			return overview.Listing{}, ctx.Err()
		}, Options{})
		l := listen(t, h, "/events?")
		l.hears()
		<-asked
		h.Close()
		<-l.done
		h.Close()
		for _, target := range []string{"/", "/events?"} {
			if w := get(t, h, target); w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: %d", target, w.Code)
			}
		}
	})
}

// A server that gives no answer at all is said to be down, and a page is made
// meanwhile: it does not say that nothing is held.
func TestAServerThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(func(ctx context.Context, _ []string) (overview.Listing, error) {
			<-ctx.Done()
			return overview.Listing{}, ctx.Err()
		}, Options{})
		defer h.Close()
		l := listen(t, h, "/events?")
		start := time.Now()
		w := get(t, h, "/")
		if took := time.Since(start); took > mostWaiting {
			t.Errorf("the page took %v", took)
		}
		unknown := func(text string) {
			t.Helper()
			contains(t, text, "Nothing is known of the locks yet")
			if strings.Contains(text, "No lock is held") || strings.Contains(text, "listed") {
				t.Errorf("it says how many locks there are:\n%s", text)
			}
		}
		contains(t, w.Body.String(), "Asking the server")
		unknown(w.Body.String())
		_, parts := l.hears()
		unknown(parts["main"])
		for {
			event, parts := l.hears()
			if event == "look" {
				contains(t, parts["state"], "has not answered since", "no answer for 30s")
				unknown(get(t, h, "/?filter=x").Body.String())
				return
			}
		}
	})
}

// What was seen before nobody was there is not called live until there is another
// look.
func TestWhatIsOldIsNotLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down error
		blocked := make(chan struct{})
		close(blocked)
		h := newHandler(func(context.Context, []string) (overview.Listing, error) {
			<-blocked
			return overview.Listing{At: time.Now(), Locks: []overview.Lock{held("orders", "billing")}}, down
		}, Options{})
		defer h.Close()
		for _, down = range []error{nil, errors.New("no connection")} {
			want := map[bool]string{true: "Live", false: "has not answered since"}[down == nil]
			contains(t, get(t, h, "/").Body.String(), want)
			time.Sleep(time.Hour)
			blocked = make(chan struct{})
			first := make(chan string, 1)
			go func() { first <- get(t, h, "/").Body.String() }()
			synctest.Wait()
			stream := listen(t, h, "/events?")
			_, parts := stream.hears()
			for _, text := range []string{get(t, h, "/").Body.String(), <-first, parts["state"]} {
				contains(t, text, "Asking the server")
				if strings.Contains(text, want) {
					t.Errorf("%q is said of an hour ago", want)
				}
			}
			close(blocked)
			_, parts = stream.hears()
			contains(t, parts["state"], want)
			stream.end()
			<-stream.done
			time.Sleep(time.Hour)
		}
	})
}
