package browser

import (
	"context"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// axeFile is where scripts/axe.sh puts axe-core.
const axeFile = ".tools/axe/axe.min.js"

// axe returns axe-core. The tests of a package run in its folder, somewhere below
// the repository's.
func (b *Browser) axe() string {
	b.Helper()
	for up := ".."; len(up) < 30; up = filepath.Join(up, "..") {
		if script, err := os.ReadFile(filepath.Join(up, axeFile)); err == nil {
			return string(script)
		}
	}
	b.Fatalf("there is no %s: scripts/axe.sh gets it", axeFile)
	return ""
}

// Barriers returns what axe-core has against the page as it is open, a line for
// each element: what the rules that it applies by itself call serious or critical.
// It needs scripts/axe.sh.
func (b *Browser) Barriers() []string {
	b.Helper()
	if !Value[bool](b, "!!window.axe") {
		Value[bool](b, b.axe()+"; true")
	}
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](axeRun, chromedp.EvalAwaitPromise))
	b.ok(err)
	return value
}

// What still moves has not the colours that it will have.
const axeRun = `document.getAnimations().forEach((a) => { if (a.effect.getComputedTiming().iterations !== Infinity) a.finish(); });
axe.run({ resultTypes: ['violations'] }).then((found) => found.violations
	.filter((rule) => rule.impact === 'serious' || rule.impact === 'critical')
	.flatMap((rule) => rule.nodes.map((node) =>
		rule.impact + ', ' + rule.id + ': ' + node.target.join(' ') + ': ' + node.failureSummary.replace(/\s+/g, ' ')))
)`
