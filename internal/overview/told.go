package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

const (
	// mostAsking is how long the server and the clients may take together.
	mostAsking = 5 * time.Second
	// answerSpread is over how long the clients spread their answers: with the second
	// and a half in which a silent one may still answer it is what asking usually
	// takes at most.
	answerSpread = 200 * time.Millisecond
	// mostAsked is how many names a question has besides its pattern, and mostQuestion
	// how many bytes they have: redlatch.Question may have little more.
	mostAsked    = 64
	mostQuestion = 3 << 10
	// mostPattern is how many bytes the pattern of a question has: redlatch.Question
	// may have little more.
	mostPattern = 200
)

// told is what clients say of themselves. It proves nothing.
type told struct {
	admin.Participants
	problem string // why nobody, or not everybody, could be asked; empty if they were
	clients map[string]*admin.Participant
	claims  map[string][]clientClaim // by name, the oldest first
}

// A clientClaim is a claim of a client that has answered.
type clientClaim struct {
	admin.Claim
	by    *admin.Participant
	waits bool // else it is a hold, unless it has a Reason
}

// ask asks all clients who they are, what they hold and wait for.
func ask(ctx context.Context, client *redlatch.Client, q admin.Question) *told {
	ctx, cancel := context.WithTimeout(ctx, mostAsking)
	defer cancel()
	q.Spread = answerSpread
	p, err := admin.New(client).Participants(ctx, q)
	t := &told{Participants: p, clients: map[string]*admin.Participant{}, claims: map[string][]clientClaim{}}
	switch {
	case err != nil && p.At.IsZero(): // the question was not even asked
		t.Silent = -1
		t.problem = fmt.Sprintf("clients could not be asked who they are: %v", unasked(err))
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redlatch.ErrInvalid) {
			t.problem += "; the user needs the channels redlatch_ask and redlatch_answer (redlatch acl)"
		}
	case err != nil:
		t.problem = fmt.Sprintf("not all that clients say could be compared with what is stored: %v", unasked(err))
	}
	for i := range p.Clients {
		c := &p.Clients[i]
		t.clients[c.Client] = c
		if !c.Answered {
			continue // what is known of it is what Redis has
		}
		for _, claim := range slices.Concat(c.Held, c.Lost) {
			t.claims[claim.Name] = append(t.claims[claim.Name], clientClaim{claim, c, false})
		}
		for _, claim := range c.Waiting {
			t.claims[claim.Name] = append(t.claims[claim.Name], clientClaim{claim, c, true})
		}
	}
	for _, claims := range t.claims {
		slices.SortStableFunc(claims, func(x, y clientClaim) int { return cmp.Compare(y.For, x.For) })
	}
	return t
}

// answered is how many clients of redlatch gave an answer.
func (t *told) answered() (n int) {
	for i := range t.Clients {
		if t.Clients[i].Redlatch && t.Clients[i].Answered {
			n++
		}
	}
	return n
}

func unasked(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it took more than %v", mostAsking)
	}
	return err
}

// questionAbout is one question for a whole listing, and for the names that are
// looked at besides. Clients of redlatch say themselves what they hold; of the
// others those that wait are counted, for as many names as a question may have.
func questionAbout(pattern string, names []string, found []Lock) admin.Question {
	q := admin.Question{Pattern: askable(cmp.Or(pattern, "*"))}
	room := mostQuestion
	add := func(name string) {
		text, _ := json.Marshal(name) //nolint:errchkjson // strings always can
		if utf8.ValidString(name) && len(text) < room && len(q.Names) < mostAsked && !slices.Contains(q.Names, name) {
			room -= len(text) + 1
			q.Names = append(q.Names, name)
		}
	}
	for _, name := range names {
		add(name)
	}
	for _, l := range found {
		if slices.ContainsFunc(l.Holders, func(h Holder) bool { return !h.Redlatch }) {
			add(l.Name)
		}
	}
	return q
}

// questionOf is the question about one name. If a question cannot have that name,
// a pattern that fits it asks for it.
func questionOf(name string) admin.Question {
	q := questionAbout("", []string{name}, nil)
	if q.Pattern = ""; len(q.Names) == 0 {
		q.Pattern = askable(patternOf(name))
	}
	return q
}

// patternOf is a pattern that fits a name, and is text: it has a question mark for
// each byte that is no UTF-8.
func patternOf(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(name[i:], "\uFFFD"):
			b.WriteByte('?')
		case strings.ContainsRune(`*?[]\`, r):
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// askable is a pattern that a question may have, and that fits whatever the other
// does.
func askable(pattern string) string {
	if len(pattern) > mostPattern || !utf8.ValidString(pattern) {
		return "*"
	}
	return pattern
}

// infoOf returns what Redis had of a name when the answers had come, if somebody
// looked.
func (t *told) infoOf(name string) (admin.Info, bool) {
	i := slices.IndexFunc(t.Objects, func(o admin.Info) bool { return o.Name == name })
	if i < 0 {
		return admin.Info{}, false
	}
	return t.Objects[i], true
}

// addTo adds what clients say of a lock to what is stored.
func (t *told) addTo(l *Lock) {
	if t.Silent >= 0 {
		l.Silent = &t.Silent
	}
	barrier := l.Kind == redlatch.KindBarrier // which may have the name of something else
	if n, counted := t.Others[l.Name]; counted && !barrier {
		l.Others = &n
	}
	for i := range l.Holders {
		h := &l.Holders[i]
		t.addSaid(&h.Told, h.Client, l.Name, func(c clientClaim) bool { return !c.waits && h.is(c) })
	}
	for i := range l.Queue {
		w := &l.Queue[i]
		t.addSaid(&w.Told, w.Client, l.Name, func(c clientClaim) bool { return c.waits && w.Owner == c.Owner })
	}
	for _, c := range t.claims[l.Name] {
		if l.Exists && barrier != (c.Kind == redlatch.KindBarrier) {
			continue
		}
		claim := Claim{Kind: c.Kind, Mode: c.Mode, Owner: c.Owner, Client: c.by.Client, Count: c.Count, Evidence: string(c.Evidence), Reason: string(c.Reason), Under: c.Under}
		claim.add(c)
		claim.introduce(c.by)
		switch {
		case c.Reason != "":
			l.Lost = append(l.Lost, claim)
		case c.waits:
			l.Waiting = append(l.Waiting, claim)
		case !slices.ContainsFunc(l.Holders, func(h Holder) bool { return h.is(c) }):
			l.Claims = append(l.Claims, claim)
		}
	}
}

// is says whether a claim is about this holder.
func (h *Holder) is(c clientClaim) bool {
	return c.Owner != "" && c.Reason == "" && c.Owner == h.Owner && (c.Mode == "" || h.Mode == "" || c.Mode == h.Mode)
}

// addSaid adds to a holder or waiter what clients say of it.
func (t *told) addSaid(to *Told, client, name string, about func(clientClaim) bool) {
	who := t.clients[client]
	for _, c := range t.claims[name] {
		if about(c) {
			to.add(c)
			who = c.by // a permit's id does not say whose it is
		}
	}
	if who != nil {
		to.introduce(who)
	}
}

// add adds a claim to those on the same hold, of which the oldest comes first. The
// hold is renewed if any of them is, and has the note of the last one that has
// any.
func (all *Told) add(c clientClaim) {
	if all.For == nil && c.For >= 0 {
		ms := c.For.Milliseconds()
		all.For, all.Site = &ms, c.Site
	}
	if !c.waits && c.Reason == "" {
		renewed := c.Renewed || all.IsRenewed()
		all.Renewed, all.Note = &renewed, cmp.Or(c.Note, all.Note)
	}
}

// introduce adds who a client is.
func (all *Told) introduce(who *admin.Participant) {
	if id := who.Identity; id.String() != "" {
		all.By = id.String()
		all.Identity = &Identity{Name: id.Name, Program: id.Program, Host: id.Host, PID: id.PID, Labels: id.Labels}
	}
	if who.Redlatch {
		all.Answered = &who.Answered
	}
}

// mostLostOnly is how many names are listed because clients say that they have
// lost them.
const mostLostOnly = 1000

// lostOnly returns what is not listed, and what clients have lost. Of which kind
// it is only they say, so nothing is said of that.
func (t *told) lostOnly(listed []Lock) (free []Lock) {
	names := map[string]bool{}
	for i := range listed {
		names[listed[i].Name] = true
	}
	for name, claims := range t.claims {
		lost := slices.ContainsFunc(claims, func(c clientClaim) bool { return c.Reason != "" })
		if lost && !names[name] && len(free) < mostLostOnly {
			free = append(free, Of(admin.Info{Name: name, Kind: redlatch.KindLock}))
		}
	}
	return free
}
