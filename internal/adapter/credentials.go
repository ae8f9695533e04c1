package adapter

import (
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/mask"
)

// Credentials are what a client logs in with.
type Credentials struct {
	Rotate  bool     // a function returns them: after a refusal it may return others
	Secrets []string // what no error may show; empty ones are skipped
}

// Judge makes an outage of a refusal, if the next connection may have other
// credentials. It hides the credentials in what the server says: a server that
// does not know a command of the handshake may quote it.
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
