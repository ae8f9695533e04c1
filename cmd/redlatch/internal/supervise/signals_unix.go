//go:build unix

package supervise

import (
	"os"
	"os/signal"
	"syscall"
)

// ending are the signals whose default action is to end the process.
var ending = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// running are the signals that are forwarded, in addition, while the command
// runs. Before that, Ctrl-Z must simply stop this process.
var running = []os.Signal{syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP}

// Notify delivers to c the signals that would end this process. Run adds the
// others that it forwards. HUP and INT stay ignored, here and in the command,
// if they were when this process started (nohup); Go does not tell of others.
//
// From then on a standard error that nobody reads is no reason to die either: what
// has a lock must release it.
func Notify(c chan<- os.Signal) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // ignored, the command would inherit it
	notify(c, ending)
}

func notify(c chan<- os.Signal, sigs []os.Signal) {
	for _, s := range sigs {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}

// Code returns the exit code that says "ended by sig", as shells do.
func Code(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}
