package testserver

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/internal/acl"
)

// Admin may do everything, at servers and sentinels, and logs in with
// AdminPassword.
const (
	Admin         = "admin"
	AdminPassword = "admin-of-the-tests"
)

// Open are arguments for servers whose default user may do everything, for
// clients that are not redlatch.
var Open = []string{"--user", "default", "on", "nopass", "~*", "&*", "+@all"}

// Rule returns a rule for the version of that kind that is installed.
func Rule(k Kind, r acl.Rule) acl.Rule {
	if path, err := find(k); err == nil { // else Start says so
		r.Version = versionOf(path)
	}
	return r
}

func isOpen(args []string) bool {
	return strings.Contains(strings.Join(args, " "), strings.Join(Open, " "))
}

// withUsers returns the arguments of a server with those that make its users. They
// are the administrator and, unless args have one, the default user, which may do
// what redlatch needs. A password in args is the default user's, as with
// requirepass.
func withUsers(version string, args []string) []string {
	all := slices.Concat([]string{"--user", Admin, "on", ">" + AdminPassword, "~*", "&*", "+@all"}, args)
	if slices.Contains(args, "--user") {
		return all
	}
	password := "nopass"
	if i := slices.Index(all, "--requirepass"); i >= 0 && i+1 < len(all) {
		password = ">" + all[i+1]
		all = slices.Delete(all, i, i+2) // it would be overruled
	}
	rights := acl.Rule{Version: version, List: true}.Commands()
	if strings.Contains(strings.Join(args, " "), "--appendonly yes") {
		// A server runs its append-only file as the default user, and leaves out what that
		// user may not do. In the file PEXPIRE stands as PEXPIREAT.
		rights = append(rights, "+pexpireat", "+unlink")
	}
	return append(append(all, "--user", "default", "on", password, "~*", "&*"), rights...)
}

// sentinelUsers is the same for the configuration file of a sentinel whose servers
// have these arguments.
func sentinelUsers(version string, args []string) string {
	rights := acl.Sentinel(version)
	if isOpen(args) {
		rights = Open[4:]
	}
	line := func(words ...string) string { return "user " + strings.Join(words, " ") + "\n" }
	return line(Admin, "on", ">"+AdminPassword, "~*", "&*", "+@all") +
		line(append([]string{"default", "on", "nopass"}, rights...)...)
}

var (
	versions  sync.Map // by path
	saysRedis = regexp.MustCompile(`^Redis server v=(6|7\.[01])\.`)
)

// versionOf returns the one of acl.Versions whose rules a program understands.
func versionOf(path string) string {
	if v, ok := versions.Load(path); ok {
		return v.(string)
	}
	version := acl.Versions[len(acl.Versions)-1]
	said, _ := exec.CommandContext(context.Background(), path, "--version").Output() // a program that cannot say it does not start either
	if old := saysRedis.FindSubmatch(said); old != nil {
		if version = "7.0"; string(old[1]) == "6" {
			version = "6.2"
		}
	}
	versions.Store(path, version)
	return version
}
