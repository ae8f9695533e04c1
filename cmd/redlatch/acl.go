package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/acl"
)

func (a *app) aclCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acl [PREFIX]...",
		Short: "Print the rights that a user of the server needs",
		Long: `Print the rights that a user of Redis or Valkey needs to work with the locks and
synchronizers whose names begin with PREFIX, and no other rights. Without PREFIX,
names may begin with anything. It is one line, to be put into ACL SETUSER or into a
line of the ACL file. acl asks no server. --prefix stands before each PREFIX.
Without PREFIX it is the only one. The names of entries of a Redisson map begin with
the map's name in braces: for entries of the map accounts, PREFIX is '{accounts}:'.

With --watch the rights are those of a user that only looks and changes nothing: for
redlatch ls, top, show, watch, serve and exporter, and for package admin without
ForceRelease. They include what --list adds, and no command that writes a key.
--watch goes with PREFIX and --for only. --list and --doctor add to the rule without --watch, and --doctor
includes what --list adds. --sentinel goes with --for only. Its rule is the same for
a user that only looks.`,
		Example: `  set -f  # the rule has asterisks
  redis-cli ACL SETUSER app reset on '>secret' $(redlatch acl orders:)
  redis-cli ACL SETUSER app reset on '>secret' $(redlatch acl --for 7.0 orders:)  # Redis 7.0 refuses what is newer
  redis-cli ACL SETUSER watcher reset on '>secret' $(redlatch acl --watch)`,
	}
	var rule acl.Rule
	var sentinel bool
	version := choice{value: acl.Versions[len(acl.Versions)-1], options: acl.Versions}
	cmd.Flags().Var(&version, "for", "the version of Redis: "+strings.Join(acl.Versions, ", ")+"; the last is also for newer versions and for Valkey")
	version.completes(cmd, "for")
	cmd.Flags().BoolVar(&rule.List, "list", false, "add what redlatch ls and the lists of package admin need: SCAN, which shows the names of all keys")
	cmd.Flags().BoolVar(&rule.Doctor, "doctor", false, "add what redlatch doctor needs: INFO, CONFIG GET, SCAN and the like")
	cmd.Flags().BoolVar(&rule.Watch, "watch", false, "print only what redlatch ls, top, show, watch, serve and exporter need: nothing that writes")
	cmd.Flags().BoolVar(&sentinel, "sentinel", false, "print the rights of a user of the sentinels instead")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := a.server.checkPrefix(); err != nil {
			return err
		}
		rule.Version, rule.Prefixes = version.value, a.prefixes(args)
		words := rule.Words()
		if sentinel {
			if len(args) > 0 || rule.List || rule.Doctor || rule.Watch {
				return usage("sentinels have no locks: only --for goes with --sentinel")
			}
			words = acl.Sentinel(rule.Version)
		}
		switch {
		case rule.Watch && rule.List:
			return usage("--watch has what --list adds: leave --list out")
		case rule.Watch && rule.Doctor:
			return usage("--watch and --doctor contradict each other: doctor tries what a user that only looks may not do")
		}
		if slices.Contains(args, "") {
			return usage("an empty PREFIX would allow all names: leave it out if that is meant")
		}
		for _, prefix := range rule.Prefixes {
			if strings.ContainsFunc(prefix, func(r rune) bool { return unicode.IsSpace(r) || r < ' ' }) {
				return usage("a server takes no pattern with spaces: %q", prefix)
			}
		}
		_, err := fmt.Fprintln(a.ui.out, strings.Join(words, " "))
		return written(err)
	}
	return cmd
}

// prefixes returns how names in Redis begin if those of users begin so.
func (a *app) prefixes(names []string) (all []string) {
	if len(names) == 0 && a.server.prefix != "" {
		return []string{a.server.prefix}
	}
	for _, name := range names {
		all = append(all, a.server.prefix+name)
	}
	return all
}
