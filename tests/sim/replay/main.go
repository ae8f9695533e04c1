// The replay command plays the simulation of package sim in a machine in which the whole run follows from its seed: which goroutine
// goes on first, the order of a map, the jitter of a pause. So what goes wrong goes wrong each time.
//
//	go run ./sim/replay                            # random seeds of all types, for ten minutes
//	go run ./sim/replay -type fair -seed 7         # that seed, with a trace
//	go run ./sim/replay -type fair -seed 7 -shrink # with as few faults as it takes to go wrong
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
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
	dir := flags.String("dir", "", "where what is built is kept; without it in the user's cache")
	if err := flags.Parse(args); err != nil {
		return err
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
		return campaign(ctx, p, types, *long, out)
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
	return r.Err()
}

func summary(plan sim.Plan, r *sim.Report) string {
	return fmt.Sprintf("seed %d, type %s: %v, %d scripts, %d holds, %d of Redisson's among them, %d told of a loss, %d that a loss of data may have taken, %d requests and replies lost, %d late, %d executed twice",
		plan.Seed, plan.Type, r.Duration.Round(time.Second), r.Scripts, r.Holds, r.Theirs, r.Told, r.Excused, r.Lost, r.Late, r.Twice)
}

// A sum is what was played of a type.
type sum struct{ seeds, holds, told, excused, scripts, faults int }

func (s *sum) add(r *sim.Report) {
	s.seeds++
	s.holds, s.told, s.excused, s.scripts = s.holds+r.Holds, s.told+r.Told, s.excused+r.Excused, s.scripts+r.Scripts
	for _, n := range r.Struck {
		s.faults += n
	}
}

func (s *sum) String() string {
	return fmt.Sprintf("%5d seeds, %6d faults, %8d scripts, %7d holds, %6d told of a loss, %6d that a loss of data may have taken",
		s.seeds, s.faults, s.scripts, s.holds, s.told, s.excused)
}

// campaign plays random seeds, as many at a time as there are processors. A play that itself fails ends it.
func campaign(ctx context.Context, p *player, types []string, long time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var mu sync.Mutex
	var wrong []error
	var all sync.WaitGroup
	played := 0
	sums := map[string]*sum{}
	for range runtime.NumCPU() {
		all.Go(func() {
			for ctx.Err() == nil {
				seed := uint64(rand.Uint32()) //nolint:gosec // one that can be typed
				mu.Lock()
				plan, err := sim.Standard(seed, types[played%len(types)])
				plan.Traced = true // as when it is replayed: who writes a trace looks at the clock, and leaves garbage
				played++
				mu.Unlock()
				var r *sim.Report
				if err == nil {
					r, err = p.play(context.WithoutCancel(ctx), plan)
				}
				mu.Lock()
				if err == nil {
					fmt.Fprintln(out, summary(plan, r))
					err = r.Err()
					if sums[plan.Type] == nil {
						sums[plan.Type] = &sum{}
					}
					sums[plan.Type].add(r)
				} else {
					cancel()
				}
				if err != nil {
					err = fmt.Errorf("%w\nto replay it: make sim SEED=%d TYPE=%s, to shrink it: make sim SHRINK=%d TYPE=%s", err, seed, plan.Type, seed, plan.Type)
					fmt.Fprintln(out, err)
					wrong = append(wrong, err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, typ := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(out, "%-12s %v\n", typ, sums[typ])
	}
	fmt.Fprintf(out, "%d seeds played, %d wrong\n", played, len(wrong))
	return errors.Join(wrong...)
}

// shrink leaves out faults, as long as something still goes wrong: half of them, a quarter, and so on to each by itself.
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
