package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/wire"
)

// What says what a holder has of the lock.
func (l *Lock) What(h *Holder) string {
	switch {
	case h.Mode != "":
		return string(l.Kind) + ", " + h.Mode
	case h.Value != "":
		return string(l.Kind) + ", " + h.Value
	}
	return string(l.Kind)
}

// TTLText shows a TTL in milliseconds.
func TTLText(ms int64) string {
	if ms < 0 {
		return "none"
	}
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// LeaseText shows for how long a holder has what it has.
func (all *Told) LeaseText(ms int64) string { return leaseText(ms, all.IsRenewed()) }

// LeaseText shows for how long the lock is held.
func (l *Lock) LeaseText() string {
	return leaseText(l.TTL, slices.ContainsFunc(l.Holders, func(h Holder) bool { return h.IsRenewed() }))
}

// leaseText shows a lease: nothing says when one ends that is renewed.
func leaseText(ms int64, renewed bool) string {
	if renewed {
		return "renewed while it lives"
	}
	return TTLText(ms)
}

// IsRenewed says whether the client renews it, by its own word.
func (all *Told) IsRenewed() bool { return all.Renewed != nil && *all.Renewed }

// ForText shows for how long it has been so, "-" if that is not known.
func (all *Told) ForText() string {
	if all.For == nil {
		return "-"
	}
	return TTLText(*all.For)
}

// ByText says who it is: by its own word, else by the library that its owner id
// tells.
func (all *Told) ByText(client string, redlatch bool) string {
	by := cmp.Or(all.By, library(client, redlatch))
	if all.Answered != nil && !*all.Answered {
		by += " (no answer)"
	}
	return by
}

func library(client string, redlatch bool) string {
	switch {
	case redlatch:
		return "redlatch"
	case client != "":
		return "redisson"
	}
	return "unknown"
}

// Stands says in a few words what it is and how it stands.
func (l *Lock) Stands() string { return string(l.Kind) + ", " + l.Counts() }

// Counts says how a synchronizer stands.
func (l *Lock) Counts() string {
	switch {
	case l.Rate != nil && l.Rate.PerClient:
		return fmt.Sprintf("%d for each client", l.Rate.Permits)
	case l.Kind == redlatch.KindLatch:
		return fmt.Sprintf("%d to go", *l.Count)
	case l.Kind == redlatch.KindBarrier:
		return fmt.Sprintf("%d of %d here", *l.Count, *l.Total)
	case l.Kind == redlatch.KindCounter:
		return strconv.Itoa(*l.Count)
	case l.Total != nil:
		return fmt.Sprintf("%d of %d free", *l.Count, *l.Total)
	}
	return fmt.Sprintf("%d free", *l.Count)
}

// Waiters returns how many wait, and whether that is all that is known of them.
func (l *Lock) Waiters() (n int, known bool) {
	n = len(l.Queue)
	for range l.Unqueued {
		n++
	}
	if l.Others != nil {
		n += *l.Others
	}
	return n, n > 0 || l.Others != nil
}

// Unqueued yields those that say that they wait, but for those that stand in the
// queue.
func (l *Lock) Unqueued(yield func(*Claim) bool) {
	queued := make(map[string]bool, len(l.Queue))
	for _, w := range l.Queue {
		queued[w.Owner] = true
	}
	for i := range l.Waiting {
		w := &l.Waiting[i]
		if (w.Owner == "" || !queued[w.Owner]) && !yield(w) {
			return
		}
	}
}

// OthersText says how many wait that do not say who they are; empty if nobody
// does, or that is not known.
func (l *Lock) OthersText() string {
	switch {
	case l.Others == nil || *l.Others == 0:
		return ""
	case *l.Others == 1:
		return "1 that does not say who it is"
	}
	return strconv.Itoa(*l.Others) + " that do not say who they are"
}

// WaitersText says how many wait, as far as that is known: "-" if it is not.
func (l *Lock) WaitersText() string {
	n, known := l.Waiters()
	if !known {
		return "-"
	}
	return strconv.Itoa(n)
}

// LongestWait returns for how long the one has waited that has waited longest, of
// those who say it.
func (l *Lock) LongestWait() (longest time.Duration) {
	for i := range l.Queue {
		longest = max(longest, l.Queue[i].since())
	}
	for i := range l.Waiting {
		longest = max(longest, l.Waiting[i].since())
	}
	return longest
}

// LongestHold returns for how long the one has held it that has held it longest,
// of those who say it.
func (l *Lock) LongestHold() (longest time.Duration) {
	for i := range l.Holders {
		longest = max(longest, l.Holders[i].since())
	}
	return longest
}

// SpanText is a time of at most seven characters.
func SpanText(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 1000*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// since is for how long it has been so; 0 if that is not known.
func (all *Told) since() time.Duration {
	if all.For == nil {
		return 0
	}
	return time.Duration(*all.For) * time.Millisecond
}

// HoldersText says who holds the lock; empty if nobody does. Of many it names the
// first.
func (l *Lock) HoldersText() string {
	if len(l.Holders) == 0 {
		return ""
	}
	text := l.Holders[0].WhoText()
	if n := len(l.Holders) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// WhoText says who holds the lock: nobody does that was released and stays.
func (h *Holder) WhoText() string {
	if wire.Kept(h.Owner) {
		return "MinHold, after the release"
	}
	return h.ByText(h.Client, h.Redlatch)
}

// Who says who claims it.
func (c *Claim) Who() string { return cmp.Or(c.By, "client "+c.Client) }

// Worth says what a claim is worth that is not stored.
func (c *Claim) Worth() string {
	if c.Kind == redlatch.KindSemaphore && c.Evidence == string(admin.EvidenceNone) {
		return Plural(c.Count, "permit") + ", by its own word"
	}
	return "Redis does not have that: it is false, or over"
}

// Plural is "1 permit" or "2 permits".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Printable returns s with control and other invisible characters escaped, and
// with bytes that are no UTF-8: so that a name cannot change how it, or what
// stands beside it, is shown.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != ' ' }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case unicode.IsPrint(r) && (r != unicode.ReplacementChar || strings.HasPrefix(s[i:], "\uFFFD")):
			b.WriteRune(r)
		case r == unicode.ReplacementChar: // a byte that is not UTF-8
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}
