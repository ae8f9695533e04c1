// Command redlatch takes Redisson-compatible locks from the shell, shows who
// holds them, and demonstrates the library. See docs/cli.md.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
)

func main() {
	if len(os.Args) == 2 && supervise.Helper(os.Args[1]) {
		return
	}
	cobra.EnableCommandSorting = false // help lists what is needed most often first
	os.Exit(execute(os.Args[1:]))
}
