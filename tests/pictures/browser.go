package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	pageWidth = 1280 // of a picture of a page
	topWidth  = 960  // of one of the terminal
)

// A browser is one page of a Chromium without a window, whose user likes it light.
type browser struct {
	ctx context.Context //nolint:containedctx // chromedp's
	end context.CancelFunc
}

func newBrowser(ctx context.Context, dir string) (*browser, error) {
	options := append(
		slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.UserDataDir(filepath.Join(dir, "chromium")), chromedp.DisableGPU,
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.WSURLReadTimeout(patience), chromedp.Env("TZ=UTC", "LANG=C.UTF-8"),
	)
	name := os.Getenv("REDLATCH_CHROMIUM")
	if name == "" {
		name = "chromium"
	}
	options = append(options, chromedp.ExecPath(name))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(ctx, options...)
	page, endPage := chromedp.NewContext(allocator)
	b := &browser{page, func() { endPage(); endAllocator() }}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}},
	})
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *browser) close() {
	_ = chromedp.Cancel(b.ctx) // waits for its processes, which write into its directory
	b.end()
}

func (b *browser) open(url string) error {
	return chromedp.Do(b.ctx, chromedp.EmulateViewport(pageWidth, 900), chromedp.Navigate(url))
}

// until waits until an expression of JavaScript is true.
func (b *browser) until(what, expression string) error {
	for {
		yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && yes {
			return nil
		}
		select { // a page that is not there yet throws an error
		case <-b.ctx.Done():
			return fmt.Errorf("never seen on the page: %s: %w", what, context.Cause(b.ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// photograph takes a picture of an element on a page of that width, at twice the
// resolution, on nothing.
func (b *browser) photograph(selector string, width int64, file string) error {
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 100)); err != nil {
		return err
	}
	height, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64]("document.querySelector("+strconv.Quote(selector)+").getBoundingClientRect().bottom"))
	if err != nil {
		return err
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetDefaultBackgroundColorOverride, emulation.SetDefaultBackgroundColorOverrideParams{Color: &cdp.RGBA{}}); err != nil {
		return err
	}
	if err := chromedp.Do(b.ctx, chromedp.EmulateViewport(width, int64(height), chromedp.EmulateScale(2))); err != nil {
		return err
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d kB\n", file, len(picture)/1000)
	return os.WriteFile(file, picture, 0o644)
}
