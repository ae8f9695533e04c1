package dashboard

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/tests/internal/browser"
)

// The pages at two widths, light and dark: nothing is too wide, and what is
// written can be read. go test -artifacts keeps the pictures.
func TestLooks(t *testing.T) {
	w := newWorld(t)
	w.crowd()
	b := browser.Start(t, w.web.URL)
	for name, page := range map[string]string{"list": w.url, "lock": w.url + "lock?name=orders%3A42", "long": w.url + "lock?name=" + url.QueryEscape(long)} {
		b.Open(page)
		if name == "long" {
			b.Says("lock, held")
		} else {
			b.Says("Possible deadlock of 2 callers")
		}
		for _, width := range []int64{360, 1280} {
			grounds := map[string]bool{}
			for _, scheme := range []string{"light", "dark"} {
				b.LooksAs(width, scheme)
				if over := browser.Value[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s at %d: %d too wide", name, width, over)
				}
				for _, faint := range browser.Value[[]string](b, faintTexts) {
					t.Errorf("%s at %d, %s: too little contrast: %s", name, width, scheme, faint)
				}
				grounds[browser.Value[string](b, "getComputedStyle(document.body).backgroundColor")] = true
				b.Photograph(fmt.Sprintf("%s-%d-%s", name, width, scheme))
			}
			if len(grounds) != 2 {
				t.Errorf("%s: dark and light are the same: %v", name, grounds)
			}
		}
	}
}

// Everybody can use the pages, with whatever they read a screen: axe-core finds
// nothing grave. It comes with make proof.
func TestEverybodyCanUseThePages(t *testing.T) {
	if os.Getenv("REDLATCH_PROOF") == "" {
		t.Skip("make proof has axe-core")
	}
	w := newWorld(t)
	w.crowd()
	b := browser.Start(t, w.web.URL)
	for _, page := range []string{"", "lock?name=orders%3A42", "lock?name=" + url.QueryEscape(long)} {
		b.Open(w.url + page)
		b.Says("Live")
		for _, width := range []int64{390, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				b.LooksAs(width, scheme)
				for _, barrier := range b.Barriers() {
					t.Errorf("%q at %d, %s: %s", page, width, scheme, barrier)
				}
			}
		}
	}
}

// faintTexts are those whose contrast to what is behind them is below 4.5, which
// WCAG asks for.
const faintTexts = `(() => {
	const rgb = (color) => color.match(/[\d.]+/g).map(Number);
	const light = (color) => {
		const [r, g, b] = rgb(color).slice(0, 3).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = (element) => {
		for (; element; element = element.parentElement) {
			if (element.matches('.node')) return getComputedStyle(element.querySelector('rect')).fill;
			const color = getComputedStyle(element).backgroundColor;
			if ((rgb(color)[3] ?? 1) > 0) return color;
		}
		return 'rgb(255, 255, 255)';
	};
	const faint = [];
	for (const element of document.querySelectorAll('body *')) {
		const says = [...element.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.nodeValue.trim());
		if (!says || !element.getClientRects().length || element.matches('title, desc, script, noscript')) continue;
		const style = getComputedStyle(element);
		const x = light(element.namespaceURI.endsWith('svg') ? style.fill : style.color), y = light(ground(element));
		const contrast = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		if (contrast < 4.5) faint.push(element.textContent.trim().slice(0, 40) + ': ' + contrast.toFixed(2));
	}
	return faint;
})()`

// Who holds what and who waits is there, on the list and on the page of a lock,
// which its link opens; and it changes as that does, while what has the focus
// keeps it.
func TestItIsLive(t *testing.T) {
	w := newWorld(t)
	billing, shipping := w.client("billing", redlatch.Config{}), w.client("shipping", redlatch.Config{})
	orders := w.hold(bg, billing, "orders:42")
	w.redisson("jobs:import")
	b := browser.Start(t, w.web.URL)
	b.Open(w.url)
	for _, text := range []string{"Live", "orders:42", "billing@host-7 pid 4121", "jobs:import", "redisson", "redis://" + w.redis.Addr()} {
		b.Says(text)
	}
	b.Do(browser.Focus("tbody a[href*=orders]"))
	browser.Value[bool](b, "window.same = document.activeElement; true")
	w.wait(bg, shipping, "orders:42")
	b.Until("a waiter", `document.activeElement.closest("tr").querySelector("[data-label=Waiting]").textContent === "1"`)
	if !browser.Value[bool](b, "document.activeElement === window.same") {
		t.Error("the focus has gone elsewhere")
	}
	b.Types(kb.Enter)
	b.Until("the page of the lock", `document.querySelector("h1").textContent === "orders:42"`)
	for _, text := range []string{"lock, held", "shipping@host-7 pid 4121", "renewed while it lives", "world_test.go"} {
		b.Says(text)
	}
	b.Until("a drawing of both", `document.querySelectorAll(".drawing .holder, .drawing .waiter").length === 2`)
	b.Until("two bars", `document.querySelectorAll("#hold-desc ~ rect").length >= 2`)
	if err := orders.Release(bg); err != nil {
		t.Fatal(err)
	}
	b.Until("the next holder", `document.querySelector(".callers .who").textContent === "shipping@host-7 pid 4121"`)
	b.Says("held by shipping@host-7 pid 4121") // what was seen
}

// Callers that wait for one another.
func TestADeadlock(t *testing.T) {
	w := newWorld(t)
	w.crowd()
	b := browser.Start(t, w.web.URL)
	b.Open(w.url)
	b.Says("Possible deadlock of 2 callers")
	b.Until("both locks", `document.querySelectorAll("tbody tr.deadlock").length === 2`)
	b.Open(w.url + "lock?name=stock")
	b.Says("Possible deadlock of 2 callers")
	b.Until("what the waiter holds", `[...document.querySelectorAll(".callers a")].some((a) => a.textContent === "orders:42")`)
	b.Until("that in words", `document.querySelector("#edges-desc").textContent.includes("shipping@host-7 pid 4121 waits for orders:42")`)
}

// A server that goes away is missed, and what was there stays; so it is when the
// pages' own server goes away.
func TestALostServer(t *testing.T) {
	w := newWorld(t)
	w.redisson("orders:42")
	b := browser.Start(t, w.web.URL)
	b.Open(w.url)
	b.Says("Live")
	b.Says("orders:42")
	w.redis.Kill()
	b.Says("The server has not answered since")
	if !strings.Contains(b.Text(), "orders:42") {
		t.Error("the last list is gone")
	}
	w.redis.Restart()
	w.redisson("stock")
	b.Says("stock")
	b.Says("Live")

	w.web.CloseClientConnections()
	b.Until("the connection to be missed", `window.missed || (window.missed = document.body.classList.contains("lost"))`)
	b.Until("another one", `!document.body.classList.contains("lost") && document.querySelector("#link").hidden`)
	w.redisson("third")
	b.Says("third")
	w.pages.Close()
	w.web.Close()
	b.Says("Connection lost at")
}

// A name, or who a client says it is, may be HTML: it is shown, and makes nothing.
func TestANameThatIsHTML(t *testing.T) {
	w := newWorld(t)
	const client = `<img src=x onerror="window.evil=1"><b id=evil>"'&amp;`
	const evil = client + "<script>window.evil=1</script>\u202e"
	c := w.client(client, redlatch.Config{})
	held := w.hold(bg, c, evil)
	w.hold(held.Context(), c, "else")
	w.wait(held.Context(), w.client(client, redlatch.Config{}), "else")
	w.redisson("bytes \xff\x01")
	b := browser.Start(t, w.web.URL)
	const shown = client + `<script>window.evil=1</script>\u202e`
	b.Open(w.url)
	b.Says(shown)
	b.Says(client + "@host-7 pid 4121")
	b.Says(`bytes \xff\x01`)
	for _, page := range []string{"", "lock?name=else", "lock?name=" + url.QueryEscape(evil), "lock?name=" + url.QueryEscape("bytes \xff\x01")} {
		b.Open(w.url + page)
		b.Says("Live")
		b.Until("a look that was sent", `document.querySelector("time").dateTime !== (window.first ??= document.querySelector("time").dateTime)`)
		if browser.Value[bool](b, `!!window.evil || !!document.querySelector("img, #evil, script:not([src])")`) {
			t.Errorf("%s: the name has made something:\n%s", page, browser.Value[string](b, "document.body.innerHTML"))
		}
	}
	b.Open(w.url)
	b.Until("the links", `document.querySelectorAll("tbody a").length === 3`)
	b.Do(browser.Focus(`tbody a[href*="%FF"]`))
	b.Types(kb.Enter)
	b.Says("lock, held")
	if got := browser.Value[string](b, "document.querySelector('h1').textContent"); got != `bytes \xff\x01` {
		t.Errorf("%q", got)
	}
}

// All can be done with keys: to filter, to sort, to open a lock and to come back.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	w.redisson("orders:42")
	w.redisson("stock")
	b := browser.Start(t, w.web.URL)
	b.Open(w.url)
	b.Says("stock")
	b.Types(kb.Tab)
	if got := browser.Value[string](b, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first tab leads to %q", got)
	}
	b.Types("/")
	if got := browser.Value[string](b, "document.activeElement.id"); got != "filter" {
		t.Errorf("/ leads to %q", got)
	}
	if outline := browser.Value[string](b, "getComputedStyle(document.activeElement).outlineStyle"); outline != "solid" {
		t.Errorf("the focus is shown as %q", outline)
	}
	b.Types(kb.Backspace + "ord*2" + kb.Enter) // a real keyboard would not type the slash
	b.Until("the filter", `new URL(location).searchParams.get("filter") === "ord*2" && document.querySelectorAll("tbody tr").length === 1`)
	reach := func(text string) {
		t.Helper()
		for range 30 {
			b.Types(kb.Tab)
			if strings.HasPrefix(browser.Value[string](b, "document.activeElement.textContent"), text) {
				return
			}
		}
		t.Fatalf("no number of tabs leads to %q", text)
	}
	reach("Name")
	b.Types(kb.Enter)
	b.Until("the order", `new URL(location).searchParams.get("sort") === "name" && document.querySelector("th[aria-sort]").textContent.startsWith("Name")`)
	reach("orders:42")
	b.Types(kb.Enter)
	b.Says("lock, held")
	reach("All locks")
	b.Types(kb.Enter)
	b.Until("the list", `document.querySelectorAll("tbody tr").length === 2`)
}

// Without a script the pages show the same, and reload themselves.
func TestWithoutJavaScript(t *testing.T) {
	w := newWorld(t)
	w.redisson("orders:42")
	b := browser.Start(t, w.web.URL)
	b.WithoutScripts()
	b.Open(w.url)
	b.Says("orders:42")
	w.redisson("stock")
	b.Reloads()
	b.Says("stock")
}
