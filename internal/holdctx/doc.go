// Package holdctx makes the contexts of what is held: see [Context] and [Join]. It
// keeps how far that has come, and tells those who want to know of its end: see
// [Life], [State], [End] and [Observer]. It also notices what is garbage collected
// without having been released, and keeps it: see [Leash] and [Dropped].
package holdctx
