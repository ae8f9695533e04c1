// Pictures takes the README's pictures of redlatch demo, serve and top: the real
// program shows what real clients do on a real server. make pictures runs it.
//
//	main.go      the order of things
//	server.go    a Redis of its own
//	play.go      the clients, and what they do
//	terminal.go  a terminal for redlatch top, and what is on its screen
//	record.go    a recording of redlatch demo on such a terminal, which plays in the page
//	browser.go   a Chromium, which shows the pages and photographs both
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is how long all of it may take.
const patience = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, patience)
	err := takeAll(ctx)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// takeAll takes the pictures for the repository in whose folder tests it is run.
func takeAll(ctx context.Context) (err error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "redlatch-pictures-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, end := context.WithCancel(ctx)
	defer end() // of all programs

	redlatch := filepath.Join(dir, "redlatch")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "cmd", "redlatch"), "-trimpath", "-o", redlatch, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	addr, stopServer, err := startServer(ctx, root, dir)
	if err != nil {
		return err
	}
	defer stopServer()

	bare := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, redlatch, args...)
		cmd.Env = append(os.Environ(), "TZ=UTC", "LANG=C.UTF-8", "TERM=xterm-256color", "NO_COLOR=")
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		return cmd
	}
	program := func(args ...string) *exec.Cmd {
		return bare(append(args, "--url", "redis://"+addr, "--interval", "1s")...)
	}
	url, stopPages, err := serve(program("serve", "--listen", "127.0.0.1:0"))
	if err != nil {
		return err
	}
	defer stopPages()
	b, err := newBrowser(ctx, dir)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.open(url); err != nil { // pages see what happens while one of them is open
		return err
	}
	top, err := newTerminal(program("top"), 14)
	if err != nil {
		return err
	}
	defer top.close()

	p := newPlay(ctx, addr)
	defer p.close()
	if err := p.begin(); err != nil {
		return err
	}
	images := filepath.Join(root, "docs", "images")
	return errors.Join(record(bare("demo"), filepath.Join(images, "demo.svg")), photographPages(b, url, filepath.Join(images, "serve.png")), photographTop(ctx, b, top, filepath.Join(images, "top.png")))
}

// serve starts redlatch serve, and returns the address that it prints.
func serve(cmd *exec.Cmd) (url string, stop func(), err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("redlatch serve prints no address: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// photographPages waits until the play is in full swing, on the page of all locks.
func photographPages(b *browser, url, file string) error {
	for _, want := range inFullSwing {
		if err := b.until(want.what, want.expression); err != nil {
			return err
		}
	}
	return b.photograph("body", pageWidth, file)
}

// photographTop waits until the list has what the page had.
func photographTop(ctx context.Context, b *browser, top *terminal, file string) error {
	if err := top.until(ctx, inFullSwingOnScreen); err != nil {
		return err
	}
	if err := b.open(top.page()); err != nil {
		return err
	}
	return b.photograph("main", topWidth, file)
}
