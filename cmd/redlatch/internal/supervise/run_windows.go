package supervise

import (
	"os"
	"os/signal"
)

// Helper is for the guard process, which Windows does not have.
func Helper(string) (ok bool) { return false }

// Notify delivers Ctrl-C to c.
func Notify(c chan<- os.Signal) { signal.Notify(c, os.Interrupt) }

// Code returns the exit code that says "ended by sig".
func Code(os.Signal) int { return 130 }

// Raise does nothing on Windows.
func (Result) Raise() {}

// Run runs the command and returns when it has ended; what it has started may
// still run. An error means that the command was not started. Windows tells
// every process of the console about Ctrl-C by itself, so nothing is forwarded.
func Run(c Command) (Result, error) {
	p, err := os.StartProcess(c.Path, c.Args, &os.ProcAttr{
		Env:   c.Env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return Result{}, err
	}
	defer signal.Stop(c.Signals)
	done := make(chan int, 1)
	go func() {
		state, err := p.Wait()
		if err != nil {
			done <- 1
			return
		}
		done <- state.ExitCode()
	}()
	stop := c.Stop
	for {
		select {
		case <-c.Signals: // the command has got it as well
		case <-stop:
			stop = nil
			_ = p.Kill()
		case code := <-done:
			return Result{Code: code, Stopped: stop == nil && c.Stop != nil}, nil
		}
	}
}
