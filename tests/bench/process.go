package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A process measures: it warms up, gets ready, and measures from go to stop.
type process interface {
	ready(timeout time.Duration) error
	begin() error
	end() error
	result(timeout time.Duration) (procResult, error)
	kill() // and wait for its death; harmless when it has ended
}

var errSilent = errors.New("no answer")

// A self is this program as a measuring process.
type self struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string
	errs  tail
}

func startSelf(j job) (process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	s := &self{cmd: exec.CommandContext(context.Background(), exe)}
	s.cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	return s, s.start()
}

// start starts cmd, and sends what it writes to lines.
func (s *self) start() error {
	s.cmd.Stderr = &s.errs
	input, output, err := startPiped(s.cmd)
	if err != nil {
		return err
	}
	s.input = input
	s.lines = make(chan string, 8)
	go func() {
		defer close(s.lines)
		scanner := bufio.NewScanner(output)
		scanner.Buffer(nil, 16<<20) // a result is long
		for scanner.Scan() {
			s.lines <- scanner.Text()
		}
	}()
	return nil
}

// startPiped starts a program, and returns what it reads and what it writes.
func startPiped(cmd *exec.Cmd) (input io.WriteCloser, output io.Reader, err error) {
	if input, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if output, err = cmd.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	return input, output, cmd.Start()
}

// next returns the next line that starts with word, without it.
func (s *self) next(word string, timeout time.Duration) (string, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.kill()
				return "", fmt.Errorf("ended early: %s", s.errs.String())
			}
			if rest, ok := strings.CutPrefix(line, word); ok {
				return strings.TrimSpace(rest), nil
			}
		case <-timer.C:
			return "", errSilent
		}
	}
}

func (s *self) ready(timeout time.Duration) error {
	_, err := s.next("ready", timeout)
	return err
}

func (s *self) begin() error { return s.order("go") }
func (s *self) end() error   { return s.order("stop") }

func (s *self) order(word string) error {
	_, err := io.WriteString(s.input, word+"\n")
	return err
}

func (s *self) result(timeout time.Duration) (procResult, error) {
	var r procResult
	text, err := s.next("result", timeout)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(text), &r)
}

func (s *self) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.input.Close()
	for range s.lines {
		// until the pipe is empty, as Wait wants it
	}
	_ = s.cmd.Wait()
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - 2000; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
