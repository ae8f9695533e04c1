package goredis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
)

// Whoever is not let in has executed nothing, and is told why.
func TestNotLetIn(t *testing.T) {
	t.Parallel()
	for _, kind := range testserver.Kinds() {
		s := testserver.Start(t, kind, "--requirepass", "secret")
		for password, code := range map[string]string{"": "NOAUTH", "wrong": "WRONGPASS", "secret": ""} {
			r := use(t, redis.NewClient(&redis.Options{Addr: s.Addr(), Password: password}))
			err := refusal(t, r)
			var re *driver.RunError
			switch {
			case code == "" && err == nil:
			case !errors.As(err, &re) || re.Outcome != driver.NotExecuted || re.Code != code:
				t.Errorf("%s, password %q: %v, want that it was not executed: %s", kind, password, err, code)
			}
		}
	}
}

// Credentials that are asked for may be others next time.
func TestRefusedCredentialsThatRotate(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t, testserver.Redis, "--requirepass", "secret")
	password := "wrong"
	r := use(t, redis.NewClient(&redis.Options{
		Addr: s.Addr(), CredentialsProviderContext: func(context.Context) (string, string, error) { return "default", password, nil },
	}))
	err := refusal(t, r)
	var re *driver.RunError
	if !errors.As(err, &re) || re.Outcome != driver.NotExecuted || re.Code != "" || !redlatch.IsRetryable(err) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("%v", err)
	}
	password = "secret"
	if err := refusal(t, r); err != nil {
		t.Error(err)
	}
}

// refusal runs a script until the server has answered, and returns its error, if
// any: go-redis takes three seconds at most to connect, and a busy machine more.
func refusal(t *testing.T, r driver.Redis) (err error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		_, err = r.Run(t.Context(), newScript(t, "return 1"), nil, nil)
		if answer := redis.Error(nil); err == nil || errors.As(err, &answer) {
			break
		}
	}
	return err
}

// A server that refuses the handshake may quote it.
func TestAQuotedPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	r := use(t, redis.NewClient(&redis.Options{Addr: testserver.Quoting(t), Password: "hunter2", MaxRetries: -1}))
	err := refusal(t, r)
	var reply redis.Error
	if err == nil || !strings.Contains(err.Error(), "***") || !errors.As(err, &reply) {
		t.Errorf("%v", err)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
	primaries, err := r.Primaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = primaries[0].Scan(t.Context(), 0, "hash", "*", 1); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}
