// Package holdctx makes the contexts of what is held: see [Context], [Lazy] and
// [Join]. It keeps how far that has come, and tells who wants to know of its end:
// see [State], [End] and [Observer]. It also notices what is garbage collected
// without having been released, and keeps it: see [Leash] and [Dropped].
package holdctx
