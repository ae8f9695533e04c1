package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// An app is one invocation: what its commands share.
type app struct {
	ui     *ui
	server endpoint
	shown  string // where the server is, without credentials
	chosen string // how its user has said that, if not as for every command
	// watchdog is the client's, once there is one.
	watchdog time.Duration
	// mistaken is what cobra could not be told, which helps whoever asks for help of a
	// command that does not exist.
	mistaken error
	// after runs when everything else is done, before the process exits.
	after func()
}

// execute runs the command line and returns the exit code.
func execute(args []string) int {
	a := &app{ui: newUI(os.Stdout, os.Stderr)}
	root := a.root()
	root.SetArgs(args)
	help := &sink{Writer: a.ui.out}
	root.SetOut(help)
	cmd, err := root.ExecuteC()
	if a.after != nil {
		a.after()
	}
	if help.failed != nil {
		err = written(help.failed)
	}
	err = cmp.Or(err, a.mistaken)
	if err == nil {
		return 0
	}
	var f *failure
	if !errors.As(err, &f) {
		// All errors of our own are failures; the others are cobra's, about
		// the command line.
		f = &failure{code: exitUsage, err: err, hint: "see: " + cmd.CommandPath() + " --help"}
	}
	a.ui.fail(f)
	return f.code
}

// A sink is where cobra writes help and completion, and does not look whether it
// could.
type sink struct {
	io.Writer
	failed error
}

func (s *sink) Write(text []byte) (int, error) {
	n, err := s.Writer.Write(text)
	s.failed = cmp.Or(s.failed, err)
	return n, err
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "redlatch",
		Short: "Distributed locks on Redis and Valkey, shared with Redisson",
		Long: `redlatch acquires the same locks as Redisson, in the same Redis or Valkey.

The server is the one of --url or of --config. Without these flags it is the one of
the environment variable REDLATCH_URL, or else of REDIS_URL, or else
redis://localhost:6379. Every user of this machine can see a password in --url, but
not one in the variables or in the file of --config.

Programs that share a server may set Config.Prefix: "billing:" then stands in Redis
before each name that they use. With --prefix billing:, or the environment variable
REDLATCH_PREFIX, the commands use names as such a program does, and lists show
nothing else.

All commands share these exit codes: 64 for a mistake in the command line, 65 if the
name belongs to something of another type, 69 if the server cannot be reached or
refuses the user, 70 if something else went wrong with the server.`,
		Args:          known,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	// Cobra's own flag would print a template, and the linker keeps every method for
	// what a template may call.
	ownVersion := root.Flags().BoolP("version", "v", false, "print the version of redlatch")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *ownVersion {
			return a.printVersion()
		}
		return cmd.Help()
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if a.mistaken = known(cmd, cmd.Flags().Args()); a.mistaken == nil {
			help(cmd, args)
		}
	})
	a.server.flags(root.PersistentFlags())
	root.PersistentFlags().BoolVarP(&a.ui.quiet, "quiet", "q", false, "print only results, and the reason if the command fails")
	run := a.runCommand()
	run.SuggestFor = []string{"exec", "lock", "with"} // what it is called elsewhere
	group(root, "Run a command under a lock:", run, a.electCommand())
	group(root, "Hold a lock for several steps of a script:", a.acquireCommand(), a.extendCommand(), a.releaseCommand())
	group(root, "Use a synchronizer:", a.semaphoreCommand(), a.latchCommand(), a.rateCommand(), a.barrierCommand())
	group(root, "See who holds what, and who waits:", a.lsCommand(), a.showCommand(), a.watchCommand(), a.topCommand(), a.serveCommand(), a.exporterCommand())
	group(root, "Set up and check:", a.configCommand(), a.doctorCommand(), a.aclCommand())
	group(root, aboutItself, a.demoCommand(), a.versionCommand())
	root.AddCommand(a.demoWorkerCommand())
	root.SetHelpCommandGroupID(aboutItself)
	root.SetCompletionCommandGroupID(aboutItself)
	root.InitDefaultHelpCmd()
	helpCommand(root)
	return root
}

// aboutItself is the title of the commands that need no server of the user's.
const aboutItself = "About this program:"

// group adds commands for one task. The help lists them under the title, in this
// order: see main.
func group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// helpCommand has cobra's help command refuse what is no command: it showed the
// help of the root, and ended with 0.
func helpCommand(root *cobra.Command) {
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Short, help.Long = "help [COMMAND]", "Describe a command", ""
	help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err = cmp.Or(err, known(cmd, rest)); err != nil {
			return err
		}
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		return cmd.Help()
	}
}

// known refuses what is no command of cmd, and says which it may have been.
// Arguments of one that has no others it leaves alone.
func known(cmd *cobra.Command, args []string) error {
	if !cmd.HasSubCommands() || len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	like := cmd.SuggestionsFor(args[0])
	for _, other := range cmd.Commands() {
		if slices.Contains(other.SuggestFor, args[0]) {
			like = []string{other.Name()} // and not what is only spelt like it
		}
	}
	if len(like) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return err
}
