// Package mask keeps credentials out of texts that others make: a server that
// does not know a command of the handshake quotes it, and the password is a part
// of it. It promises that an error loses nothing else: errors.Is and errors.As
// find in it what they found before.
package mask

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Text returns text with each secret replaced by ***: as it is, quoted as Go does,
// and escaped as in a URL. Empty secrets are skipped.
func Text(text string, secrets ...string) string {
	for _, s := range secrets {
		if s == "" {
			continue
		}
		quoted := strconv.Quote(s)
		for _, form := range []string{s, quoted[1 : len(quoted)-1], url.PathEscape(s), url.QueryEscape(s)} {
			text = strings.ReplaceAll(text, form, "***")
		}
	}
	return text
}

// Error returns err, or if its text has a secret an error without, in which
// errors.Is and errors.As find the same.
func Error(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	masked := Text(text, secrets...)
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
