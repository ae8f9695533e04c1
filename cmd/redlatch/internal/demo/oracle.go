package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// The oracle knows nothing of locks. Every worker appends a record when it has
// entered its section and another before it leaves; a record is one write to a
// file opened with O_APPEND, so the order of the file is the order of the
// writes. Two workers were in their sections at the same time exactly if an
// "enter" follows another without the other's "leave" in between. For a worker
// that was killed, this process writes "died" once the system has confirmed
// that it is gone.

// The kinds of record.
const (
	enter = "enter"
	leave = "leave"
	died  = "died"
)

// A recorder appends records.
type recorder struct{ f *os.File }

func openRecorder(path string) (*recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &recorder{f: f}, nil
}

// write appends one record: the time on the wall, which all processes of one
// machine share, the process, the worker, and what it did.
func (r *recorder) write(at time.Time, pid, worker int, kind string) error {
	_, err := fmt.Fprintf(r.f, "%d %d %d %s\n", at.UnixNano(), pid, worker, kind)
	return err
}

func (r *recorder) close() error { return r.f.Close() }

// An oracle reads records as they are written, and judges them.
type oracle struct {
	f        *os.File
	pending  []byte // a record of which only the beginning has been read
	inside   map[int]int
	entered  int // sections
	overlaps []string
}

func openOracle(path string) (*oracle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &oracle{f: f, inside: map[int]int{}}, nil
}

func (o *oracle) close() error { return o.f.Close() }

// read judges the records that have been written since the last call.
func (o *oracle) read() error {
	text, err := io.ReadAll(o.f)
	if err != nil {
		return err
	}
	o.pending = append(o.pending, text...)
	end := bytes.LastIndexByte(o.pending, '\n') + 1
	lines := bufio.NewScanner(bytes.NewReader(o.pending[:end]))
	for lines.Scan() {
		if err := o.judge(lines.Text()); err != nil {
			return err
		}
	}
	o.pending = o.pending[end:]
	return nil
}

var errRecord = errors.New("a record cannot be read")

// judge looks at one record.
func (o *oracle) judge(line string) error {
	f := strings.Fields(line)
	if len(f) != 4 {
		return fmt.Errorf("%w: %q", errRecord, line)
	}
	pid, err1 := strconv.Atoi(f[1])
	worker, err2 := strconv.Atoi(f[2])
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%w: %q", errRecord, line)
	}
	switch f[3] {
	case enter:
		o.entered++
		for other, w := range o.inside {
			o.overlaps = append(o.overlaps, fmt.Sprintf("worker %d (pid %d) entered while worker %d (pid %d) was in", worker, pid, w, other))
		}
		o.inside[pid] = worker
	case leave:
		if _, ok := o.inside[pid]; !ok {
			return fmt.Errorf("%w: %q: that worker was not in", errRecord, line)
		}
		delete(o.inside, pid)
	case died:
		delete(o.inside, pid)
	default:
		return fmt.Errorf("%w: %q", errRecord, line)
	}
	return nil
}
