package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A shareFigure is what one measurement of the server's share has found, for each
// pair or each hand-off.
type shareFigure struct {
	Server   string  `json:"server"`
	Work     string  `json:"work"`
	Who      string  `json:"who"`
	HandOff  bool    `json:"handOff"` // else of a pair
	Run      int     `json:"run"`
	Script   float64 `json:"script"` // µs in the scripts, and in the commands outside of them
	CPU      float64 `json:"cpu"`    // µs of the server
	Commands float64 `json:"commands"`
}

const (
	shareScenario = "server-share"
	shareRounds   = 2000
	shareAtOnce   = 250 // so many pairs or hand-offs in one pipeline, so that system calls do not hide the scripts
)

// A shareMeter has one server do the works, over one connection.
type shareMeter struct {
	rdb  *redis.Client
	dir  string            // of redlatch's scripts
	shas map[string]string // of the scripts that the server has, by name
}

func newShareMeter(addr, dir string) *shareMeter {
	return &shareMeter{redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, DisableIdentity: true, ReadTimeout: time.Minute}), dir, map[string]string{}}
}

func (s *shareMeter) close() { _ = s.rdb.Close() }

// share measures the server's share on the server of this run, and on the other
// one if it is here.
func (b *bench) share(ctx context.Context, o options) ([]shareFigure, error) {
	all, err := b.serverShare(ctx, o, o.server+"-server")
	if err != nil {
		return all, err
	}
	other := map[string]string{"redis": "valkey-server", "valkey": "redis-server"}[o.server]
	if _, err := findServer(b.root, other); err != nil {
		return all, nil //nolint:nilerr // it is measured where it is
	}
	more, err := b.serverShare(ctx, o, other)
	return append(all, more...), err
}

// serverShare measures all works on a server, in turn in each run.
func (b *bench) serverShare(ctx context.Context, o options, name string) ([]shareFigure, error) {
	if !o.only.MatchString(shareScenario + "/" + name) {
		return nil, nil
	}
	server, err := startServer(b.root, name)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	s := newShareMeter(server.addr, b.scriptsDir)
	defer s.close()
	works := shareWorks()
	var all []shareFigure
	for run := range o.runs {
		for _, w := range works {
			for _, handOff := range []bool{false, true} {
				if handOff && w.handOff == nil {
					continue
				}
				if ctx.Err() != nil {
					return all, errors.New("interrupted")
				}
				f, err := s.measure(ctx, w, handOff, shareRounds)
				if err != nil {
					return all, fmt.Errorf("the server's share, %s of %s: %w", w.name, w.who, err)
				}
				f.Server, f.Run = server.version, run
				all = append(all, f)
			}
		}
		slices.Reverse(works)
		fmt.Fprintf(os.Stderr, "%-20s run %d  %s\n", shareScenario, run+1, server.version)
	}
	return all, nil
}

// measure returns what so many pairs or hand-offs of a work cost, each.
func (s *shareMeter) measure(ctx context.Context, w shareWork, handOff bool, rounds int) (shareFigure, error) {
	f := shareFigure{Work: w.name, Who: w.who, HandOff: handOff}
	if err := s.rdb.Del(ctx, s.leftovers(ctx)...).Err(); err != nil {
		return f, err
	}
	prepare, round := w.setUp, w.pair
	if handOff {
		prepare, round = slices.Concat(w.setUp, w.begin), w.handOff
		stop, err := s.listen(ctx, w.channels)
		if err != nil {
			return f, err
		}
		defer stop()
	}
	if err := s.send(ctx, prepare); err != nil {
		return f, err
	}
	warm := min(rounds, shareAtOnce)
	var batches [][]shareCommand
	for n := range warm + rounds {
		if n == 0 || n >= warm && (n-warm)%shareAtOnce == 0 {
			batches = append(batches, nil)
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], round(n)...)
	}
	if err := s.send(ctx, batches[0]); err != nil {
		return f, err
	}
	was, err := s.count(ctx)
	if err != nil {
		return f, err
	}
	for _, commands := range batches[1:] {
		if err := s.send(ctx, commands); err != nil {
			return f, err
		}
	}
	is, err := s.count(ctx)
	n := float64(rounds)
	f.Script, f.CPU, f.Commands = (is.script-was.script)/n, (is.cpu-was.cpu)/n, (is.commands-was.commands)/n
	if w.who == setNX {
		f.Script += (is.set - was.set) / n // no script of this work calls SET
	}
	return f, err
}

// leftovers returns all keys of the server, and one more.
func (s *shareMeter) leftovers(ctx context.Context) []string {
	return append(s.rdb.Keys(ctx, "*").Val(), "none")
}

// listen has somebody listen to channels until stop is called.
func (s *shareMeter) listen(ctx context.Context, channels []string) (stop func(), err error) {
	rdb := redis.NewClient(&redis.Options{Addr: s.rdb.Options().Addr})
	sub := rdb.Subscribe(ctx, channels...)
	for range channels {
		if _, err := sub.Receive(ctx); err != nil {
			return nil, errors.Join(err, sub.Close(), rdb.Close())
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := sub.Receive(ctx); err != nil {
				return
			}
		}
	}()
	return func() {
		_ = sub.Close()
		<-ended
		_ = rdb.Close()
	}, nil
}

// send sends commands in one pipeline, and compares what they are answered.
func (s *shareMeter) send(ctx context.Context, commands []shareCommand) error {
	pipe := s.rdb.Pipeline()
	for _, c := range commands {
		args, err := s.words(ctx, c)
		if err != nil {
			return err
		}
		pipe.Do(ctx, args...)
	}
	answers, err := pipe.Exec(ctx)
	if len(answers) != len(commands) {
		return err
	}
	for i, a := range answers {
		got := ""
		switch value, err := a.(*redis.Cmd).Result(); {
		case errors.Is(err, redis.Nil):
			got = "nil"
		case err != nil:
			return fmt.Errorf("%s%v: %w", commands[i].script, commands[i].args, err)
		default:
			got = fmt.Sprint(value)
		}
		if want := commands[i].want; want != "" && got != want {
			return fmt.Errorf("%s%v was answered %s, want %s", commands[i].script, commands[i].args, got, want)
		}
	}
	return nil
}

// words returns what is sent, and loads a script that the server does not have.
func (s *shareMeter) words(ctx context.Context, c shareCommand) ([]any, error) {
	var words []any
	if c.script != "" {
		if s.shas[c.script] == "" {
			sha, err := s.rdb.ScriptLoad(ctx, source(s.dir, c.script)).Result()
			if err != nil {
				return nil, err
			}
			s.shas[c.script] = sha
		}
		words = append(words, "EVALSHA", s.shas[c.script], len(c.keys))
	}
	for _, text := range slices.Concat(c.keys, c.args) {
		words = append(words, text)
	}
	return words, nil
}

// shareCounts are what the server has counted so far, times in µs.
type shareCounts struct{ script, set, cpu, commands float64 }

func (s *shareMeter) count(ctx context.Context) (shareCounts, error) {
	var c shareCounts
	info, err := s.rdb.InfoMap(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return c, err
	}
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		c.cpu += 1e6 * number(info["CPU"][name])
	}
	for name, text := range info["Commandstats"] {
		calls, rest, _ := strings.Cut(strings.TrimPrefix(text, "calls="), ",")
		usec, _, _ := strings.Cut(strings.TrimPrefix(rest, "usec="), ",")
		if name != "cmdstat_info" {
			c.commands += number(calls)
		}
		switch name {
		case "cmdstat_evalsha":
			c.script = number(usec)
		case "cmdstat_set":
			c.set = number(usec)
		}
	}
	if c.script == 0 {
		return c, errors.New("INFO commandstats knows no script")
	}
	return c, nil
}
