package connect_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
)

func ExampleParse() {
	s, err := connect.Parse("rediss+sentinel://app:secret@sentinel1,sentinel2:7000/orders/2?cacert=/etc/redis/ca.pem")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(s)
	fmt.Println(s.Mode, s.Addresses, s.MasterName, s.Database, s.User, s.Password, s.TLS.CAFile)
	// Output:
	// rediss+sentinel://***@sentinel1:26379,sentinel2:7000/orders/2
	// sentinel [sentinel1:26379 sentinel2:7000] orders 2 app *** /etc/redis/ca.pem
}

// A password is shown as stars, whatever prints it.
func ExampleSecret() {
	s := connect.Settings{User: "app", Password: "secret"}
	fmt.Println(s.Password)
	fmt.Printf("%v %s %+v\n", s.Password, s.Password, s.Password)
	fmt.Println(string(s.Password) == "secret")
	// Output:
	// ***
	// *** *** ***
	// true
}

// Settings in Go, for what a URL does not say: credentials that change.
func ExampleCredentialsFunc() {
	s, err := connect.Parse("rediss://redis.internal:6379")
	if err != nil {
		log.Print(err)
		return
	}
	s.Credentials = func(context.Context) (username, password string, err error) { // before each connection
		token, err := os.ReadFile("/run/secrets/redis")
		return "app", string(token), err
	}
	// Then: client, err := redlatchgoredis.OpenSettings(s, redlatch.Config{})
}

// A server that is reached by another name than its certificate has, through a
// tunnel for example. VerifyNone would trust anybody.
func ExampleVerification() {
	s, err := connect.Parse("rediss://localhost:16379")
	if err != nil {
		log.Print(err)
		return
	}
	s.TLS.CAFile, s.TLS.Verify = "/etc/redis/ca.pem", connect.VerifyCA
	fmt.Println(s.TLS.Verify)
	// Output: authority
}

// Package redissonyaml warns of keys that mean something else here than in
// Redisson. A program may refuse to start with those that matter.
func ExampleWarning() {
	s := connect.Settings{Warnings: []connect.Warning{ // as redissonyaml.ReadFile returns them
		{Severity: connect.Harmless, Line: 5, Key: "nettyThreads"},
		{Severity: connect.Important, Line: 7, Key: "lockWatchdogTimout", Text: "has no effect: the key is unknown here"},
	}}
	for _, w := range s.Warnings {
		if w.Severity == connect.Important {
			fmt.Println(w)
		}
	}
	// Output: line 7: lockWatchdogTimout: has no effect: the key is unknown here
}

// A driver of your own opens its library with what a Plan says.
func ExamplePlan() {
	s, err := connect.Parse("redis://localhost/2")
	if err != nil {
		log.Print(err)
		return
	}
	plan, err := s.Plan(redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(plan.Addresses, plan.Database, plan.Secure == nil, plan.Dial, plan.Script)
}

// The text of a server may repeat what it was sent.
func ExampleMask() {
	fmt.Println(connect.Mask(`ERR unknown command 'AUTHX app secret'`, "secret"))
	// Output: ERR unknown command 'AUTHX app ***'
}

// A URL that is to be shown.
func ExampleRedact() {
	fmt.Println(connect.Redact("redis://app:secret@localhost/2"))
	// Output: redis://***@localhost:6379/2
}
