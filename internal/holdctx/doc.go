// Package holdctx makes the contexts of what is held: see [Context], [Lazy] and [Join].
// It also notices what is garbage collected without having been released, and keeps it: see
// [Leash] and [Dropped].
package holdctx
