// The replay command plays the simulation of package sim in a machine in which the
// whole run follows from its seed: which goroutine goes on first, the order of a
// map, the jitter of a pause. So what goes wrong goes wrong each time.
//
//	go run ./sim/replay                            # random seeds of all types, for ten minutes
//	go run ./sim/replay -type fair -seed 7         # that seed, with a trace
//	go run ./sim/replay -type fair -seed 7 -shrink # with as few faults as it takes to go wrong
//	go run ./sim/replay -results FILE              # random seeds, and what was played as JSON
//	go run ./sim/replay -page ../docs/robustness.md # that page, of the figures in sim/results
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/tests/sim"
	"github.com/redlatch/redlatch/tests/sim/linear"
	"github.com/redlatch/redlatch/tests/sim/results"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	seed := flags.String("seed", "", "play this seed alone, and print what happens")
	typ := flags.String("type", "", "the type of lock: "+strings.Join(sim.Types(), ", ")+"; without it all, or lock")
	skip := flags.String("skip", "", "numbers of faults to leave out, with commas")
	less := flags.Bool("shrink", false, "leave out the faults that a violation does not need")
	long := flags.Duration("for", 10*time.Minute, "how long to play random seeds")
	dir := flags.String("dir", "", "where what is built is kept, and the traces of seeds that go wrong; without it in the user's cache")
	figures := flags.String("results", "", "write what random seeds have played into this file, as JSON")
	page := flags.String("page", "", "play nothing, and write docs/robustness.md into this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *page != "" {
		text, err := results.Page("sim/results")
		if err != nil {
			return err
		}
		return os.WriteFile(*page, []byte(text), 0o644) //nolint:gosec // it is published
	}
	if *typ != "" { // before much is built
		if _, err := sim.Standard(0, *typ); err != nil {
			return err
		}
	}
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*dir = filepath.Join(cache, "redlatch-sim")
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	file, err := build(*dir)
	if err != nil {
		return err
	}
	p, err := load(ctx, *dir, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(context.WithoutCancel(ctx))) }()
	if *seed == "" {
		types := sim.Types()
		if *typ != "" {
			types = []string{*typ}
		}
		c := campaign{player: p, types: types, keep: filepath.Join(*dir, "wrong"), out: out, figures: results.Simulation{Source: results.SourceNow(ctx)}}
		err := c.run(ctx, *long)
		if *figures != "" {
			err = errors.Join(err, results.Write(*figures, c.figures))
		}
		return err
	}
	n, err := strconv.ParseUint(*seed, 10, 64)
	if err != nil {
		return fmt.Errorf("-seed: %w", err)
	}
	if *typ == "" {
		*typ = "lock"
	}
	plan, err := sim.Standard(n, *typ)
	if err != nil {
		return err
	}
	for text := range strings.FieldsFuncSeq(*skip, func(r rune) bool { return r == ',' }) {
		fault, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-skip: %w", err)
		}
		plan.Skip = append(plan.Skip, fault)
	}
	plan.Traced = true
	if *less {
		if plan, err = shrink(ctx, p, plan, out); err != nil {
			return err
		}
	}
	r, err := p.play(ctx, plan)
	if err != nil {
		return err
	}
	for _, line := range r.Log {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintln(out, summary(plan, r))
	if err := r.Err(); err != nil {
		return errors.Join(err, keep(filepath.Join(*dir, "wrong"), plan, r, out))
	}
	return nil
}

func summary(plan sim.Plan, r *sim.Report) string {
	return fmt.Sprintf("seed %d, type %s: %v, %d scripts, %d holds, %d of Redisson's among them, %d told of a loss, %d that a loss of data may have taken, %d requests and replies lost, %d late, %d executed twice",
		plan.Seed, plan.Type, r.Duration.Round(time.Second), r.Scripts, r.Holds, r.Theirs, r.Told, r.Excused, r.Lost, r.Late, r.Twice)
}

// A campaign plays random seeds.
type campaign struct {
	player *player
	types  []string
	keep   string // the folder for what is kept of a seed that goes wrong
	out    io.Writer

	mu      sync.Mutex // guards what follows
	played  int
	wrong   []error
	figures results.Simulation
}

// run plays as many seeds at a time as there are processors. A play that itself
// fails ends it.
func (c *campaign) run(ctx context.Context, long time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for ctx.Err() == nil {
				if plan, r, err := c.one(context.WithoutCancel(ctx)); !c.note(plan, r, err) {
					cancel()
				}
			}
		})
	}
	all.Wait()
	var sums []string
	seeds := 0
	for _, p := range c.figures.Plays {
		sums = append(sums, p.String())
		seeds += p.Seeds
	}
	fmt.Fprintf(c.out, "%s\n%d seeds played, %d wrong\n", strings.Join(sums, "\n"), seeds, len(c.wrong))
	return errors.Join(c.wrong...)
}

// one plays the next type with a seed of its own.
func (c *campaign) one(ctx context.Context) (sim.Plan, *sim.Report, error) {
	c.mu.Lock()
	typ := c.types[c.played%len(c.types)]
	c.played++
	c.mu.Unlock()
	plan, err := sim.Standard(uint64(rand.Uint32()), typ) //nolint:gosec // one that can be typed
	if err != nil {
		return plan, nil, err
	}
	plan.Traced = true // as when it is replayed: who writes a trace looks at the clock, and leaves garbage
	r, err := c.player.play(ctx, plan)
	return plan, r, err
}

// note notes what came of a plan, and says whether others can be played: not if
// the play itself has failed.
func (c *campaign) note(plan sim.Plan, r *sim.Report, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	played := err == nil
	if played {
		fmt.Fprintln(c.out, summary(plan, r))
		err = r.Err()
		c.figures.Of(plan.Type, sim.Topology(plan.Type)).Add(&results.Played{
			Seeds: 1, Wrong: min(1, len(r.Wrong)), Simulated: r.Duration, Scripts: r.Scripts, Holds: r.Holds, Told: r.Told, Excused: r.Excused,
			Lost: r.Lost, Late: r.Late, Faults: r.Struck, Overlaps: r.Overlaps,
		})
		if err != nil {
			err = errors.Join(err, keep(c.keep, plan, r, c.out))
		}
	}
	if err != nil {
		err = fmt.Errorf("%w\nto replay it: make sim SEED=%d TYPE=%s, to shrink it: make sim SHRINK=%d TYPE=%s", err, plan.Seed, plan.Type, plan.Seed, plan.Type)
		fmt.Fprintln(c.out, err)
		c.wrong = append(c.wrong, err)
	}
	return played
}

// keep writes the plan, the trace and the history of a seed that went wrong, and
// says where they are.
func keep(dir string, plan sim.Plan, r *sim.Report, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(plan, "", "\t")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("%s-%d", plan.Type, plan.Seed))
	for end, content := range map[string]string{".json": string(text), ".txt": strings.Join(r.Log, "\n")} {
		if err := os.WriteFile(name+end, []byte(content+"\n"), 0o600); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "its plan is in %s.json, and its trace in %s.txt\n", name, name)
	if len(r.Histories) == 0 { // nobody has had anything
		return nil
	}
	if err := linear.Draw(name+".html", r.Histories, r.At, r.Marks); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "a browser shows its history, from some seconds before the first violation on: %s.html\n", name)
	return err
}

// shrink leaves out faults, as long as something still goes wrong: half of them, a
// quarter, and so on to each by itself.
func shrink(ctx context.Context, p *player, plan sim.Plan, out io.Writer) (sim.Plan, error) {
	r, err := p.play(ctx, plan)
	if err != nil {
		return plan, err
	}
	if r.Err() == nil {
		return plan, errors.New("nothing goes wrong, so that there is nothing to shrink")
	}
	needed := slices.DeleteFunc(slices.Clone(r.Numbers), func(n int) bool { return slices.Contains(plan.Skip, n) })
	for size := max(1, len(needed)/2); ; size /= 2 {
		for at := 0; at < len(needed); {
			without := plan
			without.Skip = slices.Concat(plan.Skip, needed[at:min(at+size, len(needed))])
			r, err := p.play(ctx, without)
			if err != nil {
				return plan, err
			}
			if r.Err() == nil {
				at += size
				continue
			}
			plan, needed = without, slices.Delete(needed, at, min(at+size, len(needed)))
		}
		if size <= 1 {
			break
		}
	}
	texts := make([]string, len(plan.Skip))
	for i, n := range plan.Skip {
		texts[i] = strconv.Itoa(n)
	}
	fmt.Fprintf(out, "it needs the faults %v: -skip %s\n", needed, strings.Join(texts, ","))
	return plan, nil
}
