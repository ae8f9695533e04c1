package dashboard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// chromium is the browser's program.
func chromium(t *testing.T) string {
	t.Helper()
	name := os.Getenv("REDLATCH_CHROMIUM")
	if name == "" {
		name = "chromium"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: scripts/chromium.sh installs Chromium, or REDLATCH_CHROMIUM names its program", err)
	}
	return path
}

// A browser is one page of a Chromium, and what it has asked for and complained about.
type browser struct {
	*testing.T

	ctx context.Context //nolint:containedctx // chromedp's
	own string          // what the URLs begin with that it may ask for

	mu       sync.Mutex
	asked    []string
	problems []string
}

// newBrowser starts a Chromium that may ask one server. A page that asks another one, or that does
// what its policy forbids, or that throws an error, fails the test.
func newBrowser(t *testing.T, own string) *browser {
	t.Helper()
	b := &browser{T: t, own: own}
	options := append(
		slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(filepath.Join(t.TempDir(), "chromium")), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true), chromedp.Flag("no-pings", true),
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1280, 900), chromedp.Env("TZ=UTC", "LANG=C.UTF-8"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(bg, options...)
	t.Cleanup(end)
	b.ctx, end = chromedp.NewContext(allocator)
	t.Cleanup(end)
	t.Cleanup(func() {
		if err := chromedp.Cancel(b.ctx); err != nil {
			t.Logf("ending the browser: %v", err)
		}
	})
	b.ok(chromedp.Listen(b.ctx, b.hear))
	_, err := chromedp.Call(b.ctx, audits.Enable, cdp.Empty{})
	b.ok(err)
	t.Cleanup(b.blame)
	return b
}

func (b *browser) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// hear notes what the browser tells of itself.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	problem := func(format string, args ...any) { b.problems = append(b.problems, fmt.Sprintf(format, args...)) }
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, event.Request.URL)
		if !strings.HasPrefix(event.Request.URL, b.own) {
			problem("it asks for %s", event.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		problem("a script fails: %s", event.ExceptionDetails.Text)
	case *audits.EventIssueAdded:
		problem("an issue: %s", event.Issue.Code)
	case *cdplog.EventEntryAdded:
		if !strings.Contains(event.Entry.Text, "net::ERR_") { // a server that is gone
			problem("it logs: %s", event.Entry.Text)
		}
	}
}

// blame fails the test for what the browser has complained about.
func (b *browser) blame() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		b.Error(problem)
	}
	if len(b.asked) == 0 {
		b.Error("no request was seen")
	}
}

// do does something in the browser.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	b.ok(chromedp.Do(ctx, steps...))
}

// open opens a page.
func (b *browser) open(url string) {
	b.Helper()
	b.do(chromedp.Navigate(url))
}

// value is what an expression of JavaScript is.
func value[T any](b *browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true, on whatever page is open then.
func (b *browser) until(what, expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && yes {
			return
		}
		select { // a page that is about to be left, or is not there yet, throws an error
		case <-ctx.Done():
			b.Fatalf("never happened: %s: %v; the page shows\n%s", what, err, b.text())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// says waits until the page shows a text.
func (b *browser) says(text string) {
	b.Helper()
	b.until(strconv.Quote(text), "document.body.innerText.includes("+strconv.Quote(text)+")")
}

// text is what the page shows.
func (b *browser) text() string { return value[string](b, "document.body.innerText") }

// types types keys.
func (b *browser) types(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// looksAs sets the width of the page, and whether its user likes it dark.
func (b *browser) looksAs(width int64, scheme string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.ok(err)
}

// photograph keeps a picture of the whole page: see go test -artifacts.
func (b *browser) photograph(name string) {
	b.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(b.ArtifactDir(), name+".png"), picture, 0o600))
}

// focus gives an element the focus.
func focus(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Focus(chromedp.CSS(selector))
}

// withoutScripts has pages run none of their own.
func (b *browser) withoutScripts() {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.ok(err)
}

// reloads waits until the page is loaded again, by itself.
func (b *browser) reloads() {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for _, err := range chromedp.Events(ctx, page.LoadEventFired) {
		b.ok(err)
		return
	}
}
