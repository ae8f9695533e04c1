package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/redlatch/redlatch/tests/sim"
)

// A player plays plans in a machine of its own, in which all follows from the
// seed: one thread, the seed's random numbers, and a clock that goes on when it is
// looked at.
type player struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// machine is the folder in that of a player which keeps what the machine has made
// of the simulation.
const machine = "machine"

// build builds the simulation for that machine. More are arguments of the go
// command. What the machine has made of another one is deleted. A play that goes
// on beside this has read its own.
func build(dir string, more ...string) (file string, err error) {
	made, err := os.CreateTemp(dir, "sim.*.wasm")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(made.Name()) }() // unless it has its name by then
	if err := made.Close(); err != nil {
		return "", err
	}
	file = made.Name()
	cmd := exec.Command("go", append(append([]string{"test", "-c", "-vet=off", "-trimpath", "-o", file}, more...), "github.com/redlatch/redlatch/tests/sim")...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "sim.wasm")
	if before, err := os.ReadFile(file); err != nil || !bytes.Equal(before, code) {
		if err := os.RemoveAll(filepath.Join(dir, machine)); err != nil {
			return "", err
		}
	}
	return file, os.Rename(made.Name(), file)
}

// load makes a player of what build has built. dir keeps what the machine has made
// of it.
func load(ctx context.Context, dir, file string) (*player, error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(dir, machine))
	if err != nil {
		return nil, err
	}
	p := &player{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))}
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err == nil {
		p.module, err = p.runtime.CompileModule(ctx, code)
	}
	if err != nil {
		return nil, errors.Join(err, p.runtime.Close(ctx))
	}
	return p, nil
}

func (p *player) close(ctx context.Context) error { return p.runtime.Close(ctx) }

// look is by how much the clock goes on when it is looked at, in ns.
const look = 1000

// limit is how long a play may take: a hundred times as long as one does.
const limit = 5 * time.Minute

// play plays a plan. It may be called by several goroutines.
func (p *player) play(ctx context.Context, plan sim.Plan) (*sim.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], plan.Seed)
	now := int64(1_700_000_000_000_000_000)
	// A play that is to end does so when it looks at the clock, which all of them do
	// all the time. The machine could stop it anywhere, but asks about that in each
	// loop and at each call, and takes three times as long for everything.
	tick := func() int64 {
		if err := ctx.Err(); err != nil {
			panic(err)
		}
		now += look
		return now
	}
	var out bytes.Buffer
	cfg := wazero.NewModuleConfig().WithName("").
		WithArgs("sim", "-test.run=^TestReplay$").
		WithEnv(sim.PlanEnv, string(text)).WithEnv("GOGC", "800").
		WithStdout(&out).WithStderr(&out).
		WithRandSource(rand.NewChaCha8(key)).
		WithWalltime(func() (int64, int32) { n := tick(); return n / 1e9, int32(n % 1e9) }, look).
		WithNanotime(tick, look).
		WithNanosleep(func(d int64) { now += d })
	m, err := p.runtime.InstantiateModule(ctx, p.module, cfg)
	if m != nil {
		defer func() { _ = m.Close(context.WithoutCancel(ctx)) }()
	}
	var exit *sys.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 0) {
		return nil, fmt.Errorf("the simulation ends with %w:\n%s", err, out.Bytes())
	}
	for line := range bytes.Lines(out.Bytes()) {
		if report, ok := bytes.CutPrefix(line, []byte(sim.ReportBegins)); ok {
			r := &sim.Report{}
			return r, json.Unmarshal(report, r)
		}
	}
	return nil, fmt.Errorf("the simulation reports nothing:\n%s", out.Bytes())
}
