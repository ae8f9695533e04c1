// Package fence tests the statements of fence.Table on a real SQL engine, which
// the root module must not depend on.
package fence
