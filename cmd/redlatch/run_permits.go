package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/semaphore"
)

// permits is the flag N/M: N of the M permits that a semaphore has.
type permits struct{ n, of int }

func (p *permits) Set(s string) error {
	n, of, ok := strings.Cut(s, "/")
	if ok {
		var err, err2 error
		p.n, err = strconv.Atoi(n)
		p.of, err2 = strconv.Atoi(of)
		ok = err == nil && err2 == nil && p.n >= 1 && p.n <= p.of
	}
	if !ok {
		return errors.New("write it as N/M, such as 1/3 for one of three permits")
	}
	return nil
}

func (p *permits) String() string {
	if p.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.n, p.of)
}

// Type names the value in the help.
func (p *permits) Type() string { return "N/M" }

// takePermits acquires what --permits asks for, of a semaphore that it makes if
// there is none.
func (r *runner) takePermits(ctx context.Context, c *redlatch.Client) (*redlatch.Hold, error) {
	if err := mayBeWithin(ctx, &r.wait, c, r.name, leased); err != nil {
		return nil, err
	}
	s := semaphore.NewExpirable(c, r.name, 0, r.options().hold...)
	if err := haveOf(ctx, s, r.permits); err != nil {
		return nil, err
	}
	return s.TryAcquire(ctx, r.permits.n, r.most())
}

// haveOf makes a semaphore of so many permits, if there is none, and
// refuses one of another number.
func haveOf(ctx context.Context, s *semaphore.Expirable, want permits) error {
	over, cancel := context.WithCancel(ctx)
	cancel() // so that nothing is asked of the server
	if _, err := s.Acquire(over, want.n); errors.Is(err, redlatch.ErrInvalid) {
		return err
	}
	if _, err := s.TrySetPermits(ctx, want.of); err != nil {
		return err
	}
	all, err := s.Permits(ctx)
	if err != nil || all == want.of {
		return err
	}
	return &failure{
		code: exitUsage, err: fmt.Errorf("semaphore %q has %d permits, not %d", s.Name(), all, want.of),
		hint: fmt.Sprintf("everybody has to name the same number; redlatch semaphore add --expirable -- %s %d changes it", quoted(s.Name()), want.of-all),
	}
}
