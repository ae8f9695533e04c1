package redlatch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/callsite"
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/hooks"
	"github.com/redlatch/redlatch/internal/lock/term"
	"github.com/redlatch/redlatch/internal/renew"
	"github.com/redlatch/redlatch/internal/worker"
)

const (
	maxReports = 10000 // may wait to be told
	mostLogged = 10    // waits of a circle are in its line
)

// reporter turns what happens into log lines, and tells observers, in the order in
// which it happened. Whoever notices something waits for none of them.
type reporter struct {
	log    *slog.Logger
	hooks  hooks.Set
	client Identity
	redis  string // Config.ServerName
	queue  *worker.Queue
	ends   *worker.Queue // of holds: skips nothing, and Close waits for it, or nobody could end a span or take down a gauge

	lately           claim.Losses
	losses, failures atomic.Uint64 // since the client began; failures are of renewals
}

// start begins to report. A Logger that the user has given wants call sites.
func (r *reporter) start(cfg *Config, logs bool) {
	r.log, r.client, r.redis = cfg.Logger, cfg.Identity, cfg.ServerName
	r.hooks.Start(logs || cfg.CallSites)
	r.ends = worker.NewQueue(0, nil)
	r.queue = worker.NewQueue(maxReports, func(n int) {
		r.log.Error("more happened than could be reported", "events", n)
		r.tell(func(to hooks.Reporter) { to.Skipped(n) })
	})
}

// tell tells all observers.
func (r *reporter) tell(event func(to hooks.Reporter)) { r.hooks.Now().Each(event) }

func (r *reporter) lost(loss claim.Loss) {
	err, ok := loss.Err.(*LostError) //nolint:errorlint // public makes it
	if !ok {
		return
	}
	r.losses.Add(1)
	r.lately.Add(loss, string(err.Reason))
	r.queue.Add(func() {
		held, late := renew.Elapsed(loss.Since, loss.At), time.Duration(0)
		if holdctx.Reason(err.Reason).Lapsed() {
			late = max(0, renew.Elapsed(loss.Until, loss.At))
		}
		attrs := append(r.attrs(&loss, err, held, late), optional("redis", r.redis)...)
		r.log.LogAttrs(context.Background(), slog.LevelError, "lock lost", attrs...)
		r.tell(func(to hooks.Reporter) { to.Lost(&loss, held, late) })
	})
}

// attrs are all that whoever is woken by the loss needs, in one line.
func (r *reporter) attrs(loss *claim.Loss, err *LostError, held, late time.Duration) []slog.Attr {
	ms := func(key string, d time.Duration) slog.Attr { return slog.Duration(key, d.Round(time.Millisecond)) }
	all := []slog.Attr{slog.String("name", err.Name), slog.String("kind", loss.Kind)}
	all = append(all, optional("mode", loss.Mode)...)
	if loss.Several {
		all = append(all, slog.Bool("one_of_several", true))
	}
	all = append(
		all, slog.String("owner", err.Owner), slog.String("reason", string(err.Reason)), slog.String("why", err.Reason.sentence()),
		ms("held", held), ms("late", late), ms("unconfirmed_for", renew.Elapsed(err.Confirmed, loss.At)), ms("lease", loss.Lease), slog.Bool("watchdog", loss.Renewed),
	)
	if loss.Failure != nil {
		all = append(all, slog.String("renewal_err", loss.Failure.Error()), ms("renewal_failed_before", renew.Elapsed(loss.FailureAt, loss.At)))
	}
	if loss.Token != 0 {
		all = append(all, slog.Int64("token", loss.Token))
	}
	all = append(all, slog.String("acquired_at", loss.Site.String()), slog.String("client", r.client.String()))
	return append(all, optional("node", loss.Node)...)
}

// optional is an attribute, unless it says nothing.
func optional(key, value string) []slog.Attr {
	if value == "" {
		return nil
	}
	return []slog.Attr{slog.String(key, value)}
}

func (r *reporter) releaseFailed(name, owner string, err error) {
	r.queue.AddLasting(func() {
		r.log.Warn("release not confirmed", "name", name, "owner", owner, "err", err)
		r.tell(func(to hooks.Reporter) { to.ReleaseFailed(name, owner, err) })
	})
}

func (r *reporter) renewFailed(holds int, err error) {
	r.failures.Add(uint64(holds))
	r.queue.Add(func() {
		r.log.Warn("renewal failed", "holds", holds, "err", err)
		r.tell(func(to hooks.Reporter) { to.RenewFailed(holds, err) })
	})
}

func (r *reporter) slowWait(name string, waited time.Duration, waiting, holding callsite.Site) {
	r.queue.Add(func() {
		waits, holds := waiting.String(), holding.String()
		r.log.Warn("waiting for a lock that this process holds", "name", name, "waited", waited, "waiting_at", waits, "acquired_at", holds)
		r.tell(func(to hooks.Reporter) { to.SlowWait(name, waited, waits, holds) })
	})
}

// possibleDeadlock reports a circle of waits, with names as users have them.
func (r *reporter) possibleDeadlock(circle []census.Wait) {
	r.queue.Add(func() {
		lines := make([]string, min(len(circle), mostLogged))
		for i := range lines {
			lines[i] = circle[i].String()
		}
		r.log.Warn("possible deadlock", "callers", len(circle), "waits", lines)
		r.tell(func(to hooks.Reporter) { to.PossibleDeadlock(circle) })
	})
}

func (r *reporter) requeued(name, owner string, waited time.Duration) {
	r.queue.Add(func() {
		r.log.Warn("place in a fair lock's queue lost", "name", name, "owner", owner, "waited", waited)
		r.tell(func(to hooks.Reporter) { to.Requeued(name, owner, waited) })
	})
}

func (r *reporter) notAcknowledged(err error) {
	short, ok := err.(*AckError) //nolint:errorlint // public makes it
	if !ok {
		return
	}
	r.queue.Add(func() {
		r.log.Warn("not acknowledged by replicas", "name", short.Name, "want", short.Want, "got", short.Got)
		r.tell(func(to hooks.Reporter) { to.NotAcknowledged(short.Name, short) })
	})
}

func (r *reporter) dropped(name string, at callsite.Site) {
	r.queue.Add(func() {
		site := at.String()
		r.log.Error("hold dropped without release", "name", name, "acquired_at", site)
		r.tell(func(to hooks.Reporter) { to.Dropped(name, site) })
	})
}

// locks are the events of locks as these tell them; refused is told for whom
// callers wait, inquire that they will not wait much longer, and first that the
// client makes its first owner id.
func (r *reporter) locks(refused func(owner string), inquire func(key, owner string), first func()) term.Events {
	return term.Events{
		Lost: r.lost, ReleaseFailed: r.releaseFailed, SlowWait: r.slowWait, Requeued: r.requeued, Dropped: r.dropped,
		Refused: refused, Inquire: inquire, First: first,
	}
}
