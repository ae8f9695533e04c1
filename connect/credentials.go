package connect

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A CredentialsFunc returns the credentials with which a connection logs in. It
// is for credentials that change: tokens of a cloud, passwords from a vault. It
// is called whenever a connection has been made, by several goroutines at once,
// so it should remember the credentials, and not fetch them each time. An empty
// username is the default user. The context ends when the connection would come
// too late. A function that has not returned by then is not waited for.
//
// An error counts as an outage, and so does a server's refusal of the credentials:
// a request for that connection is not executed, and is tried again for as long as
// redlatch.Config.OutageTimeout says. The next connection calls the function
// again. The error is shown, so it must not contain the credentials.
type CredentialsFunc func(ctx context.Context) (username, password string, err error)

// Ask calls the function, and waits no longer than ctx lasts, whatever the
// function does.
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

// Fixed returns a function that always returns the same credentials.
func Fixed(username string, password Secret) CredentialsFunc {
	return func(context.Context) (string, string, error) { return username, string(password), nil }
}
