package connect

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A CredentialsFunc says with which credentials a connection logs in, for those
// that change: tokens of a cloud, passwords from a vault. It is asked whenever a
// connection has been made, by several goroutines at once, so it should remember
// what it has been told. An empty username is the default user. The context ends
// when the connection would come too late; who has not answered by then is not
// waited for.
//
// An error is taken for an outage, and so is a server's refusal of the credentials:
// what would have used the connection is not executed, and tried again for as long
// as redlatch.Config.OutageTimeout says; the next connection asks again. The error
// is shown, so it must not contain the credentials.
type CredentialsFunc func(ctx context.Context) (username, password string, err error)

// Ask asks, and waits no longer than ctx lasts, whatever the function does.
func (f CredentialsFunc) Ask(ctx context.Context) (username, password string, err error) {
	type answer struct {
		username, password string
		err                error
	}
	answers := make(chan answer, 1)
	start := time.Now()
	go func() {
		var a answer
		a.username, a.password, a.err = f(ctx)
		answers <- a
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return "", "", &credentialsError{a.err}
		}
		return a.username, a.password, nil
	case <-ctx.Done():
		return "", "", &credentialsError{fmt.Errorf("no answer within %v", time.Since(start).Round(time.Millisecond))}
	}
}

// A credentialsError keeps the function's error for errors.Is. There is no Unwrap:
// nobody is to take what it says, about another server perhaps, for the answer of
// this one.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "connect: the credentials: " + e.err.Error() }

func (e *credentialsError) Is(target error) bool { return errors.Is(e.err, target) }

// Fixed returns a function that always answers the same.
func Fixed(username string, password Secret) CredentialsFunc {
	return func(context.Context) (string, string, error) { return username, string(password), nil }
}
