package connect

import (
	"errors"
	"fmt"
	"strings"

	client "github.com/redis/rueidis"

	"github.com/redlatch/redlatch/rueidis"
)

// Open connects to the server that the URL names; see Parse for its forms. The
// driver belongs to the caller, who closes it after the redlatch.Client that
// uses it.
//
// The error of an unreachable or refusing server names the address and never
// the credentials.
func Open(rawURL string) (*rueidis.Driver, error) {
	opt, err := Parse(rawURL)
	if err != nil {
		return nil, err
	}
	return OpenOption(opt)
}

// OpenOption is Open for options that Parse has returned and the caller has
// changed since.
func OpenOption(opt client.ClientOption) (*rueidis.Driver, error) {
	d, err := rueidis.New(opt)
	if err != nil {
		return nil, &openError{address: strings.Join(opt.InitAddress, ","), secrets: []string{opt.Password, opt.Username}, err: err}
	}
	return d, nil
}

// An openError keeps the driver's error for errors.Is and errors.As and shows
// its text without credentials: servers that do not know HELLO quote its
// arguments, and the password is one of them.
type openError struct {
	address string
	secrets []string
	err     error
}

func (e *openError) Error() string {
	return fmt.Sprintf("connect: %s: %s", e.address, Mask(e.err.Error(), e.secrets...))
}

// Is and As look into the driver's error. There is no Unwrap: what it returns
// could be printed.
func (e *openError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *openError) As(target any) bool { return errors.As(e.err, target) }

// Mask returns text with each secret replaced by ***, for showing texts that
// come from servers. Empty secrets are skipped.
func Mask(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return text
}
