package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/driver"
)

// A library is what is adapted: a client of Redis. Do sends commands in one go,
// and returns an answer to each: an error, nil, an integer, a string or a list.
// Listen subscribes again by itself after a connection has broken.
type library interface {
	Do(commands ...[]string) (answers []any)
	Listen(command, channel string, up func(), message func(string)) (stop func())
	OnDisconnect(f func()) (stop func())
}

// errUnsent is the library's error for a command that it could not send.
var errUnsent = errors.New("no connection")

// serverError is the library's error for an error that the server has answered.
type serverError string

func (e serverError) Error() string { return string(e) }

// adapter implements driver.Redis, for a single server.
type adapter struct{ lib library }

// Can it send scripts in one go, and wait for replicas? These are optional.
var _ driver.Batcher = adapter{}

func (a adapter) Traits() driver.Traits {
	return driver.Traits{Name: "adapter", Timeout: 3 * time.Second} // the library's own time-out
}

func (a adapter) Run(_ context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	r := driver.Request{Script: s, Keys: keys, Args: args}
	a.RunBatch([]*driver.Request{&r})
	return r.Reply, r.Err
}

func (a adapter) RunBatch(requests []*driver.Request) {
	a.send("EVALSHA", (*driver.Script).SHA, requests)
	unknown := slices.DeleteFunc(slices.Clone(requests), func(r *driver.Request) bool {
		return r.Err == nil || driver.Failure(r.Err).Code != "NOSCRIPT"
	})
	if len(unknown) > 0 {
		a.send("EVAL", (*driver.Script).Source, unknown)
	}
}

func (a adapter) send(command string, name func(*driver.Script) string, requests []*driver.Request) {
	var commands [][]string
	for _, r := range requests {
		commands = append(commands, slices.Concat([]string{command, name(r.Script), strconv.Itoa(len(r.Keys))}, r.Keys, r.Args))
	}
	for i, answer := range a.lib.Do(commands...) {
		if err, failed := answer.(error); failed {
			requests[i].Err = outcome(err)
		} else {
			requests[i].Reply, requests[i].Err = reply(answer), nil
		}
	}
}

// outcome says truthfully what became of a script that failed.
func outcome(err error) *driver.RunError {
	if refused := serverError(""); errors.As(err, &refused) {
		return driver.ServerError(string(refused), err)
	}
	if errors.Is(err, errUnsent) {
		return &driver.RunError{Outcome: driver.NotExecuted, Err: err}
	}
	return driver.Failure(err) // it may have run, or may run later
}

func reply(answer any) (r driver.Reply) {
	switch answer := answer.(type) {
	case int64:
		r.Kind, r.Int = driver.ReplyInt, answer
	case string:
		r.Kind, r.Str = driver.ReplyString, answer
	case []any:
		r.Kind = driver.ReplyList
		for _, a := range answer {
			r.List = append(r.List, reply(a))
		}
	}
	return r
}

func (a adapter) Subscribe(channel string, sharded bool, h func(driver.Notice)) (stop func()) {
	command := "SUBSCRIBE"
	if sharded {
		command = "SSUBSCRIBE"
	}
	return a.lib.Listen(command, channel, func() { h(driver.Notice{Subscribed: true}) }, func(text string) {
		h(driver.Notice{Payload: text})
	})
}

func (a adapter) OnBreak(f func(node string)) (stop func()) {
	return a.lib.OnDisconnect(func() { f("") })
}

func (a adapter) Node(string) string { return "" } // there is only one

func (a adapter) Primaries(context.Context) ([]driver.Primary, error) {
	return []driver.Primary{a}, nil
}

func (a adapter) Scan(_ context.Context, cursor uint64, kind, pattern string, count int) (keys []string, next uint64, err error) {
	answer := a.lib.Do([]string{"SCAN", strconv.FormatUint(cursor, 10), "TYPE", kind, "MATCH", pattern, "COUNT", strconv.Itoa(count)})[0]
	if err, failed := answer.(error); failed {
		return nil, 0, outcome(err)
	}
	page := reply(answer).List // the next cursor, and the keys
	for _, key := range page[1].List {
		keys = append(keys, key.Str)
	}
	next, err = strconv.ParseUint(page[0].Str, 10, 64)
	return keys, next, err
}

// A whole adapter. Package drivertest tests it: Run(t, drivertest.Config{...}).
func ExampleRedis() {
	var d driver.Redis = adapter{lib: openLibrary()}
	add := driver.NewScript("add", `return redis.call("incrby", KEYS[1], ARGV[1])`)
	for _, key := range []string{"visits", "orders:42"} {
		answer, err := d.Run(context.Background(), add, []string{key}, []string{"2"})
		if err != nil {
			fmt.Println(driver.Failure(err).Outcome, driver.Failure(err).Code)
			continue
		}
		fmt.Println(answer.Kind == driver.ReplyInt, answer.Int)
	}

	// What it cannot do redlatch does without.
	_, waits := d.(driver.Acker)      // for replicas: Config.Acks
	_, counts := d.(driver.Sharer)    // the listeners of clients that share it
	_, knows := d.(driver.Subscriber) // which subscriptions are up: Client.Healthy
	fmt.Println(waits, counts, knows)
	// Output:
	// true 2
	// refused WRONGTYPE
	// false false false
}

func openLibrary() library { return memory{} }

// memory is a library without a server, for this example.
type memory struct{}

func (memory) Do(commands ...[]string) (answers []any) {
	for _, c := range commands {
		switch {
		case c[0] == "EVALSHA":
			answers = append(answers, serverError("NOSCRIPT No matching script. Please use EVAL."))
		case c[3] == "orders:42":
			answers = append(answers, serverError("WRONGTYPE Operation against a key holding the wrong kind of value"))
		default:
			answers = append(answers, int64(2))
		}
	}
	return answers
}

func (memory) Listen(string, string, func(), func(string)) (stop func()) { return func() {} }

func (memory) OnDisconnect(func()) (stop func()) { return func() {} }
