package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// redissonVersion is one of those that tests/interop/build.sh builds.
const redissonVersion = "4.7.0"

var redissonPeer = implementation{
	name:     "Redisson",
	settings: "Redisson " + redissonVersion + " (Java) with its defaults: getLock, getFairLock, getReadWriteLock, getSemaphore and getCountDownLatch. It runs its own loop in its own process. For the JVM, its warm-up is ten times as long as that of the others, and twenty times as long for latches, whose rounds are long",
	kind:     peer,
	locks:    allLocks,
	open:     nil,
	skips:    sleepsOrRepeats,
	mostRuns: 3, // each takes half a minute, and what they decide is far from its bound
}

// sleepsOrRepeats is where another half a minute would show nothing new: where all
// wait for sections that sleep, and at other widths than one.
func sleepsOrRepeats(s scenario) bool {
	return !s.Contended && s.Goroutines != 64 || s.Section > 0 && s.Pause == 0
}

// redissonJar is built by tests/interop/build.sh.
func redissonJar(root string) string {
	return filepath.Join(root, "tests", "interop", "peer", "target", redissonVersion, "peer.jar")
}

// redissonMissing says why Redisson cannot be measured, or "".
func redissonMissing(root string) string {
	if _, err := os.Stat(redissonJar(root)); errors.Is(err, fs.ErrNotExist) {
		return "the Java peer is not built: run tests/interop/build.sh"
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "no java in PATH"
	}
	return ""
}

// A redisson is the Java peer as a measuring process. It speaks JSON lines; see
// tests/interop/peer.
type redisson struct {
	self
	job    job
	lastID int
	before time.Duration // CPU time at begin
	answer redissonAnswer
	failed error
}

func startRedisson(root string, j job) (*redisson, error) {
	r := &redisson{job: j, self: self{cmd: exec.CommandContext(context.Background(), "java", "-jar", redissonJar(root))}}
	return r, r.start()
}

// send sends a request and returns its id.
func (r *redisson) send(request map[string]any) (int, error) {
	r.lastID++
	request["id"] = r.lastID
	text, err := json.Marshal(request)
	if err != nil {
		return 0, err
	}
	if _, err := io.WriteString(r.input, string(text)+"\n"); err != nil {
		r.kill()
		return 0, fmt.Errorf("%w: %s", err, r.errs.String())
	}
	return r.lastID, nil
}

// redissonAnswer is what the peer answers to loops, and to hoard and drop; other
// answers are less.
type redissonAnswer struct {
	ID        int     `json:"id"`
	Err       string  `json:"err"`
	Msg       string  `json:"msg"`
	Counts    []int64 `json:"counts"`
	ElapsedMS int64   `json:"elapsedMs"`
	Overlaps  int64   `json:"overlaps"`
	HandOffs  []int64 `json:"handOffs"` // nanoseconds
	MS        int64   `json:"ms"`
	Heap      float64 `json:"heap"`
	Threads   float64 `json:"threads"`
	Failed    int     `json:"failed"`
}

func (r *redisson) receive(id int, timeout time.Duration) (redissonAnswer, error) {
	var a redissonAnswer
	line, err := r.next("", timeout)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return a, err
	}
	if a.Err != "" {
		return a, fmt.Errorf("%s: %s", a.Err, a.Msg)
	}
	if a.ID != id {
		return a, fmt.Errorf("answer to %d, not to %d", a.ID, id)
	}
	return a, nil
}

// call is for requests whose answer is only that it was done.
func (r *redisson) call(request map[string]any, timeout time.Duration) error {
	_, err := r.ask(request, timeout)
	return err
}

func (r *redisson) ask(request map[string]any, timeout time.Duration) (redissonAnswer, error) {
	id, err := r.send(request)
	if err != nil {
		return redissonAnswer{}, err
	}
	return r.receive(id, timeout)
}

func (r *redisson) ready(timeout time.Duration) error {
	if err := r.call(map[string]any{"op": "open", "url": "redis://" + r.job.Addr}, timeout); err != nil {
		return err
	}
	// Until the JVM has compiled what matters. With names of its own: the
	// processes of a scenario do not warm up at the same time.
	return r.call(r.loop(fmt.Sprintf("%s:warm:%d", r.job.Name, r.job.Process), jvmWarm(r.job.Scenario, r.job.Warm)), timeout)
}

// jvmWarm is for how long a JVM warms up where others do for as long as warm.
func jvmWarm(s scenario, warm time.Duration) time.Duration {
	if s.Lock == countDown {
		return 30 * warm
	}
	return 15 * warm
}

func (r *redisson) loop(name string, length time.Duration) map[string]any {
	s := r.job.Scenario
	kind := map[lockType]string{plainLock: "lock", fairLock: "fair", readWrite: "read"}[s.Lock]
	op := map[lockType]string{semaphoreType: "loopSemaphore", countDown: "loopLatch"}[s.Lock]
	if op == "" {
		op = "loopLock"
	}
	return map[string]any{
		"op": op, "kind": kind, "name": name, "threads": s.Goroutines, "durationMs": length.Milliseconds(), "permits": s.Permits,
		"sectionUs": s.Section.Microseconds(), "pauseUs": s.Pause.Microseconds(), "perThreadKeys": !s.Contended, "writeEvery": s.WriteEvery,
	}
}

func (r *redisson) begin() error {
	r.before = cpuTime(r.cmd.Process.Pid)
	name := r.job.Name
	if !r.job.Scenario.Contended {
		name = fmt.Sprintf("%s:%d", name, r.job.Process)
	}
	request := r.loop(name, r.job.Length)
	if r.job.Page != "" {
		request["page"], request["who"] = r.job.Page, r.job.Process*r.job.Scenario.Goroutines+1
	}
	_, err := r.send(request)
	return err
}

// linger waits until the peer, which times itself, has ended its loop.
func (r *redisson) linger(timeout time.Duration) {
	r.answer, r.failed = r.receive(r.lastID, timeout)
}

// end has nothing to do: the peer knows how long to loop.
func (r *redisson) end() error { return nil }

func (r *redisson) result(time.Duration) (procResult, error) {
	if r.failed != nil {
		return procResult{}, r.failed
	}
	result := procResult{
		Elapsed: time.Duration(r.answer.ElapsedMS) * time.Millisecond, Acquisitions: r.answer.Counts,
		CPU: cpuTime(r.cmd.Process.Pid) - r.before, Violations: r.answer.Overlaps, HandOff: newHistogram(),
	}
	if r.job.Scenario.Lock != readWrite {
		for _, ns := range r.answer.HandOffs {
			result.HandOff.add(ns)
		}
	}
	return result, nil
}

// cpuTime reads what a process has used; 0 where there is no /proc.
func cpuTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// Fields 14 and 15, in hundredths of a second. The second field, in
	// parentheses, may hold spaces.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
