package redlatchgoredis

import (
	"cmp"
	"context"
	"errors"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/adapter"
)

var _ driver.Batcher = (*Driver)(nil)

// RunBatch implements [driver.Batcher]. The requests go out in one pipeline. Those
// whose scripts the server does not know go out once more, in another pipeline.
// Each request is judged by itself, as Run judges it. RunBatch takes no longer
// than a Run.
func (d *Driver) RunBatch(requests []*driver.Request) {
	limit := bounded{d.limits.Get(), context.Background()} // which has no values
	unknown, broken := d.sendAll(limit, "evalsha", (*driver.Script).SHA, requests)
	if len(unknown) > 0 {
		limit.Context = d.secondLimit(limit.Context)
		_, again := d.sendAll(limit, "eval", (*driver.Script).Source, unknown)
		broken = cmp.Or(broken, again)
	}
	d.breaks.Sent(requests, broken)
}

// sendAll sends commands together, each once, and sets what became of them. It
// returns those of unknown scripts instead, and one that met a break if there is
// one.
func (d *Driver) sendAll(
	limit bounded, verb any, script func(*driver.Script) string, requests []*driver.Request,
) (unknown []*driver.Request, broken *driver.Request) {
	pipe := d.rdb.Pipeline()
	all := make([]sending, len(requests))
	cmds := make([]once, len(requests))
	for i, r := range requests {
		m := &all[i]
		m.ctx, m.script = limit, scriptArg{text: script(r.Script)}
		cmds[i] = command(&m.ctx, m.words[:0], verb, &m.script, r.Keys, r.Args)
		_ = pipe.Process(&m.ctx, cmds[i])
	}
	err := d.contained(func() error { _, err := pipe.Exec(limit); return err })
	for i, r := range requests {
		var re *driver.RunError
		r.Reply, re = piped(cmds[i], err, &all[i].script)
		switch {
		case re == nil:
			r.Err = nil
		case re.Code == "NOSCRIPT" && verb == "evalsha":
			unknown = append(unknown, r)
		default:
			if adapter.IsBreak(re) {
				broken = r
			}
			r.Err = d.creds.Judge(re)
		}
	}
	return unknown, broken
}

// piped says what became of a command of a pipeline that ended with err: that of
// the first command that failed, or of a hook.
func piped(cmd once, err error, text *scriptArg) (driver.Reply, *driver.RunError) {
	own := cmd.Err()
	switch {
	case errors.Is(err, errUnreadable):
		own = err
	case own == nil && cmd.Val() == nil: // a hook has not sent it, or nobody could read the answer
		own = cmp.Or(err, errNoReply)
	}
	return result(cmd, own, text)
}

// SharedPipelines lets the requests of many callers share pipelines. That saves
// system calls of the program and of the server, most of all with many callers at
// once.
//
// A pipeline belongs to no caller. So hooks of the client see redlatch's scripts
// without the values of any caller's context, and traces show the scripts apart
// from the code that asked for them.
func SharedPipelines() Option { return func(d *Driver) { d.traits.ContextValues = false } }
