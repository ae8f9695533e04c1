package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// A versionJSON is a contract; see docs/cli.md.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // empty if not built from a checkout
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() versionJSON {
	v := versionJSON{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  cobra.NoArgs,
	}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if asJSON() {
			return written(a.ui.json(buildVersion()))
		}
		return a.printVersion()
	}
	return cmd
}

func (a *app) printVersion() error {
	_, err := fmt.Fprintln(a.ui.out, buildVersion())
	return written(err)
}

func (v versionJSON) String() string {
	revision := ""
	if v.Revision != "" {
		revision = " " + v.Revision
	}
	return fmt.Sprintf("redlatch %s%s %s %s", v.Version, revision, v.Go, v.Platform)
}
