package redlatchtest

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/wire"
)

// patience is how long a client may take to find out about a loss.
const patience = 10 * time.Second

// Lose takes a lock or a permit away without telling its holder, as the death of a
// server or an operator's DEL would. It returns when the holder knows of the loss:
// the context of the hold has ended. If the holder is in a synctest bubble, call
// Lose inside that bubble.
//
// Where there is only a context, such as the one in Do, redlatch.HoldFrom returns
// its innermost hold. Of several locks or permits all are lost. A lost permit is
// free. The client may have any driver. Others that share the lock, such as
// another reader, lose it, too, and are told later, as after a DEL. Nobody waits
// for the loss of what was detached: its holder learns of the loss when it uses
// the id.
//
// Lose panics if h is nil, and if no server of this package has it in its database
// 0. It also panics if the holder has not noticed the loss after 10 seconds. The
// holder cannot notice it while the server is stopped or paused.
func Lose(h *redlatch.Hold) {
	if h == nil {
		panic("redlatchtest: there is no hold to lose: HoldFrom returns nil for a context that descends from none")
	}
	members := h.Members()
	for _, m := range members { // before any holder can notice: it would release the rest
		take(m)
	}
	for _, m := range members {
		ctx := m.Context()
		if asks, _ := ctx.Value(holdctx.Doubt{}).(bool); asks {
			await(ctx.Done(), m.Name())
		}
	}
	if len(members) > 1 || members[0] != h {
		await(h.Context().Done(), h.Name())
	}
}

// take has the server that has a hold of one lock or permit take that from its
// holder.
func take(h *redlatch.Hold) {
	from := search(func(s *Server) func() bool {
		if take := s.lock(h.ID()); take != nil {
			return take
		}
		return s.permit(h.ID())
	})
	if from == nil || !from() {
		panic(fmt.Sprintf("redlatchtest: no server has the hold of %q: it was released, or lost already", h.Name()))
	}
}

// await waits until the holder knows.
func await(done <-chan struct{}, name string) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		panic(fmt.Sprintf("redlatchtest: the hold of %q has not noticed its loss within %v", name, patience))
	}
}

// search returns what find does for the server that has something.
func search(find func(s *Server) (take func() bool)) (take func() bool) {
	servers.Lock()
	all := slices.Collect(maps.Keys(servers.all))
	servers.Unlock()
	for _, s := range all {
		if take = find(s); take != nil {
			return take
		}
	}
	return nil
}

// A server ages by the clock of whoever asks it, and the clock of a synctest
// bubble is not that of another. So lock and permit, which are asked of all
// servers, only look at what the server keeps. To take something is up to the
// server of the holder, which is in the holder's bubble.

// lock returns how to delete the lock that an owner has, whatever its name and its
// type are; nil if there is none.
func (s *Server) lock(owner string) (take func() bool) {
	for _, key := range s.kept.Keys() {
		fields, err := s.kept.HKeys(key)
		if err != nil {
			continue // it is no hash
		}
		for _, field := range fields {
			if field == owner || field == wire.WriteField(owner) || s.kept.HGet(key, field) == owner {
				return func() bool { return s.mini.Del(key) }
			}
		}
	}
	return nil
}

// permit returns how to give a permit to nobody; nil if it is not had.
func (s *Server) permit(id string) (take func() bool) {
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil
	}
	for _, key := range s.kept.Keys() {
		for _, name := range wire.SuffixedNames(key, wire.PermitTimeout) {
			members, err := s.kept.ZMembers(key)
			if err != nil || !s.kept.Exists(name) || !slices.Contains(members, string(raw)) {
				continue
			}
			return func() bool {
				was, err := s.mini.ZRem(key, string(raw))
				if err != nil || !was {
					return false
				}
				_, err = s.mini.Incr(name, 1)
				return err == nil
			}
		}
	}
	return nil
}
