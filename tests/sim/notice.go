package sim

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

// News are what a link tells of a request.
type news struct {
	at     moment
	script string
	keys   []string
	args   []string
	sent   time.Time
	reply  driver.Reply // when it was executed, or answered
}

// A moment is one of a request.
type moment int

const (
	leaves   moment = iota
	came            // to the server, perhaps once more
	executed        // and not refused
	answered        // and its sender hears it
)

// ids returns those of a request's arguments that can be ids, as users see them.
func (n news) ids() (ids []string) {
	const permit = 16 // bytes
	for _, arg := range n.args {
		switch client, _ := wire.ClientOf(arg); {
		case client != "":
			ids = append(ids, arg)
		case strings.HasPrefix(n.script, "expirable.") && len(arg) == permit:
			ids = append(ids, hex.EncodeToString([]byte(arg)))
		}
	}
	return ids
}

// linkTo returns a link of a process, of which the checker hears.
func (w *world) linkTo(s *node, c *chance, air weather, process int) *link {
	l := newLink(c, s, air, &w.history)
	l.tells = func(n news) { w.notice(process, l, n) }
	return l
}

// notice notes of a request what the checker has to know.
func (w *world) notice(process int, l *link, n news) {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	_, what, _ := strings.Cut(n.script, ".")
	switch forces := n.script == "control.ask" || strings.HasSuffix(what, "force"); {
	case n.at == came && strings.HasSuffix(n.script, ".take"):
		for _, id := range n.ids() {
			w.takes[id] = take{n.sent.Sub(w.start), w.now()}
		}
	case n.at == leaves && forces && w.forcing[l] != nil:
		for _, id := range n.ids() {
			w.forcing[l].owners[id] = true
		}
	case n.at == answered && n.script == "control.asked" && n.reply.Int == 1:
		w.summons = append(w.summons, summons{process, n.args[0], w.now()})
	case n.at == executed && (n.script == "barrier.arrive" || n.script == "barrier.poll"):
		w.calls.atBarrier(process, n, w.now())
	case strings.HasSuffix(what, "release"), strings.HasSuffix(what, "yield"), strings.HasSuffix(what, "transfer"):
		for _, id := range n.ids() {
			if w.releases[id] == nil {
				w.releases[id] = &release{}
			}
			if n.at == leaves {
				w.releases[id].sent = w.now()
			}
			w.releases[id].executed = w.releases[id].executed || n.at == executed
		}
	}
}
