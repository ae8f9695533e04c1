package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// The exit codes of redlatch itself, as docs/cli.md promises them. The numbers
// above 63 are those of sysexits.h, which commands rarely use for themselves.
const (
	exitConflict    = 1   // the lock could not be had; run -E changes it
	exitWarning     = 1   // doctor: there is a warning
	exitProblem     = 2   // doctor: there is a problem
	exitUsage       = 64  // a mistake in the command line, the URL or the name
	exitData        = 65  // the key under the name is not a lock, or not what was asked for
	exitUnavailable = 69  // the server cannot be reached, or refuses us
	exitSoftware    = 70  // anything else
	exitSystem      = 71  // the result could not be written
	exitLost        = 74  // the lock was lost while the command ran
	exitTempFail    = 75  // the lock could not be had, with run --sysexits
	exitConfig      = 78  // the configuration file, or a file for TLS, cannot be used
	exitCannotRun   = 126 // the command is not executable
	exitNotFound    = 127 // there is no such command
)

// A failure ends the program: with a code, and an error to show unless it is
// nil.
type failure struct {
	code int
	err  error
	hint string // what to do about it; may be empty
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func usage(format string, args ...any) *failure {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// checkName refuses names that the library would refuse, before anything is
// connected.
func checkName(name string) error {
	if err := wire.CheckName(name); err != nil {
		return usage("%w", err)
	}
	return nil
}

// serverFailure turns an error of the library or its driver into a failure.
func (a *app) serverFailure(err error) error {
	var known *failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	f := &failure{code: exitSoftware, err: err}
	switch code := replyCode(err); {
	case code == "WRONGTYPE":
		f.code, f.hint = exitData, "a key of this name exists, but it is not a lock, or not of the type that was asked for"
	case code == "WRONGPASS", code == "NOAUTH", code == "NOPERM", lacksRight(err):
		f.code, f.hint = exitUnavailable, "check the user, the password and the user's rights at "+a.shownAddress()
	case code == "MOVED":
		f.code, f.hint = exitUnavailable, a.shownAddress()+" is a node of a cluster; write redis+cluster:// or rediss+cluster:// in the URL"
	case wire.NoDatabase(err.Error()):
		f.code, f.hint = exitUsage, "there is no such database at "+a.shownAddress()
	case errors.Is(err, redlatch.ErrNotAcknowledged):
		f.code, f.hint = exitUnavailable, "the replicas of "+a.shownAddress()+" are silent or behind; redlatch doctor shows how far"
	case errors.Is(err, redlatch.ErrUninitialized):
		f.code, f.hint = exitData, "set it first: redlatch rate set, or redlatch semaphore set --expirable"
	case errors.Is(err, redlatch.ErrInvalid), errors.Is(err, redlatch.ErrReentry):
		f.code = exitUsage
	case code == "READONLY":
		f.code, f.hint = exitUnavailable, "a replica has answered at "+a.shownAddress()+"; write the address of the primary, or of the sentinels or the cluster"
	case code != "" && errors.Is(err, redlatch.ErrUnavailable):
		f.code, f.hint = exitUnavailable, "redlatch doctor tells what is wrong at "+a.shownAddress()
	case code == "":
		tls := ""
		if strings.HasPrefix(a.shownAddress(), "rediss") {
			tls = " with TLS, which the server may not speak there"
		}
		f.code, f.hint = exitUnavailable, "asked "+a.shownAddress()+tls+"; "+cmp.Or(a.chosen, "--url, --config, REDLATCH_URL or REDIS_URL choose another server")
	}
	return f
}

// isOutage says whether a failure may be over soon without anybody changing
// anything: the server has not answered at all, or that it cannot work yet.
func isOutage(err error) bool {
	var f *failure
	if !errors.As(err, &f) {
		return false
	}
	code := replyCode(f.err)
	return code == "LOADING" || f.code == exitUnavailable && (redlatch.IsRetryable(f.err) || code == "" && !lacksRight(f.err))
}

// lacksRight says whether a script was refused one of its commands, which servers
// say in words.
func lacksRight(err error) bool {
	text := err.Error()
	return strings.Contains(text, "ACL failure in script") || strings.Contains(text, "The user executing the script can't")
}

// replyCode returns the code of the server's error reply that err is about, or
// "" if the server has not replied.
func replyCode(err error) string {
	var run *driver.RunError
	var reply *rueidis.RedisError
	switch {
	case errors.As(err, &run):
		return run.Code
	case errors.As(err, &reply):
		return driver.ServerError(reply.Error(), err).Code
	}
	return ""
}

// written turns a failure to write the result into one of the program.
func written(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitSystem, err: fmt.Errorf("writing the result: %w", err)}
}
