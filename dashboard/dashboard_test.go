package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/overview"
)

// A source is what the pages ask instead of a server.
type source struct {
	mu    sync.Mutex
	locks []overview.Lock
	err   error
	wrong string // what is wrong with what clients say
	looks int
	names []string // of the last look
}

func (s *source) list(_ context.Context, names []string) (overview.Listing, error) {
	time.Sleep(time.Millisecond) // in fake time: until everybody waits for it
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	s.names = names
	if s.err != nil {
		return overview.Listing{}, s.err
	}
	listing := overview.Listing{At: time.Now(), Locks: append([]overview.Lock{}, s.locks...), Problem: s.wrong, Looked: map[string]overview.Looked{}}
	for _, name := range names {
		looked := overview.Lock{Name: name, Kind: "lock"}
		for _, lock := range s.locks {
			if lock.Name == name {
				looked = lock
			}
		}
		listing.Looked[name] = overview.Looked{Lock: looked}
	}
	return listing, nil
}

// set changes what the server has, or why it does not answer.
func (s *source) set(err error, locks ...overview.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.locks = err, locks
}

// asked is how often it was asked, and for which names the last time.
func (s *source) asked() (looks int, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.names
}

func held(name, by string) overview.Lock {
	ms := int64(12_300)
	return overview.Lock{
		Name: name, Kind: "lock", Held: true, Exists: true, TTL: 30_000,
		Holders: []overview.Holder{{Owner: by + ":1", Client: by, Redlatch: true, Count: 1, TTL: 30_000, Told: overview.Told{By: by, For: &ms}}},
	}
}

func handler(t *testing.T, s *source, o Options) *Handler {
	t.Helper()
	h := newHandler(s.list, o)
	t.Cleanup(h.Close)
	return h
}

func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// What a browser may load and do is what the pages need, on every answer.
func TestHeaders(t *testing.T) {
	h := handler(t, &source{}, Options{})
	for target, want := range map[string]int{"/": 200, "/lock?name=x": 200, "/lock": 400, "/app.js": 200, "/style.css": 200, "/icon.svg": 200, "/none": 404, "/web/page.html": 404} {
		w := get(t, h, target)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s: %q", target, name, got)
			}
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "data:") {
		t.Error(policy)
	}
	if got := get(t, h, "/").Header().Get("Cache-Control"); got != "no-store" {
		t.Error(got)
	}
	script := get(t, h, "/app.js")
	again := httptest.NewRequest(http.MethodGet, "/app.js", nil)
	again.Header.Set("If-None-Match", script.Header().Get("ETag"))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, again); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// There is nothing that changes anything, and no way for the page of another site
// to ask.
func TestItOnlyShows(t *testing.T) {
	s := &source{}
	h := handler(t, s, Options{})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/events", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("%d", w.Code)
	}
	if looks, _ := s.asked(); looks != 0 {
		t.Errorf("the server was asked %d times", looks)
	}
}

var loads = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)

// Below any path the pages find what they need, for all links are relative.
func TestBelowAPath(t *testing.T) {
	s := &source{}
	s.set(nil, held("orders:42", "billing"))
	mux := http.NewServeMux()
	mux.Handle("/a/b/", http.StripPrefix("/a/b", handler(t, s, Options{})))
	for _, page := range []string{"/a/b/", "/a/b/lock?name=orders%3A42"} {
		text := get(t, mux, page).Body.String()
		links := loads.FindAllStringSubmatch(text, -1)
		if len(links) < 5 {
			t.Fatalf("%d links in\n%s", len(links), text)
		}
		base, err := url.Parse("http://h" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			to, err := base.Parse(html.UnescapeString(l[1]))
			if err != nil || to.Host != "h" || !strings.HasPrefix(to.Path, "/a/b/") {
				t.Errorf("%s has the link %q: %v", page, l[1], err)
				continue
			}
			if w := get(t, mux, to.RequestURI()); w.Code != http.StatusOK {
				t.Errorf("%s: %d", to, w.Code)
			}
		}
	}
}

// A name is any bytes. None makes an element, or hides what it is, and each has a
// link that leads to it.
func TestNamesAreText(t *testing.T) {
	for _, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, `../../x?y=z&name=other#f`, "\xff\xfe\x00", "a\nb\r\x1b[2J\u202e\u200b",
		`</title></desc></svg><b>x`, "{{.}}", "1 y+z%41",
	} {
		s := &source{}
		l := held(name, name)
		ms := int64(1000)
		l.Waiting = []overview.Claim{{Owner: name, Client: name, Mode: name, Told: overview.Told{By: name, For: &ms, Site: name}}}
		l.Holders[0].Note = name
		l.Claims = []overview.Claim{{Owner: name, Told: overview.Told{Note: name}}}
		l.Lost = []overview.Claim{{Reason: name, Told: overview.Told{By: name}}}
		l.Deadlocks = [][]overview.Wait{{{By: name, Name: name, WaitSite: name, HoldSite: name}}}
		s.set(nil, l)
		h := handler(t, s, Options{Server: name})
		page := get(t, h, "/").Body.String()
		found := regexp.MustCompile(`href="(lock\?name=[^"]*)"`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("%q has no link in\n%s", name, page)
		}
		found[1] = html.UnescapeString(found[1])
		to, err := url.Parse(found[1])
		if err != nil || to.Query().Get("name") != name {
			t.Errorf("%q is linked by %q: %v", name, found[1], err)
		}
		one := get(t, h, "/"+found[1])
		if one.Code != http.StatusOK {
			t.Errorf("%q: %d", name, one.Code)
		}
		filtered := get(t, h, "/?"+url.Values{"filter": {name}}.Encode())
		if filtered.Code != http.StatusOK {
			t.Errorf("a filter of %q: %d", name, filtered.Code)
		}
		none := get(t, h, "/?"+url.Values{"filter": {"none of " + name}}.Encode())
		for _, text := range []string{page, one.Body.String(), filtered.Body.String(), none.Body.String()} {
			for _, bad := range []string{"<script>", "<img", "onerror=alert(1)>", "<b>x", "\x1b", "\u202e", "\u200b", "\x00", "\xff"} {
				if strings.Contains(text, bad) {
					t.Errorf("%q is shown as %q", name, bad)
				}
			}
		}
	}
}

// What is shown of a lock.
func TestALock(t *testing.T) {
	s := &source{}
	stock, orders := held("stock", "shipping"), held("orders", "billing")
	ms, others := int64(3200), 2
	orders.Waiting = []overview.Claim{{Owner: "o", Client: "shipping", Told: overview.Told{By: "shipping", For: &ms, Site: "pack.go:61"}, Under: []string{"shipping:1"}}}
	orders.Others = &others
	orders.Token, orders.Holders[0].Note = 7, "row 4 <of> 9"
	s.set(nil, orders, stock)
	h := handler(t, s, Options{})
	text := get(t, h, "/lock?name=orders").Body.String()
	contains(t, text, "<h1>orders</h1>", "lock, held", "12.3s", "billing", "shipping", "pack.go:61", "<dt>Note</dt><dd>row 4 &lt;of&gt; 9</dd>", `<a href="lock?name=stock">stock</a>`, "And 2 that do not say who they are.", ">7<",
		"billing holds it; shipping waits for it; shipping holds stock; 2 more wait.", "1 look, from", "now 12.3s, at most 12.3s", "held by billing")
	text = get(t, h, "/lock?name=none").Body.String()
	contains(t, text, "<h1>none</h1>", "Nothing is stored under this name")
	if strings.Contains(text, "<svg class=\"drawing\"") {
		t.Error("it draws nobody")
	}
}

// Of a semaphore there are permits, and how it stands; of a lock that cannot be
// had, why.
func TestOtherPages(t *testing.T) {
	two, three := 2, 3
	s := &source{wrong: "clients could not be asked <who>"}
	s.set(nil, overview.Lock{
		Name: "encoder", Kind: redlatch.KindExpirable, Exists: true, Held: true, TTL: -1, Count: &two, Total: &three, Holders: []overview.Holder{{Owner: "permit", TTL: 1500, Count: 1}},
	})
	h := handler(t, s, Options{})
	contains(t, get(t, h, "/").Body.String(), "2 of 3 free", "clients could not be asked &lt;who&gt;")
	contains(t, get(t, h, "/lock?name=encoder").Body.String(), "expirable semaphore, 2 of 3 free", "Permits taken", "1.5s", "clients could not be asked &lt;who&gt;")
	refused := newHandler(func(_ context.Context, names []string) (overview.Listing, error) {
		listing := overview.Listing{At: time.Now(), Looked: map[string]overview.Looked{}}
		for _, name := range names {
			listing.Looked[name] = overview.Looked{Err: errors.New("WRONGTYPE <b>")}
		}
		return listing, nil
	}, Options{})
	defer refused.Close()
	contains(t, get(t, refused, "/lock?name=x").Body.String(), "<h1>x</h1>", "WRONGTYPE &lt;b&gt;", "Live")
}

// A page said "readRedis does not have that" of a claim, "1 times" of a permit, "5
// in 0s" of a rate, and for how long ago a hold was lost as if it had been held
// for so long.
func TestWhatIsSaidOfCallersAndRatesCanBeRead(t *testing.T) {
	ms, one := int64(3200), 1
	claim := func(reason, mode, evidence string) overview.Claim {
		return overview.Claim{Kind: redlatch.KindReadWrite, Mode: mode, Reason: reason, Evidence: evidence, Count: 1, Told: overview.Told{By: "billing", For: &ms}}
	}
	for _, tc := range []struct {
		lock overview.Lock
		want []string
		not  string
	}{
		{
			overview.Lock{Kind: redlatch.KindReadWrite, Who: overview.Who{Claims: []overview.Claim{claim("", "read", "not stored")}}},
			[]string{"<dt>What</dt><dd>read, Redis does not have that: it is false, or over</dd>", "<dt>For</dt><dd>3.2s</dd>"},
			"readRedis",
		},
		{
			overview.Lock{Kind: redlatch.KindReadWrite, Who: overview.Who{Claims: []overview.Claim{claim("", "write", "")}}},
			[]string{"<dd>write, Redis does not have that"},
			"permit",
		},
		{
			overview.Lock{Kind: redlatch.KindReadWrite, Who: overview.Who{Lost: []overview.Claim{claim("expired", "read", "")}}},
			[]string{"<dt>Ago</dt><dd>3.2s</dd>", "<dd>read, expired</dd>"},
			"<dt>For</dt>",
		},
		{
			overview.Lock{Kind: redlatch.KindExpirable, Held: true, Count: &one, Total: &one, Holders: []overview.Holder{{Owner: "permit", TTL: 1500, Count: 1}}},
			[]string{"permit"},
			"1 times",
		},
		{
			overview.Lock{Kind: redlatch.KindRateLimiter, Count: &one, Total: &one, Rate: &overview.Rate{Permits: 5, Interval: 10}},
			[]string{"<dd>5 in 10ms</dd>"},
			"in 0s",
		},
	} {
		s := &source{}
		tc.lock.Name, tc.lock.Exists = "x", true
		s.set(nil, tc.lock)
		text := get(t, handler(t, s, Options{}), "/lock?name=x").Body.String()
		contains(t, text, tc.want...)
		if strings.Contains(text, tc.not) {
			t.Errorf("%q stands in\n%s", tc.not, text)
		}
	}
}

func TestFilterAndSort(t *testing.T) {
	s := &source{}
	two, one := held("orders:2", "billing"), held("orders:1", "Shipping")
	ms := int64(1)
	two.Waiting = []overview.Claim{{Client: "c", Told: overview.Told{For: &ms}}}
	s.set(nil, one, two, held("stock", "else"))
	h := handler(t, s, Options{})
	rows := regexp.MustCompile(`<th scope="row"[^>]*><a href="lock\?name=([^"]*)"`)
	for target, want := range map[string]string{
		"/": "orders:2 orders:1 stock", "/?sort=name": "orders:1 orders:2 stock", "/?sort=no": "orders:2 orders:1 stock", "/?filter=RDERS": "orders:2 orders:1",
		"/?filter=shipp": "orders:1", "/?filter=o*:1": "orders:1", "/?filter=orders:%3F": "orders:2 orders:1", "/?filter=rders:%3F": "", "/?filter=(": "",
	} {
		var got []string
		for _, m := range rows.FindAllStringSubmatch(get(t, h, target).Body.String(), -1) {
			name, err := url.QueryUnescape(m[1])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s shows %q, want %q", target, got, want)
		}
	}
	contains(t, get(t, h, "/?filter=none").Body.String(), "Nothing matches", `value="none"`)
	contains(t, get(t, h, "/?sort=name").Body.String(), `<input type="hidden" name="sort" value="name">`, `aria-sort="ascending"`)
}

func TestManyLocks(t *testing.T) {
	s := &source{}
	var many []overview.Lock
	for i := range 1000 {
		many = append(many, held(fmt.Sprintf("n%04d", i), "x"))
	}
	s.set(nil, many...)
	text := get(t, handler(t, s, Options{}), "/").Body.String()
	contains(t, text, "<b>1000</b> listed", "750 more are not shown")
	if n := strings.Count(text, `scope="row"`); n != mostRows {
		t.Errorf("%d rows", n)
	}
}

func TestShort(t *testing.T) {
	for text, want := range map[string]string{"": "", "billing@host-7": "billing@host-7", strings.Repeat("x", 19): strings.Repeat("x", 19), strings.Repeat("x", 20): strings.Repeat("x", 19) + "…", strings.Repeat("\u6f22", 10): strings.Repeat("\u6f22", 9) + "…"} {
		if got := short(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A page that is opened again and again asks no more often than one that is open.
func TestPagesShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		s.set(nil, held("orders", "billing"))
		h := handler(t, s, Options{})
		for range 50 {
			get(t, h, "/")
			get(t, h, "/lock?name=orders")
		}
		if looks, _ := s.asked(); looks != 1 {
			t.Errorf("it asked %d times", looks)
		}
		start := time.Now()
		for i := range 10 {
			get(t, h, fmt.Sprint("/lock?name=none", i))
		}
		if looks, _ := s.asked(); looks != 11 || time.Since(start) < 9*leastInterval {
			t.Errorf("it asked %d times in %v", looks, time.Since(start))
		}
		time.Sleep(time.Hour)
		if looks, _ := s.asked(); looks != 11 {
			t.Errorf("nobody looks, and it asked %d times", looks)
		}
	})
}

// What must not be shown is not, wherever the text comes from.
func TestMask(t *testing.T) {
	s := &source{}
	s.set(errors.New("no user hunter2"))
	h := handler(t, s, Options{Mask: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }})
	text := get(t, h, "/").Body.String()
	contains(t, text, "no user ***")
	if strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}

// Where nobody looked there is a gap.
func TestSparkline(t *testing.T) {
	h := handler(t, &source{}, Options{})
	at := time.Unix(1_700_000_000, 0).UTC()
	var points []overview.Point
	for i := range 200 {
		if i == 190 {
			at = at.Add(time.Hour)
		}
		at = at.Add(5 * time.Second)
		points = append(points, overview.Point{At: at, Waiters: i % 3})
	}
	line := h.sparkline("x", "X", points, func(p overview.Point) (int, string) { return p.Waiters, fmt.Sprint(p.Waiters) })
	if len(line.Bars) != 80 || len(line.Gaps) != 1 || line.Bars[79].X > float64(line.Width) || !strings.HasPrefix(line.Desc, "120 looks, from ") || line.Text != "now 1, at most 2" {
		t.Errorf("%d bars, gaps %v, %s, %s", len(line.Bars), line.Gaps, line.Desc, line.Text)
	}
}
