package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tolerated is the ratio over which a load is marked.
const tolerated = 1.05

// A comparison is what redlatch costs in this tree and in an earlier commit.
type comparison struct {
	Command string  `json:"command"`
	Machine machine `json:"machine"`
	Base    string  `json:"base"`

	// OwnLoads says that the base ran the loads that it has itself.
	OwnLoads bool `json:"own_loads,omitempty"`

	Runs   int           `json:"runs"`
	Warm   time.Duration `json:"warm"`
	Length time.Duration `json:"length"`
	Trials []trial       `json:"trials"`
}

// A trial is one load, put on both.
type trial struct {
	Load string `json:"load"`
	Base cost   `json:"base"`
	This cost   `json:"this"`
}

// A cost is what the program in the directory load answers.
type cost struct {
	Operations int64         `json:"operations"`
	CPU        time.Duration `json:"cpu"`
	Elapsed    time.Duration `json:"elapsed"`
}

func cpuPerOperation(c cost) float64 { return c.CPU.Seconds() * 1e6 / float64(c.Operations) } // µs
func perSecond(c cost) float64       { return float64(c.Operations) / c.Elapsed.Seconds() }

// compare builds the same loads with both trees and lets them take turns.
func compare(ctx context.Context, o options, root string) (comparison, error) {
	c := comparison{Command: commandLine(), Runs: o.runs, Warm: 300 * time.Millisecond, Length: 1500 * time.Millisecond}
	if o.quick {
		c.Warm, c.Length = 100*time.Millisecond, 300*time.Millisecond
	}
	commit, err := output(ctx, root, "git", "rev-parse", "--verify", "--short", o.base+"^{commit}")
	if err != nil {
		return c, err
	}
	c.Base = strings.TrimSpace(commit)
	dir, err := os.MkdirTemp("", "redlatch-compare-")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	base, this := filepath.Join(dir, "base"), filepath.Join(dir, "this")
	if err := buildLoads(ctx, root, this); err != nil {
		return c, err
	}
	if c.OwnLoads, err = buildBase(ctx, root, c.Base, filepath.Join(dir, "tree"), base); err != nil {
		return c, err
	}
	s, err := startServer(root, o.server+"-server")
	if err != nil {
		return c, err
	}
	defer s.stop()
	c.Machine = describeMachine(s)
	names, err := output(ctx, dir, this)
	if err != nil {
		return c, err
	}
	for run := range o.runs {
		for name := range strings.FieldsSeq(names) {
			if !o.only.MatchString(name) {
				continue
			}
			t := trial{Load: name}
			turns := []func() error{
				func() (err error) { t.Base, err = c.put(ctx, s, base, name); return err },
				func() (err error) { t.This, err = c.put(ctx, s, this, name); return err },
			}
			// Who begins changes, too: neither is always the one after the other.
			for i := range turns {
				if err := turns[(i+run)%2](); err != nil {
					return c, fmt.Errorf("%s: %w", name, err)
				}
			}
			fmt.Fprintf(os.Stderr, "%-18s run %d  CPU µs %s, was %s; a second %s, was %s\n", name, run+1,
				short(cpuPerOperation(t.This)), short(cpuPerOperation(t.Base)), short(perSecond(t.This)), short(perSecond(t.Base)))
			c.Trials = append(c.Trials, t)
		}
	}
	if len(c.Trials) == 0 {
		return c, fmt.Errorf("-only %q matches nothing", o.only)
	}
	return c, nil
}

// put puts a load on redlatch as the binary has it.
func (c comparison) put(ctx context.Context, s *server, binary, name string) (cost, error) {
	var got cost
	if err := s.clear(); err != nil {
		return got, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Warm+c.Length+time.Minute)
	defer cancel()
	text, err := output(ctx, filepath.Dir(binary), binary, name, s.addr, c.Warm.String(), c.Length.String())
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return got, err
	}
	if got.Operations == 0 {
		return got, fmt.Errorf("no operation within %v", c.Length)
	}
	return got, nil
}

// loadsDir is where the program is that makes the loads.
func loadsDir(root string) string { return filepath.Join(root, "tests", "bench", "load") }

func buildLoads(ctx context.Context, root, binary string) error {
	_, err := output(ctx, filepath.Join(root, "tests"), "go", "build", "-buildvcs=false", "-trimpath", "-o", binary, "./bench/load")
	return err
}

// buildBase builds the loads of this tree with the library, and the versions of
// its dependencies, of another commit. Where the API was another one, it builds
// the loads that the commit has itself, and says so.
func buildBase(ctx context.Context, root, commit, tree, binary string) (own bool, err error) {
	if _, err := output(ctx, root, "git", "worktree", "add", "--detach", tree, commit); err != nil {
		return false, err
	}
	defer func() {
		_, removed := output(context.WithoutCancel(ctx), root, "git", "worktree", "remove", "--force", tree)
		err = errors.Join(err, removed)
	}()
	if err := os.RemoveAll(loadsDir(tree)); err != nil {
		return false, err
	}
	if err := os.CopyFS(loadsDir(tree), os.DirFS(loadsDir(root))); err != nil {
		return false, err
	}
	if buildLoads(ctx, tree, binary) == nil {
		return false, nil
	}
	if err := os.RemoveAll(loadsDir(tree)); err != nil {
		return false, err
	}
	if _, err := output(ctx, tree, "git", "checkout", "--", "."); err != nil {
		return false, err
	}
	return true, buildLoads(ctx, tree, binary)
}

// output runs a command, and says what it complained of if it fails.
func output(ctx context.Context, dir string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(complaints.String()))
	}
	return string(text), err
}

// page is the comparison as Markdown.
func (c comparison) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# This tree beside %s

`+"`%s`"+` on %s, %d cores, %s, %s, %s; %s, %v each after a warm-up of %v, each in a fresh process.

CPU time is the client's, user and system. A *ratio* is taken within each run, and over 1 this tree is the slower one: %s.
**slower** marks a ratio over %.2f; a ~ says that the figures of the two do not differ clearly (Mann-Whitney U test, p over
0.05), which takes four runs to say. Without a ~ also a smaller ratio may be real. The other figures are medians.

`, c.Base, c.Command, c.Machine.CPU, c.Machine.Cores, c.Machine.Kernel, c.Machine.Go, c.Machine.Server,
		plural(c.Runs, "alternating run"), c.Length, c.Warm, spanTitle(c.Runs), tolerated)
	if c.OwnLoads {
		fmt.Fprintf(&b, "The loads of this tree do not build with %s, whose API was another one. It ran the loads that it has itself.\n\n", c.Base)
	}
	t := table{head: []string{"", "CPU µs/operation, base", "this", "ratio", "", "operations/s, base", "this", "ratio", ""}}
	for _, name := range c.loads() {
		cpu := c.cells(name, cpuPerOperation, func(base, this float64) float64 { return this / base })
		rate := c.cells(name, perSecond, func(base, this float64) float64 { return base / this })
		t.add(slices.Concat([]string{name}, cpu, rate)...)
	}
	b.WriteString(t.String())
	return b.String()
}

// loads are the names, in their order.
func (c comparison) loads() []string {
	var names []string
	for _, t := range c.Trials {
		if !slices.Contains(names, t.Load) {
			names = append(names, t.Load)
		}
	}
	return names
}

// cells are both medians, the ratio, and what is to be seen in it.
func (c comparison) cells(name string, figure func(cost) float64, worse func(base, this float64) float64) []string {
	var base, this, ratios []float64
	for _, t := range c.Trials {
		if t.Load == name {
			b, a := figure(t.Base), figure(t.This)
			base, this, ratios = append(base, b), append(this, a), append(ratios, worse(b, a))
		}
	}
	var marks []string
	if median(ratios) > tolerated {
		marks = append(marks, "**slower**")
	}
	if tilde := alike(base, this); tilde != "" {
		marks = append(marks, strings.TrimSpace(tilde))
	}
	return []string{short(median(base)), short(median(this)), spanOf(ratios), strings.Join(marks, " ")}
}
