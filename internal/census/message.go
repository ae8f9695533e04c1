package census

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/claim"
	"github.com/redlatch/redlatch/internal/wire"
)

// version is that of all that is written here. A reader ignores fields that it
// does not know, and whatever has another version, which is one that it would
// misunderstand.
const version = 1

// What a message has at most.
const (
	mostQuestion = 4 << 10  // bytes
	mostKey      = 32       // bytes of its key
	mostKeys     = 32       // questions for which one answer is
	mostAnswer   = 16 << 10 // bytes
	mostClaim    = 2 << 10  // bytes of one claim
	mostUnder    = 8        // owners under which somebody waits
	mostSpread   = 10 * time.Second
)

// A question is what all clients are asked.
type question struct {
	V   int    `json:"v"`
	Key string `json:"key"` // random; the answers have it
	filter
	Spread int64 `json:"spread,omitempty"` // over how many ms the answers are to come
}

// readQuestion reads what somebody has sent.
func readQuestion(text string) (q question, ok bool) {
	if len(text) > mostQuestion || json.Unmarshal([]byte(text), &q) != nil || q.V != version || !isKey(q.Key) || q.check() != nil {
		return question{}, false
	}
	q.Spread = max(0, min(q.Spread, mostSpread.Milliseconds()))
	return q, true
}

// isKey says whether a text is the key of a question.
func isKey(text string) bool {
	return text != "" && len(text) <= mostKey && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// isClient says whether a text is the id of a client of redlatch.
func isClient(text string) bool {
	_, redlatch := wire.ClientOf(text + ":0")
	return redlatch && len(text) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

// An answer is what a client says to all who have asked.
type answer struct {
	V        int               `json:"v"`
	Client   string            `json:"client"`
	Identity Identity          `json:"identity"`
	For      []string          `json:"for"`               // keys of the questions
	Sharers  int               `json:"sharers,omitempty"` // how many clients listen by the driver of this one, if not one
	Claims   []json.RawMessage `json:"claims,omitempty"`
	Left     int               `json:"left,omitempty"` // how many claims were left out
}

// told is a claim in an answer.
type told struct {
	Name    string   `json:"name,omitempty"`
	Raw     []byte   `json:"raw,omitempty"` // the name, if that is no text
	Kind    string   `json:"kind,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	Owner   string   `json:"owner,omitempty"`
	Ago     int64    `json:"ago"`           // for how many ms it has been so
	For     *int64   `json:"for,omitempty"` // for how many ms it will be so at most
	Renewed bool     `json:"renewed,omitempty"`
	Token   int64    `json:"token,omitempty"`
	Count   int      `json:"count,omitempty"`
	Site    string   `json:"site,omitempty"`
	Waits   bool     `json:"waits,omitempty"`
	Listens bool     `json:"listens,omitempty"` // to the releases of what it holds
	Note    string   `json:"note,omitempty"`    // what a hold is for
	Lost    string   `json:"lost,omitempty"`    // how it was lost, that long ago
	Under   []string `json:"under,omitempty"`
}

// tell writes a claim, by how long ago it began and how long it will last.
func tell(c *claim.Claim, now time.Time, sites bool) json.RawMessage {
	t := told{
		Kind: c.Kind, Mode: c.Mode, Owner: c.Owner, Renewed: c.Renewed, Token: c.Token, Count: c.Count,
		Waits: c.Waits, Listens: c.Listens, Note: c.Note, Lost: c.Lost, Under: c.Under[:min(len(c.Under), mostUnder)],
	}
	t.Name, t.Raw = wire.SplitName(c.Name)
	if !c.Since.IsZero() {
		t.Ago = max(0, now.Sub(c.Since).Milliseconds())
	}
	if !c.Until.IsZero() {
		left := max(0, c.Until.Sub(now).Milliseconds())
		t.For = &left
	}
	if sites && c.Site != 0 {
		t.Site = c.Site.String()
	}
	text, _ := json.Marshal(t) //nolint:errchkjson // texts and numbers always can
	if len(text) > mostClaim && t.Note != "" {
		t.Note = ""               // which others can do without
		text, _ = json.Marshal(t) //nolint:errchkjson // as above
	}
	return text
}

// A Claim is what a client says that it holds, or has lost, or that a caller of it
// waits for.
type Claim struct {
	Name     string // as it says: it may have any byte
	Kind     string
	Mode     string
	Owner    string
	For      time.Duration // for how long, or how long ago it was lost, when it was told
	Left     time.Duration // for how long it lasts, unless it is renewed; -1 if that was not told
	Renewed  bool
	Token    int64
	Count    int
	Site     string
	Waits    bool
	Listens  bool   // it holds, and listens as if it waited
	Note     string // what a hold is for
	Lost     string
	Under    []string
	Evidence Evidence
}

// Evidence is what Redis has of a claim.
type Evidence uint8

// The values of Evidence.
const (
	Unchecked Evidence = iota // nobody has looked, or it cannot be seen
	Stored                    // Redis has that owner
	NotStored                 // Redis has not
)

// read reads one claim of a client, and says whether it makes sense.
func read(text json.RawMessage, client string) (Claim, bool) {
	var t told
	if len(text) > mostClaim || json.Unmarshal(text, &t) != nil {
		return Claim{}, false
	}
	t.Name = wire.JoinName(t.Name, t.Raw)
	owner, _ := wire.ClientOf(t.Owner)
	if t.Name == "" || len(t.Under) > mostUnder || t.Ago < 0 || t.Count < 0 || owner != "" && !strings.EqualFold(owner, client) {
		return Claim{}, false
	}
	c := Claim{
		Name: t.Name, Kind: clean(t.Kind), Mode: clean(t.Mode), Owner: t.Owner, For: wire.FromMillis(t.Ago), Left: -1,
		Renewed: t.Renewed, Token: t.Token, Count: t.Count, Site: wire.Text(t.Site), Waits: t.Waits, Listens: t.Listens, Lost: clean(t.Lost), Under: t.Under,
		Note: wire.Text(t.Note[:min(len(t.Note), claim.MostNote)]),
	}
	if t.For != nil {
		c.Left = max(0, wire.FromMillis(*t.For))
	}
	return c, true
}
