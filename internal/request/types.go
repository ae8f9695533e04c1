package request

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/wire"
)

// named returns the error of a call, which names the types of the keys if one of
// them has another than the script expects: what the server says of that has the
// script's hash, and no name. It asks once, and leaves the error as it is if there
// is no answer.
func (call *Call) named(ctx context.Context, err error) error {
	if driver.Failure(err).Code != "WRONGTYPE" || !strings.Contains(err.Error(), "wrong kind of value") || call.Script == lua.KeyTypes {
		return err
	}
	ask := call.Server.Question(lua.KeyTypes, call.Keys)
	ask.Lease, ask.Single = call.Lease, true
	reply, failed := ask.Send(ctx)
	if failed != nil || len(reply.List) != len(call.Keys) {
		return err
	}
	var found []string
	for i, r := range reply.List {
		if r.Str != "none" {
			found = append(found, fmt.Sprintf("%s is a %s", wire.Quote(call.Keys[i]), r.Str))
		}
	}
	if len(found) == 0 {
		return err // it is gone
	}
	which := "which is"
	if len(found) > 1 {
		which = "one of which is"
	}
	text := fmt.Errorf("WRONGTYPE: %s, %s not what redlatch and Redisson store there", strings.Join(found, ", "), which)
	return &driver.RunError{Outcome: driver.Refused, Code: "WRONGTYPE", Err: text}
}

// Raised is the error of a call whose script has answered with the text of an
// error that one of its commands raised.
func (call *Call) Raised(ctx context.Context, text string) error {
	return fmt.Errorf("redlatch: %w", call.named(ctx, driver.ServerError(text, errors.New(text))))
}
