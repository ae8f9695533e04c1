package redlatchtest

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holdctx"
	"github.com/redlatch/redlatch/internal/wire"
)

// patience is how long a client may take to find out about a loss.
const patience = 10 * time.Second

// A holder is a *redlatch.Hold, *redlatch.MultiHold or *redlatch.Permit.
type holder interface{ Context() context.Context }

// Lose takes what is held away behind its holder's back, as the death of a server or an operator's DEL would, and
// returns when the holder knows that: the context of the hold has ended, and the one that Lose was given.
//
// held is a *redlatch.Hold, a *redlatch.MultiHold, of which all locks are lost, a *redlatch.Permit, which is free
// then, or a context that descends from one of these, such as the one in Do, of which the innermost is lost.
//
// Lose panics if held is nothing of that, if no server of this package has it, and if the holder does not notice, which
// would be a defect of redlatch.
func Lose(held any) {
	if ctx, ok := held.(context.Context); ok {
		h := holdctx.From[holder](ctx)
		if h == nil {
			panic("redlatchtest: the context descends from no hold")
		}
		Lose(h)
		if done := ctx.Done(); done != nil { // it may be one that outlives the hold
			await(done, "a context")
		}
		return
	}
	switch h := held.(type) {
	case *redlatch.Hold:
		lose(h, h.Name(), func(s *Server) bool { return s.take(h.Owner()) })
	case *redlatch.MultiHold:
		for _, member := range h.Holds() {
			lose(member, member.Name(), func(s *Server) bool { return s.take(member.Owner()) })
		}
		await(h.Context().Done(), "several locks")
	case *redlatch.Permit:
		lose(h, h.Name(), func(s *Server) bool { return s.takePermit(h.ID()) })
	default:
		panic(fmt.Sprintf("redlatchtest: a %T is nothing that can be lost", held))
	}
}

// lose has the server that has it take something from its holder.
func lose(h holder, name string, take func(s *Server) bool) {
	s := find(take)
	if s == nil {
		panic(fmt.Sprintf("redlatchtest: no server has the hold of %q: it was released, or lost already", name))
	}
	s.mu.Lock()
	drivers := slices.Clone(s.drivers)
	s.mu.Unlock()
	for _, d := range drivers {
		d.pretend()
	}
	await(h.Context().Done(), name)
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

func find(take func(s *Server) bool) *Server {
	servers.Lock()
	defer servers.Unlock()
	for s := range servers.all {
		if take(s) {
			return s
		}
	}
	return nil
}

// take deletes the lock that an owner has, whatever its name and its type are.
func (s *Server) take(owner string) bool {
	for _, key := range s.mini.Keys() {
		fields, err := s.mini.HKeys(key)
		if err != nil {
			continue // it is no hash
		}
		for _, field := range fields {
			if field == owner || field == wire.WriteField(owner) || s.mini.HGet(key, field) == owner {
				return s.mini.Del(key)
			}
		}
	}
	return false
}

// takePermit gives a permit to nobody.
func (s *Server) takePermit(id string) bool {
	raw, err := hex.DecodeString(id)
	if err != nil {
		return false
	}
	for _, key := range s.mini.Keys() {
		for _, name := range wire.SuffixedNames(key, wire.PermitTimeout) {
			if !s.mini.Exists(name) {
				continue
			}
			if was, err := s.mini.ZRem(key, string(raw)); err == nil && was {
				_, err := s.mini.Incr(name, 1)
				return err == nil
			}
		}
	}
	return false
}
