package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	var plain bool
	var length duration
	watchdog := duration{Duration: demo.DefaultWatchdog}
	out := &sink{Writer: os.Stdout}
	opt := demo.Options{Out: out}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch several processes contend for one lock",
		Long: `Start an embedded server and several worker processes that contend for one lock.
Kill one worker that holds it, and cut off another from the server. The workers
write down when they enter and leave the code under the lock. This process checks
that no two were ever in at the same time.

On a terminal q ends the demo early. It needs nothing but this program, and ends by
itself. The exit code is 0 if there was no violation, otherwise 1.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "print plain lines, also on a terminal")
	cmd.Flags().Var(&length, "for", "how long the demo takes (default: the whole story); a shorter time leaves out parts of it")
	cmd.Flags().Var(&watchdog, "watchdog", "the lease of the workers' holds; a slow machine needs a longer one")
	cmd.Flags().IntVar(&opt.Workers, "workers", 4, "how many worker processes, 2 to 8")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range serverFlags {
			if cmd.Flags().Changed(name) {
				return usage("demo starts a server of its own; --%s is for the other commands", name)
			}
		}
		if opt.Workers < 2 || opt.Workers > 8 {
			return usage("--workers %d is not between 2 and 8", opt.Workers)
		}
		if length.set && length.Duration < time.Second {
			return usage("--for %v is too short: nothing would be tested; give at least 1s", length.Duration)
		}
		if watchdog.Duration < 300*time.Millisecond {
			return usage("--watchdog %v is too short; it must be at least 300ms", watchdog.Duration)
		}
		opt.Length, opt.Watchdog = length.Duration, watchdog.Duration
		// The view also needs a terminal that gives keys one by one.
		if !plain && paints(os.Stdout) && isTerminal(os.Stdin) {
			opt.Terminal, opt.Keys = os.Stdout, os.Stdin
			opt.Color = colorful(os.Stdout)
		}
		sum, err := demo.Run(opt)
		switch {
		case err != nil && out.failed == nil:
			return &failure{code: exitSoftware, err: err}
		case sum.Violations > 0:
			return &failure{code: 1}
		case sum.Signal != nil:
			return &failure{code: sum.Code()}
		}
		return written(out.failed)
	}
	return cmd
}

// demoWorkerCommand is what the demo starts several times.
func (a *app) demoWorkerCommand() *cobra.Command {
	var w demo.Worker
	cmd := &cobra.Command{
		Use:    demo.WorkerCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
	}
	cmd.Flags().IntVar(&w.ID, "id", 0, "")
	cmd.Flags().StringVar(&w.Records, "records", "", "")
	cmd.Flags().DurationVar(&w.Watchdog, "watchdog", demo.DefaultWatchdog, "")
	cmd.RunE = func(*cobra.Command, []string) error {
		w.URL = a.server.address()
		if err := w.Run(os.Stdin, os.Stdout); err != nil {
			return &failure{code: exitSoftware, err: err}
		}
		return nil
	}
	return cmd
}
