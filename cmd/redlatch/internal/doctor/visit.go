package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Server answers commands.
type Server interface {
	// Address is how the server is called in findings.
	Address() string
	// Do sends commands and returns their answers in order.
	Do(ctx context.Context, commands ...[]string) []Answer
	// Listen subscribes to a channel and returns when that is confirmed.
	Listen(ctx context.Context, channel string, sharded bool) (messages <-chan string, stop func(), err error)
	// Single says that the server is used as one that has all keys.
	Single() bool
}

// An Answer is a string, an int64, nil, or an []any of these; or an error, which
// is a *ReplyError if the server has sent it.
type Answer struct {
	Value any
	Err   error
}

// A ReplyError is the error that a server has answered.
type ReplyError struct {
	Code string // "NOPERM"
	Text string // all of it
}

func (r *ReplyError) Error() string { return r.Text }

// A visit is the examination of one server.
type visit struct {
	Server

	ctx  context.Context
	opt  Options
	lost error // why the server cannot be asked any more

	info      map[string]string // nil if INFO is refused
	config    map[string]string // what CONFIG GET has told; nil if it is refused
	infoWhy   *ReplyError
	configWhy *ReplyError

	blind int // requests about keys that were refused
}

// ask sends one command. When the server cannot be reached, then or before, the
// answer is a refusal and v.lost the reason.
func (v *visit) ask(args ...string) (any, *ReplyError) {
	a := v.askAll([][]string{args})[0]
	var refusal *ReplyError
	errors.As(a.Err, &refusal)
	return a.Value, refusal
}

// askAll sends many commands; each error is a *ReplyError.
func (v *visit) askAll(commands [][]string) []Answer {
	if len(commands) == 0 {
		return nil
	}
	var answers []Answer
	if v.lost == nil {
		answers = v.Do(v.ctx, commands...)
	}
	for _, a := range answers {
		var refusal *ReplyError
		if a.Err != nil && !errors.As(a.Err, &refusal) {
			v.fail(a.Err)
		}
	}
	if v.lost != nil {
		answers = make([]Answer, len(commands))
		for i := range answers {
			answers[i].Err = &ReplyError{"LOST", v.lost.Error()}
		}
	}
	return answers
}

func (v *visit) fail(err error) {
	if v.lost == nil {
		v.lost = err
	}
}

// The settings that checks look at and INFO does not have.
var settings = []string{
	"appendfsync", "no-appendfsync-on-rewrite", "save", "stop-writes-on-bgsave-error", "min-replicas-to-write",
	"timeout", "tcp-keepalive", "client-output-buffer-limit", "maxclients",
}

// read asks for what several checks need.
func (v *visit) read() {
	text, why := v.ask("INFO")
	if v.infoWhy = why; why == nil {
		v.info = map[string]string{}
		for line := range strings.Lines(str(text)) {
			if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(name, "#") {
				v.info[name] = value
			}
		}
	}
	for _, name := range settings {
		reply, why := v.ask("CONFIG", "GET", name)
		if why != nil {
			v.configWhy = why
			return
		}
		if v.config == nil {
			v.config = map[string]string{}
		}
		if pair := list(reply); len(pair) == 2 {
			v.config[name] = str(pair[1])
		}
	}
}

// number returns a number in INFO.
func (v *visit) number(name string) int64 {
	n, _ := strconv.ParseInt(v.info[name], 10, 64)
	return n
}

// cluster says whether the server is a node of a cluster.
func (v *visit) cluster() bool { return !v.Single() || v.info["cluster_enabled"] == "1" }

// access tells what the server does not let anybody see.
func access(v *visit) []Finding {
	var all []Finding
	const remedy = "give the user that runs doctor the right to it; the other users need none"
	if v.infoWhy != nil {
		all = append(all, found("access", Note, fmt.Sprintf("INFO is refused (%s)", v.infoWhy.Code),
			"version, memory, persistence and replicas cannot be looked at", remedy)...)
	}
	if v.configWhy != nil {
		all = append(all, found("access", Note, fmt.Sprintf("CONFIG GET is refused (%s), as managed servers do", v.configWhy.Code),
			"how often the log is synced, snapshots, the replicas that a write needs, and limits of connections cannot be looked at",
			"look these up in the console of the provider, or "+remedy)...)
	}
	return all
}

func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func num(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return int64(max(-never, min(n, never)))
		}
	}
	return 0
}
