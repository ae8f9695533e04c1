package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var err error
	switch job, costs, binary := os.Getenv(jobEnv), os.Getenv(costsEnv), os.Getenv(serverEnv); {
	case job != "":
		err = child(job)
	case costs != "":
		err = costChild(costs)
	case binary != "":
		err = keepServer(binary)
	default:
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// fullRuns is how often what decides is measured: with a confidence of 96 %.
const fullRuns = 9

// options are the flags.
type options struct {
	runs             int
	only             *regexp.Regexp
	quick            bool
	server           string
	out, json, from  string
	base             string
	profile, profDir string
}

func parseFlags() (options, error) {
	var o options
	flag.IntVar(&o.runs, "runs", 0, "alternating `runs` (default 9, with -quick 3)")
	only := flag.String("only", "", "measure only what matches this `regexp`, as in 'uncontended-64/redlatch' (scenario/implementation), with -base as in 'fair-16'")
	flag.BoolVar(&o.quick, "quick", false, "short measurements")
	flag.StringVar(&o.server, "server", "redis", "`redis` or valkey")
	flag.StringVar(&o.out, "out", "", "`file` for the page; - is standard output (default docs/performance.md, with -quick, -only or -base -)")
	flag.StringVar(&o.json, "json", "", "`file` for all measurements")
	flag.StringVar(&o.from, "from", "", "measure nothing: make the page from this -json `file`")
	flag.StringVar(&o.base, "base", "", "measure only redlatch, beside itself in this `commit`: has anything become slower?")
	flag.StringVar(&o.profile, "profile", "", "make each measuring process write a profile: `cpu`, mem or block; the figures are worthless then")
	flag.StringVar(&o.profDir, "profiles", ".", "`directory` for -profile")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.server != "redis" && o.server != "valkey" {
		return o, fmt.Errorf("-server is redis or valkey, not %q", o.server)
	}
	switch o.profile {
	case "", "cpu", "mem", "block":
	default:
		return o, fmt.Errorf("-profile is cpu, mem or block, not %q", o.profile)
	}
	if o.base != "" && (o.from != "" || o.profile != "") {
		return o, fmt.Errorf("-base goes with neither -from nor -profile")
	}
	if o.runs == 0 {
		o.runs = fullRuns
		if o.quick {
			o.runs = 3
		}
	}
	if o.runs < 1 {
		return o, fmt.Errorf("-runs must be positive")
	}
	var err error
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run() error {
	o, err := parseFlags()
	if err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(root, "docs", "performance.md")
		if o.quick || o.only.String() != "" || o.profile != "" || o.base != "" {
			o.out = "-"
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var result interface{ page() string }
	switch {
	case o.base != "":
		result, err = compare(ctx, o, root)
	case o.from != "":
		result, err = readRecord(o.from)
	default:
		result, err = measureAll(ctx, o, root)
	}
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := writeJSON(o.json, result); err != nil {
			return err
		}
	}
	if o.out == "-" {
		fmt.Print(result.page())
		return nil
	}
	if r, ok := result.(record); ok {
		if err := r.draw(o.out); err != nil {
			return err
		}
	}
	return os.WriteFile(o.out, []byte(result.page()), 0o644)
}

func measureAll(ctx context.Context, o options, root string) (record, error) {
	began := time.Now()
	s, err := startServer(root, o.server+"-server")
	if err != nil {
		return record{}, err
	}
	defer s.stop()
	b := &bench{server: s, root: root, scriptsDir: filepath.Join(root, "internal", "lua"), durations: fullDurations, profile: o.profile, profileDir: o.profDir, spare: spareTime}
	if o.quick {
		b.durations = quickDurations
	}
	rec := record{
		Command: commandLine(), Machine: describeMachine(s), Runs: o.runs, Durations: b.durations.String(), Missing: map[string]string{},
	}
	if why := redissonMissing(root); why != "" {
		rec.Missing[redissonPeer.name] = why
	}
	if _, version, err := serverVersion(root, etcdServer); err != nil {
		rec.Missing[etcdMutex.name] = "no etcd here that runs (scripts/etcd.sh fetches it): " + err.Error()
	} else {
		rec.Machine.Server += ", " + version
	}
	fmt.Fprintln(os.Stderr, planOf(b.durations, o.runs, func(s scenario, i implementation) bool {
		return o.only.MatchString(s.Name+"/"+i.name) && rec.Missing[i.name] == ""
	}))
	if rec.Share, err = b.share(ctx, o); err != nil {
		return rec, err
	}
	for _, s := range scenarios {
		row, err := b.alternate(ctx, s, o, rec.Missing)
		if err != nil {
			return rec, err
		}
		rec.Results = append(rec.Results, row...)
	}
	if rec.Costs, err = b.costs(ctx, o, rec.Missing); err != nil {
		return rec, err
	}
	rec.Took = time.Since(began).Round(time.Second).String()
	fmt.Fprintln(os.Stderr, "took", rec.Took)
	if len(rec.Results)+len(rec.Share)+len(rec.Costs) == 0 {
		return rec, fmt.Errorf("-only %q matches nothing", o.only)
	}
	return rec, nil
}

// inTurn is the order of an alternation: neither of two is always the one after
// the other.
func inTurn(run int) []implementation {
	order := slices.Clone(implementations)
	if run%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// alternate lets all implementations take their turns in a scenario.
func (b *bench) alternate(ctx context.Context, s scenario, o options, missing map[string]string) (results, error) {
	var all results
	for run := range o.runs {
		for _, i := range inTurn(run) {
			switch {
			case ctx.Err() != nil:
				return all, fmt.Errorf("interrupted")
			case !o.only.MatchString(s.Name + "/" + i.name), missing[i.name] != "", !i.takesPart(s), !takesTurn(run, o.runs, i.runs(s, o.runs)):
				continue
			}
			m, err := b.steady(func() (measurement, error) { return b.measure(s, i, run) })
			if err != nil {
				return all, fmt.Errorf("%s, %s: %w", s.Name, i.name, err)
			}
			fmt.Fprintln(os.Stderr, progress(m))
			all = append(all, m)
		}
	}
	return all, nil
}

// runs says how often i is measured in s when there are that many alternations:
// each time, if a target depends on it.
func (i implementation) runs(s scenario, alternations int) int {
	runs := alternations
	if !decisive(s, i) {
		runs = (alternations + 2) / 3
	}
	for _, most := range []int{i.mostRuns, s.MostRuns} {
		if most > 0 {
			runs = min(runs, most)
		}
	}
	return runs
}

// takesTurn spreads so many turns evenly over the alternations.
func takesTurn(run, alternations, turns int) bool { return run*turns%alternations < turns }

// progress is a line for whoever watches.
func progress(m measurement) string {
	head := fmt.Sprintf("%-20s run %d  %-22s", m.Scenario, m.Run+1, m.Implementation)
	if m.DidNotFinish != "" {
		return head + " did not finish: " + m.DidNotFinish
	}
	if m.Scenario == censusOf1000 {
		return fmt.Sprintf("%s %s %% of a core of the server, stolen %s", head, short(coreShare(m)), percent(m.Stolen))
	}
	text := fmt.Sprintf("%s %9s/s  client CPU %s µs, allocations %s", head, short(m.Rate), short(m.ClientCPU), short(m.Allocs))
	if m.HandOffP50 > 0 {
		text += fmt.Sprintf(", hand-off %s µs, Jain %s, overlaps %d", short(m.HandOffP50), short(m.Jain), m.Violations)
	}
	if m.Tries > 1 {
		text += fmt.Sprintf(", try %d, stolen %s", m.Tries, percent(m.Stolen))
	}
	if m.Errors > 0 {
		text += fmt.Sprintf(", %d errors: %s", m.Errors, m.FirstError)
	}
	if len(m.ProcessShares) > 0 {
		text += fmt.Sprintf(", shares %s to %s", percent(slices.Min(m.ProcessShares)), percent(slices.Max(m.ProcessShares)))
	}
	return text
}

func (d durations) String() string {
	longest, warm := time.Duration(0), time.Duration(0)
	for _, s := range scenarios {
		longest, warm = max(longest, s.Length), max(warm, s.Warm)
	}
	return fmt.Sprintf("%v each (contended %v; redlatch in four processes %v; fan-out %v) after a warm-up of %v, where very many wait up to %v after %v",
		d.uncontended, d.contended, d.fairness, d.fanOut, d.warm, longest, warm)
}

// commandLine is what to type for the same figures.
func commandLine() string {
	words := []string{"cd tests && go run ./bench"}
	flag.Visit(func(f *flag.Flag) {
		switch value := f.Value.String(); {
		case f.Name == "out", f.Name == "json", f.Name == "profiles":
		case value == "true":
			words = append(words, "-"+f.Name)
		default:
			words = append(words, "-"+f.Name+" '"+value+"'")
		}
	})
	return strings.Join(words, " ")
}

// repository finds the root of the repository above the working directory.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/redlatch/redlatch\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("not inside the redlatch repository")
		}
	}
}

func readRecord(path string) (record, error) {
	var rec record
	text, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	return rec, json.Unmarshal(text, &rec)
}

func writeJSON(path string, result any) error {
	text, err := json.MarshalIndent(result, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
