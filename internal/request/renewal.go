package request

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/wire"
)

// Renew runs a request that renews leases, with one attempt, and gives each its
// result. It says whether there is none because the keys are at two nodes, while a
// slot moves: one lease at a time may have better luck.
func (call *Call) Renew(leases []*renew.Lease) (apart bool) {
	s := call.Server
	call.Stop, call.Single = s.Over, true
	reply, err := call.Run(context.Background())
	if err == nil && len(reply.List) != len(leases) {
		err = Unexpected(reply, call.Script)
	}
	if err != nil {
		if len(leases) > 1 && driver.Failure(err).Code == "TRYAGAIN" {
			return true
		}
		call.renewFailed(leases, err)
		return false
	}
	if call.Short != nil { // nothing is prolonged then, but what is gone is gone
		s.RenewFailed(len(leases), call.Short)
	}
	for i, l := range leases {
		switch is, raised := extended(reply.List[i]); {
		case raised != "":
			call.renewFailed(leases[i:i+1], errors.New(wire.Text(raised)))
		case !is:
			l.Result = renew.Gone
		case call.Short != nil && l.Ask > 0:
			l.Fail(&renew.Failure{Err: call.Short, At: time.Now()})
		default:
			l.Result = renew.Confirmed
		}
	}
	return false
}

// renewFailed notes why leases were not renewed.
func (call *Call) renewFailed(leases []*renew.Lease, err error) {
	if driver.Failure(err).Code != "CROSSSLOT" { // then they are sent apart from here on
		call.Server.RenewFailed(len(leases), err)
	}
	failure := &renew.Failure{Err: err, At: time.Now()}
	for _, l := range leases {
		l.Fail(failure)
	}
}

// Extend runs a request that raises one lease, and says whether it is still its
// owner's. That too few replicas know of it is an error.
func (call *Call) Extend(ctx context.Context) (is bool, err error) {
	reply, err := call.Run(ctx)
	if err != nil {
		return false, err
	}
	is, raised := extended(First(reply))
	if raised != "" {
		return false, call.Raised(ctx, raised)
	}
	err = call.Doubt(is)
	return is && err == nil, err
}

// extended reads what a renewal says of one key: whether the lease is still its
// owner's, or else what the server has raised. It is not if something of another
// type has taken its place.
func extended(r driver.Reply) (is bool, raised string) {
	if r.Kind == driver.ReplyInt || wrongType(r.Str) {
		return r.Int == 1, ""
	}
	return false, r.Str
}
