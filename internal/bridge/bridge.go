// Package bridge lets the packages beside the root reach what a client is made of. The root package exports nothing for
// that: it hands the way in to this package, as grpc's does.
package bridge

import (
	"github.com/redlatch/redlatch/internal/census"
	"github.com/redlatch/redlatch/internal/hooks"
)

// Engines are what other packages need of a client.
type Engines struct {
	Hooks    *hooks.Set
	Identity census.Identity
}

var open func(client any) Engines

// Open returns the engines of a *redlatch.Client.
func Open(client any) Engines { return open(client) }

// Let sets how a client is opened. The root package calls it when the program begins, before any client exists.
func Let(way func(client any) Engines) struct{} {
	open = way
	return struct{}{}
}
