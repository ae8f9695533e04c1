package adapter

import (
	"errors"
	"strings"

	"github.com/redlatch/redlatch"
)

// Credentials are what a client logs in with.
type Credentials struct {
	Rotate  bool     // a function is asked for them: those that are refused may be others next time
	Secrets []string // what nobody is to read in an error; empty ones are skipped
}

// Judge makes an outage of credentials that are refused, if there may be others for
// the next connection, and hides them in what the server says: one that does not
// know a command of the handshake may quote it.
func (c *Credentials) Judge(re *redlatch.RunError) *redlatch.RunError {
	if re.Code != "" {
		re.Err = c.Mask(re.Err)
	}
	if c.Rotate && (re.Code == "WRONGPASS" || re.Code == "NOAUTH") {
		re.Code = ""
	}
	return re
}

// Mask returns err, or if its text has a secret an error without, in which errors.Is
// and errors.As find the same.
func (c *Credentials) Mask(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	masked := text
	for _, s := range c.Secrets {
		if s != "" {
			masked = strings.ReplaceAll(masked, s, "***")
		}
	}
	if masked == text {
		return err
	}
	return &maskedError{masked, err}
}

// A maskedError has no Unwrap: what that returns could be printed.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.err, target) }
