package admin

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/bridge"
	"github.com/redlatch/redlatch/internal/census"
)

// A Question says what Participants asks for: claims on names that match the
// pattern, and those that have one of the names or owner ids. The zero value is
// about all. It has at most 64 names and owners, and 4 kB. Of a client with a
// Config.Prefix it finds only names that begin with that, but all that an owner
// has.
type Question struct {
	Pattern string // glob, as of Locks; "" is for all, unless there are names or owners
	Names   []string
	Owners  []string
	// Spread is over how long the clients spread their answers, so that a thousand do
	// not come at once. Zero means 0.1 ms for each client, or a second if nobody knows
	// how many there are; at most 10 seconds.
	Spread time.Duration
}

// Participants are who takes part in the locks of a Redis, as far as they say so.
type Participants struct {
	// At is when the last answer was waited for.
	At time.Time
	// Clients are those who have answered, and those who have not and of whom Redis
	// has something: Redisson's, and silent ones.
	Clients []Participant
	// Silent is how many clients listen and have not answered: nothing is known of
	// what they hold. Several clients of a process that share a driver count as one if
	// none answers. It is -1 if that cannot be counted.
	Silent int
	// Ignored is how many answers and claims made no sense, or were too many.
	Ignored int
	// Objects are what Redis has of the names that were asked for, and of those on
	// which there are claims: of at most 256 names, those of the longest waits and the
	// oldest holds first.
	Objects []Info
	// Others has, by the name of an object, how many listen to its releases at most,
	// beyond the clients that have said that they do: mostly processes of Redisson
	// that wait. All callers of a process that wait count as one. A name is missing
	// where that cannot be counted, as of fair locks, which have a queue, and with
	// classic Pub/Sub in a cluster.
	Others map[string]int

	name     func(key string) string // in Redis
	waits    census.Waits
	slowWait time.Duration
}

// A Participant is one client.
type Participant struct {
	Client   string            // its UUID
	Identity redlatch.Identity // who it says it is; zero if it does not
	Redlatch bool              // whether it is a client of redlatch; else it is one of Redisson's
	Answered bool              // it has answered; else all that is known of it is what Redis has
	Held     []Claim
	Waiting  []Claim
	Lost     []Claim // what it has lost within an hour, the newest first, 16 at most
	Omitted  int     // how many claims did not fit into its answer; those that did are the latest losses, and the oldest of the others
}

// A Claim is what a client says that it holds, or has lost, or that a caller of it
// waits for. Its texts are as the client has sent them: a name may have any byte.
type Claim struct {
	Name, Mode string
	Kind       redlatch.Kind       // as the client has sent it, known or not
	Owner      string              // as it stands in Redis; empty if it has none
	For        time.Duration       // for how long it has held or waited, or how long ago it lost it, when it said so; -1 if that is not known
	Left       time.Duration       // for how long it holds or waits at most; -1 if that is not known
	Renewed    bool                // the watchdog renews it
	Token      int64               // its fencing token; 0 if it has none
	Count      int                 // how often it has entered, or how many permits it has
	Site       string              // file:line, if the client has redlatch.Config.CallSites
	Note       string              // what a hold is for (redlatch.Hold.SetNote), in a form that can be printed; empty if the client does not say
	Under      []string            // of a waiter: the owner ids as which it holds something meanwhile
	Reason     redlatch.LossReason // how it was lost, if it was
	Evidence   Evidence
}

// Evidence is whether Redis has what a client claims.
type Evidence string

// The values of Evidence.
const (
	// EvidenceNone: nobody has looked, or Redis does not store it, as who waits for a
	// plain lock, and who has permits of a Semaphore.
	EvidenceNone Evidence = ""
	// EvidenceStored: Redis had that owner when the answers had come.
	EvidenceStored Evidence = "stored"
	// EvidenceNotStored: Redis did not. The claim is false, or the hold has ended
	// since.
	EvidenceNotStored Evidence = "not stored"
)

// A CircularWait is one in a circle of waits: a caller that has something as Owner
// waits for Name, which Holder has. The holder is the Owner of the next one.
type CircularWait struct {
	Client   string // whose caller it is
	By       string // who that says it is
	Owner    string
	Name     string
	Holder   string
	Waited   time.Duration // so far
	WaitSite string        // file:line of the wait, if the client has redlatch.Config.CallSites
	HoldSite string        // file:line at which Holder got Name, if its client has that
}

// String returns a line for a log: "billing@host-7 pid 4121 (owner ...:7) waits
// for "b" at pay.go:12 for 31s; ...:9 has it since ship.go:40".
func (circle CircularWait) String() string { return census.Wait(circle).String() }

// Participants asks all clients of redlatch that use this Redis who they are, what
// they hold and what they wait for.
//
// To answer, a client calls Value on the contexts of its waiting callers: it looks
// for their holds. A call that has just returned may still have its context asked.
//
// An answer is a claim, and proves nothing: whoever may use locks at all may send
// one. Nothing is freed or ended by it. Holders are compared with what Redis has:
// see Evidence. A client that does not answer is counted, as far as the server
// tells. It may be busy, cut off, or of an older version. What only clients of
// Redisson hold and wait for is not found, unless it is asked for by its name;
// Locks lists it.
//
// A client answers once a second at most, whoever asks, with 16 kB at most. It
// takes one request of each client, up to two for each name in Objects, two more,
// and in a cluster three for each node. It lasts for Question.Spread, and for a
// second and a half longer if somebody is silent.
//
// Whoever asks the same question again and again, each time a few seconds later,
// is told of possible deadlocks by observe.Hooks.PossibleDeadlock and in the log.
//
// If ctx ends before that, Participants returns what it has learnt, and the
// context's error. It fails with redlatch.ErrUnavailable if the server does not
// answer, and with the server's refusal if the user may not use the channels
// redlatch_ask and redlatch_answer.
func (a *Admin) Participants(ctx context.Context, q Question) (Participants, error) {
	e := a.client
	if err := e.Usable(ctx, nil); err != nil {
		return Participants{Silent: -1}, err
	}
	question := census.Question{Owners: q.Owners, Spread: q.Spread}
	for _, name := range q.Names {
		question.Names = append(question.Names, e.Server.Key(name))
	}
	if q.Pattern != "" || len(q.Names)+len(q.Owners) == 0 {
		question.Glob = e.Server.Pattern(q.Pattern)
	}
	answers, err := e.Census.Ask(ctx, question)
	e.Census.TellDeadlocks(question, answers.Waits, e.Locks.SlowWait)
	p := Participants{
		At: answers.At, Silent: answers.Silent(), Ignored: answers.Ignored, Others: map[string]int{},
		name: e.Server.Name, waits: answers.Waits, slowWait: e.Locks.SlowWait,
	}
	for _, answer := range answers.All {
		p.Clients = append(p.Clients, participantOf(e, answer))
	}
	for _, o := range answers.Objects {
		info := infoOf(e, o.Info)
		p.Objects = append(p.Objects, info)
		if o.Others >= 0 {
			p.Others[info.Name] = o.Others
		}
	}
	return p, err
}

// PossibleDeadlocks returns circles of waits that stood in p and in what was asked
// earlier, more than redlatch.Config.SlowWait before: in each of them the holder
// of what one waits for waits for what the next one holds. That is no proof: a
// caller may give up, answers may lie, and whoever holds a lock may release it
// from a goroutine that does not wait. The holders are those that Redis has.
// Nothing is done about them. Without earlier answers that are old enough it
// returns none; so it does if SlowWait is negative.
func (p Participants) PossibleDeadlocks(earlier Participants) [][]CircularWait {
	if p.slowWait < 0 {
		return nil
	}
	return p.circulars(census.Deadlocks(earlier.waits, p.waits, p.slowWait))
}

// CircularWaits returns the circles of waits in p alone. Nothing says that its
// waits stood at one time: PossibleDeadlocks says more.
func (p Participants) CircularWaits() [][]CircularWait { return p.circulars(p.waits.Circles()) }

func (p Participants) circulars(circles [][]census.Wait) (all [][]CircularWait) {
	for _, circle := range circles {
		var waits []CircularWait
		for _, w := range circle {
			w.Name = p.name(w.Name)
			waits = append(waits, CircularWait(w))
		}
		all = append(all, waits)
	}
	return all
}

func participantOf(e *bridge.Engines, a census.Answer) Participant {
	p := Participant{Client: a.Client, Identity: redlatch.Identity(a.Identity), Redlatch: a.Redlatch, Answered: a.Answered, Omitted: a.Left}
	for _, x := range a.Claims {
		claim := Claim{
			Name: e.Server.Name(x.Name), Kind: redlatch.Kind(x.Kind), Mode: x.Mode, Owner: x.Owner, For: x.For, Left: x.Left, Renewed: x.Renewed, Token: x.Token,
			Count: x.Count, Site: x.Site, Note: x.Note, Under: x.Under, Reason: redlatch.LossReason(x.Lost), Evidence: evidence[x.Evidence],
		}
		switch {
		case x.Waits:
			p.Waiting = append(p.Waiting, claim)
		case x.Lost != "":
			p.Lost = append(p.Lost, claim)
		default:
			p.Held = append(p.Held, claim)
		}
	}
	return p
}

var evidence = map[census.Evidence]Evidence{census.Stored: EvidenceStored, census.NotStored: EvidenceNotStored}
