package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// Options say what the pages show. The zero value is right for most programs.
type Options struct {
	// Pattern is a glob for the names of the locks that are listed, as of
	// [github.com/redlatch/redlatch/admin.Admin.Locks]. Zero means all. It hides
	// nothing: the page of any lock can be opened by its name. The page of a lock that
	// is not listed has no bars.
	Pattern string
	// Interval is how long to wait after one look for the next. It is at least a
	// second. Zero means 5 seconds.
	Interval time.Duration
	// Server is what the pages show as the server, such as its address. Zero means
	// that they show nothing.
	Server string
	// Mask is for credentials that may stand in texts, such as a server's errors. It
	// is called with each text before the text is shown, and returns what is shown
	// instead. It must not block. It cannot hide names, because a link contains the
	// name of its lock as it is. Zero means that nothing is hidden.
	Mask func(text string) string
}

const (
	defaultInterval = 5 * time.Second
	leastInterval   = time.Second
)

// A Handler serves the pages. It answers GET and HEAD only. Its methods may be
// called by several goroutines at a time.
type Handler struct {
	o     Options
	watch *watch
}

// New returns a handler that asks a client. Close the handler before the client.
//
// Callers that wait for one another are shown as a possible deadlock when they
// have waited for the client's Config.SlowWait.
func New(client *redlatch.Client, o Options) *Handler {
	lister := overview.Lister{Client: client, Pattern: o.Pattern, Lost: true}
	return newHandler(lister.ListWith, o)
}

func newHandler(list lister, o Options) *Handler {
	switch {
	case o.Interval == 0:
		o.Interval = defaultInterval
	case o.Interval < leastInterval:
		o.Interval = leastInterval
	}
	return &Handler{o: o, watch: newWatch(list, o.Interval)}
}

// Close ends all open pages, and whatever is being asked. When it returns, the
// only goroutines of the handler are those that the server runs for open pages,
// and they are about to end. A server that shuts down waits for these: see
// [http.Server.RegisterOnShutdown]. Close may be called again.
func (h *Handler) Close() { h.watch.close() }

//go:embed web
var web embed.FS

// The files that the pages load.
var files = map[string]file{
	"app.js":    read("app.js", "text/javascript; charset=utf-8"),
	"style.css": read("style.css", "text/css; charset=utf-8"),
	"icon.svg":  read("icon.svg", "image/svg+xml"),
}

type file struct {
	text      []byte
	mime, tag string
}

func read(name, mime string) file {
	text, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha256.Sum256(text)
	return file{text, mime, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// policy lets a page load what this handler has, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP answers a request. The path of the request must be the part below the
// place where the handler is mounted.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !admit(w, r) {
		return
	}
	head := w.Header()
	name := strings.TrimPrefix(r.URL.Path, "/")
	if f, ok := files[name]; ok {
		head.Set("Cache-Control", "no-cache") // but with its tag
		head.Set("Content-Type", f.mime)
		head.Set("ETag", f.tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.text))
		return
	}
	var q query
	var err error
	switch name {
	case "":
		q, err = asked(r, false)
	case "lock":
		q, err = asked(r, true)
	case "events":
		q, err = asked(r, r.URL.Query().Has("name"))
	default:
		http.NotFound(w, r)
		return
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case name == "events":
		h.stream(w, r, q)
	default:
		h.page(w, r, q)
	}
}

// admit says what a browser may do with the answer, and whether there is to be
// one: else it has refused the request.
func admit(w http.ResponseWriter, r *http.Request) bool {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD: nothing is changed here", http.StatusMethodNotAllowed)
		return false
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
		http.Error(w, "another site's page cannot ask for this", http.StatusForbidden)
		return false
	}
	return true
}

// page answers with a whole page.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, q query) {
	if err := h.watch.current(r.Context(), q.name, mostWaiting); err != nil {
		unavailable(w, err)
		return
	}
	var text writer
	text.page(h.view(q))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, text.String()) // a browser that is gone is told nothing
}

// unavailable says why there is nothing.
func unavailable(w http.ResponseWriter, err error) {
	if errors.Is(err, errFull) || errors.Is(err, errNames) {
		w.Header().Set("Retry-After", "10")
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// text is a text of the server's or of a client's, as it may be shown.
func (h *Handler) text(s string) string {
	if h.o.Mask != nil {
		s = h.o.Mask(s)
	}
	return overview.Printable(s)
}
