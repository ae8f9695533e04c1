// Package holdctx makes the contexts of what is held: see [Context], [Lazy] and [Join].
// It says how it ended, and tells who wants to know: see [End] and [Observer].
// It also notices what is garbage collected without having been released, and keeps it: see
// [Leash] and [Dropped].
package holdctx
