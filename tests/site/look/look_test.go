package look

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/redlatch/redlatch/internal/leaktest"
	"github.com/redlatch/redlatch/tests/internal/browser"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// built is where make site writes the site.
const built = "../../../.site/out"

// serve serves the site below the path that it has on its host, and returns the
// URLs of its pages.
func serve(t *testing.T) (own string, pages []string) {
	t.Helper()
	const path = "/redlatch/"
	web := httptest.NewServer(http.StripPrefix(path, http.FileServer(http.Dir(built))))
	t.Cleanup(web.Close)
	err := fs.WalkDir(os.DirFS(built), ".", func(name string, _ fs.DirEntry, err error) error {
		if filepath.Base(name) == "index.html" {
			pages = append(pages, web.URL+path+strings.TrimSuffix(name, "index.html"))
		}
		return err
	})
	if err != nil || len(pages) < 15 {
		t.Fatalf("%d pages: %v: make site builds them", len(pages), err)
	}
	return web.URL + path, pages
}

// Everybody can read each page, on a telephone and on a desk, light and dark:
// nothing is too wide, and axe-core finds nothing grave. go test -artifacts keeps
// the pictures.
func TestEveryPageCanBeReadByEverybody(t *testing.T) {
	own, pages := serve(t)
	b := browser.Start(t, own)
	for _, page := range pages {
		name := strings.Trim(strings.TrimPrefix(page, own), "/")
		if name == "" {
			name = "home"
		}
		grounds := map[string]bool{}
		for scheme, theme := range map[string]string{"light": "default", "dark": "slate"} {
			b.LooksAs(1280, scheme)
			b.Open(page)
			b.Until("the colours", `document.body.dataset.mdColorScheme === "`+theme+`"`)
			for _, width := range []int64{390, 1280} {
				b.LooksAs(width, scheme)
				if over := browser.Value[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s at %d: %d too wide", name, width, over)
				}
				for _, barrier := range b.Barriers() {
					t.Errorf("%s at %d, %s: %s", name, width, scheme, barrier)
				}
				b.Photograph(fmt.Sprintf("%s-%d-%s", name, width, scheme))
			}
			grounds[browser.Value[string](b, "getComputedStyle(document.body).backgroundColor")] = true
		}
		for _, image := range browser.Value[[]string](b, "[...document.images].filter((i) => i.loading !== 'lazy' && !i.naturalWidth).map((i) => i.src)") {
			t.Errorf("%s: no image %s", name, image)
		}
		if len(grounds) != 2 {
			t.Errorf("%s: dark and light are the same: %v", name, grounds)
		}
	}
}

// With the tab key alone a reader reaches all that can be followed or pressed,
// sees where it is, and can skip the navigation.
func TestEveryPageCanBeReadWithTheKeyboard(t *testing.T) {
	own, pages := serve(t)
	b := browser.Start(t, own)
	for _, width := range []int64{390, 1280} {
		b.LooksAs(width, "light")
		for _, page := range pages {
			b.Open(page)
			t.Logf("%s at %d", strings.TrimPrefix(page, own), width)
			b.Types(kb.Tab)
			if got := browser.Value[string](b, "document.activeElement.className"); !strings.HasPrefix(got, "md-skip") {
				t.Errorf("the first tab leads to %q", got)
			}
			b.Types(kb.Enter)
			b.Until("the content", `location.hash === "#" + document.querySelector("article h1[id], article [id]").id || location.hash === "#__skip"`)
			b.Open("about:blank")
			b.Open(page)
			browser.Value[bool](b, watchFocus)
			expected := browser.Value[int](b, "window.expected.size")
			if expected < 5 {
				t.Errorf("the page has %d elements for the keyboard, and no navigation", expected)
			}
			around := false
			for tabs := 0; !around && tabs < 2*expected+100; tabs++ {
				b.Types(kb.Tab)
				around = browser.Value[bool](b, "window.around")
			}
			if !around {
				t.Error("the focus does not come back to where it began")
			}
			for _, problem := range browser.Value[[]string](b, "[...window.unseen, ...[...window.expected].filter(window.reachable).map((e) => 'never reached: ' + window.say(e))]") {
				t.Error(problem)
			}
		}
	}
}

// watchFocus notes each element that has the focus: whether it can be seen that it
// has, and what is left.
const watchFocus = `(() => {
	window.say = (e) => e.outerHTML.slice(0, 150);
	window.reachable = (e) => e.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && e.tabIndex >= 0 && !e.disabled &&
		!e.closest('[inert]') && (e.type !== 'radio' || e.checked);
	window.expected = new Set([...document.querySelectorAll('a[href], button, input, select, summary, .md-header__button[for=__drawer], .md-sidebar-button')].filter(window.reachable));
	window.unseen = [];
	window.around = false;
	let first = null;
	document.addEventListener('focusin', (event) => {
		let { target } = event;
		if (target === first) { window.around = true; return; }
		first ??= target;
		window.expected.delete(target);
		document.getAnimations().forEach((a) => { if (a.effect.getComputedTiming().iterations !== Infinity) a.finish(); });
		if (target.matches('.md-option')) target = target.nextElementSibling; // the theme shows its label
		const style = getComputedStyle(target);
		if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) window.unseen.push('without a mark: ' + window.say(target));
		const spots = [...target.getClientRects()].map((r) => [Math.max(r.left, 0), Math.max(r.top, 0), Math.min(r.right, innerWidth), Math.min(r.bottom, innerHeight)])
			.filter(([left, top, right, bottom]) => left < right && top < bottom)
			.flatMap(([left, top, right, bottom]) => [[(left + right) / 2, (top + bottom) / 2], [left + 2, bottom - 2]]);
		if (!spots.some(([x, y]) => { const top = document.elementFromPoint(x, y); return top && (target.contains(top) || top.contains(target)); }))
			window.unseen.push('out of sight: ' + window.say(target));
	});
	return true;
})()`

// On a telephone the keyboard opens the navigation, which is in a drawer.
func TestTheDrawerOpensWithTheKeyboard(t *testing.T) {
	own, _ := serve(t)
	b := browser.Start(t, own)
	b.LooksAs(390, "light")
	b.Open(own + "faq/")
	b.Until("a button", `document.querySelector("[for=__drawer][role=button][aria-expanded=false]")`)
	b.Do(browser.Focus("[for=__drawer][role=button]"))
	b.Types(kb.Enter)
	b.Until("an open drawer", `document.querySelector("[for=__drawer][aria-expanded=true]") &&
		[...document.querySelectorAll(".md-sidebar--primary a[href]")].some((a) => a.checkVisibility() && a.getBoundingClientRect().left >= 0)`)
}

// The headings of a long table sort it, forth and back, and say so.
func TestALongTableIsSorted(t *testing.T) {
	own, _ := serve(t)
	b := browser.Start(t, own)
	b.LooksAs(1280, "light")
	b.Open(own + "changelog/")
	const cells = `(() => { const column = [...document.querySelectorAll("th")].indexOf(document.querySelector("th > button").parentElement);
		return [...document.querySelector("th > button").closest("table").tBodies[0].rows].map((row) => row.cells[column].textContent.trim()); })()`
	b.Until("a button", `document.querySelector("th > button")`)
	before := browser.Value[[]string](b, cells)
	b.Do(browser.Focus("th > button"))
	b.Types(kb.Enter)
	b.Until("the order", `document.querySelector("th[aria-sort=ascending]")`)
	up := browser.Value[[]string](b, cells)
	b.Types(kb.Enter)
	b.Until("the other order", `document.querySelector("th[aria-sort=descending]")`)
	down := browser.Value[[]string](b, cells)
	if first, last := up[0], up[len(up)-1]; len(up) != len(before) || slices.Equal(up, before) || slices.Equal(down, up) || down[0] != last || down[len(down)-1] != first {
		t.Errorf("of %d rows, first %q and last %q; then %q and %q", len(before), up[0], up[len(up)-1], down[0], down[len(down)-1])
	}
}
