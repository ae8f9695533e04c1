// Package holdctx makes the contexts of what is held: see [Context], [Lazy] and [Join].
// It also keeps what was garbage collected without having been released: see [Dropped].
package holdctx
