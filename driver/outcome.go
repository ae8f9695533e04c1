package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/internal/wire"
)

// An Outcome classifies a failed Run.
type Outcome uint8

// The outcomes of a failed Run.
const (
	// Unknown: the script may have run, may still run later, or may never run.
	Unknown Outcome = iota
	// NotExecuted: the script has not run and never will (the connection could
	// not be made, the pool was exhausted, LOADING, MOVED, READONLY, ...).
	// Running it again is safe.
	NotExecuted
	// Refused: the server ran the script or looked at it, and answered with an error
	// (WRONGTYPE, OOM, NOPERM, a bug). What the script had written before the error
	// stays. Most scripts fail before they have written anything. An error that says
	// that a key is at another node of a cluster is Unknown if a script has raised it.
	Refused
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case NotExecuted:
		return "not executed"
	case Refused:
		return "refused"
	default:
		return "unknown"
	}
}

// A RunError is a failed Run.
type RunError struct {
	Outcome Outcome
	// Code is the first word of the server's error reply ("WRONGTYPE", also for
	// a hash that is no lock), or empty if no reply came.
	Code string
	Err  error // the driver's own
}

// Error implements error.
func (e *RunError) Error() string {
	return wire.ServerText(fmt.Sprintf("script %s: %v", e.Outcome, e.Err))
}

// Unwrap returns the driver's own error.
func (e *RunError) Unwrap() error { return e.Err }

// Permanent says that it cannot help to try again before somebody has acted.
func (e *RunError) Permanent() bool {
	switch e.Code {
	case "":
		return false
	case "WRONGPASS", "NOAUTH", "NOPERM":
		return true
	case "OOM", "MISCONF", "NOREPLICAS":
		return false
	default:
		return e.Outcome == Refused || e.Err != nil && wire.NoDatabase(e.Err.Error())
	}
}

// ServerError turns the text of a server's error reply into a *RunError. err is
// the driver's own error, kept for errors.As. Drivers call ServerError for
// every error that is a reply. They decide about every other error themselves:
// NotExecuted if the command cannot have been sent, otherwise Unknown.
func ServerError(text string, err error) *RunError {
	text = raised(text)
	code, _, _ := strings.Cut(text, " ")
	code = strings.TrimSuffix(code, ":")
	if code == "" || strings.ToUpper(code) != code {
		code = "ERR"
	}
	outcome := Refused
	switch code {
	case "NOSCRIPT", "MOVED", "ASK", "REDIRECT", "LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN",
		"NOAUTH", "BUSY", "MASTERDOWN", "WRONGPASS", "UNKILLABLE":
		outcome = NotExecuted
	}
	switch {
	case strings.Contains(text, "max number of clients"):
		outcome = NotExecuted
	case strings.Contains(text, "attempted to access a non local key"):
		outcome = Unknown // while a slot moves: the script may have written before
	}
	return &RunError{Outcome: outcome, Code: code, Err: err}
}

// raised returns what a command raised inside a script, where the server has
// wrapped that, as Redis before 7 and miniredis do.
func raised(text string) string {
	if _, rest, ok := strings.Cut(text, "Error running script (call to "); ok {
		// "f_<sha>): @user_script:1: WRONGTYPE ...", or for what Redis itself
		// refuses "...: @user_script:1: @user_script: 1: -OOM ..."
		if i := strings.LastIndex(rest, "@user_script:"); i >= 0 {
			_, rest, _ = strings.Cut(rest[i+len("@user_script:"):], ": ") // what follows the line number
			return strings.TrimPrefix(rest, "-")
		}
	}
	if _, rest, ok := strings.Cut(text, "Error compiling script (new function): "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok && strings.HasPrefix(rest, ":") {
			return after // what follows the line number
		}
		return rest
	}
	return text
}

// Failure returns the *RunError in err. For an error that has none, it returns one
// with the outcome Unknown.
func Failure(err error) *RunError {
	var re *RunError
	if errors.As(err, &re) {
		return re
	}
	return &RunError{Outcome: Unknown, Err: err}
}
