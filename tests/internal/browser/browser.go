// Package browser drives a Chromium without a window, for tests.
package browser

import (
	"context"
	"flag"
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

// Patience is how long a test waits for what must happen.
const Patience = 2 * time.Minute

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

// A Browser is one page of a Chromium, and what it has asked for and complained
// about.
type Browser struct {
	*testing.T

	ctx context.Context //nolint:containedctx // chromedp's
	own string          // what the URLs begin with that it may ask for

	mu       sync.Mutex
	asked    []string
	problems []string
}

// Start starts a Chromium that may ask one server. A page that asks another one,
// or that does what its policy forbids, or that throws an error, fails the test.
func Start(t *testing.T, own string) *Browser {
	t.Helper()
	b := &Browser{T: t, own: own}
	options := append(
		slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(filepath.Join(t.TempDir(), "chromium")), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true), chromedp.Flag("no-pings", true),
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.WSURLReadTimeout(Patience), chromedp.WindowSize(1280, 900), chromedp.Env("TZ=UTC", "LANG=C.UTF-8"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
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

func (b *Browser) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// hear notes what the browser tells of itself.
func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	problem := func(format string, args ...any) { b.problems = append(b.problems, fmt.Sprintf(format, args...)) }
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, event.Request.URL)
		if !strings.HasPrefix(event.Request.URL, b.own) && !strings.HasPrefix(event.Request.URL, "data:") {
			problem("it asks for %s", event.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		problem("a script fails: %s", failure(event.ExceptionDetails))
	case *audits.EventIssueAdded:
		if generic := event.Issue.Details.GenericIssueDetails; generic == nil || generic.ErrorType != audits.GenericIssueErrorTypeFormEmptyIDAndNameAttributesForInputError {
			problem("an issue: %s", event.Issue.Code) // that one is about forms that fill themselves
		}
	case *cdplog.EventEntryAdded:
		if !strings.Contains(event.Entry.Text, "net::ERR_") && !strings.HasPrefix(event.Entry.Text, "Autofocus processing was blocked") { // a server that is gone; a page that was opened at an anchor
			problem("it logs: %s", event.Entry.Text)
		}
	}
}

func failure(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + e.Exception.Description
	}
	return e.Text
}

// blame fails the test for what the browser has complained about.
func (b *Browser) blame() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		b.Error(problem)
	}
	if len(b.asked) == 0 {
		b.Error("no request was seen")
	}
}

// Do does something in the browser.
func (b *Browser) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	b.ok(chromedp.Do(ctx, steps...))
}

// Open opens a page.
func (b *Browser) Open(url string) {
	b.Helper()
	b.Do(chromedp.Navigate(url))
}

// Value is what an expression of JavaScript is.
func Value[T any](b *Browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Until waits until an expression is true, on whatever page is open then.
func (b *Browser) Until(what, expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	for {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && yes {
			return
		}
		select { // a page that is about to be left, or is not there yet, throws an error
		case <-ctx.Done():
			b.Fatalf("never happened: %s: %v; the page shows\n%s", what, err, b.Text())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Says waits until the page shows a text.
func (b *Browser) Says(text string) {
	b.Helper()
	b.Until(strconv.Quote(text), "document.body.innerText.includes("+strconv.Quote(text)+")")
}

// Text is what the page shows.
func (b *Browser) Text() string { return Value[string](b, "document.body.innerText") }

// Types types keys.
func (b *Browser) Types(keys string) {
	b.Helper()
	b.Do(chromedp.KeyEvent(keys))
}

// LooksAs sets the width of the page, and whether its user likes it dark.
func (b *Browser) LooksAs(width int64, scheme string) {
	b.Helper()
	b.Do(chromedp.EmulateViewport(width, 900))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.ok(err)
}

// Photograph keeps a picture of the whole page, if go test has -artifacts.
func (b *Browser) Photograph(name string) {
	b.Helper()
	if kept := flag.Lookup("test.artifacts"); kept == nil || kept.Value.String() != "true" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	b.ok(err)
	b.ok(os.WriteFile(filepath.Join(b.ArtifactDir(), name+".png"), picture, 0o600))
}

// Focus gives an element the focus.
func Focus(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Focus(chromedp.CSS(selector))
}

// WithoutScripts has pages run none of their own.
func (b *Browser) WithoutScripts() {
	b.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.ok(err)
}

// Reloads waits until the page is loaded again, by itself.
func (b *Browser) Reloads() {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	for _, err := range chromedp.Events(ctx, page.LoadEventFired) {
		b.ok(err)
		return
	}
}
