package request

import (
	"fmt"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
)

// First returns what a reply says of the first key that it is about.
func First(r driver.Reply) driver.Reply {
	if r.Kind != driver.ReplyList {
		return r
	}
	if len(r.List) == 0 {
		return driver.Reply{}
	}
	return r.List[0]
}

// WrongType says whether an error that a key raised means that what was there is gone:
// somebody has put something else in its place.
func WrongType(text string) bool { return driver.ServerError(text, nil).Code == "WRONGTYPE" }

// Unexpected says that a script has answered what it never does.
func Unexpected(r driver.Reply, s *script.Script) error {
	return fmt.Errorf("redlatch: unexpected answer %s to %s", wire.Quote(fmt.Sprintf("%+v", r)), s.Name())
}
