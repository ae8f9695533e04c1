// Package fence tests package fence with what the root module must not depend on:
// fence.Table with a real SQL engine, fence.Key with servers and client libraries.
package fence
