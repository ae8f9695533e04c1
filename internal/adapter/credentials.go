package adapter

import (
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/mask"
)

// Credentials are what a client logs in with.
type Credentials struct {
	Rotate  bool     // a function is asked for them: those that are refused may be others next time
	Secrets []string // what nobody is to read in an error; empty ones are skipped
}

// Judge makes an outage of credentials that are refused, if there may be others for
// the next connection, and hides them in what the server says: one that does not
// know a command of the handshake may quote it.
func (c *Credentials) Judge(re *driver.RunError) *driver.RunError {
	if re.Code != "" {
		re.Err = c.Mask(re.Err)
	}
	if c.Rotate && (re.Code == "WRONGPASS" || re.Code == "NOAUTH") {
		re.Code = ""
	}
	return re
}

// Mask returns err without the secrets.
func (c *Credentials) Mask(err error) error { return mask.Error(err, c.Secrets...) }
