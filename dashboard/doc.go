// Package dashboard shows locks and synchronizers as web pages that keep
// themselves up to date: who holds each of them, who waits and for how long, what
// was lost, and which callers may be waiting for one another. The command redlatch
// serve shows these pages.
//
//	pages := dashboard.New(client, dashboard.Options{})
//	defer pages.Close()
//	mux.Handle("/locks/", mustLogIn(http.StripPrefix("/locks", pages)))
//
// The pages only show. Nothing on them releases or changes anything. But they show
// the names of all locks, and who uses them, to everybody who can open the pages.
// A [Handler] has no authentication of its own, so mount it behind the program's.
//
// All links are relative, so the pages work below any path that ends with a slash.
// A page loads nothing from elsewhere, and its content security policy forbids
// that. Names and identities can contain anything, and are escaped. Without
// JavaScript the pages reload themselves.
//
// [Health] is a handler for readiness probes beside the pages. [Handler.Metrics]
// serves what the pages list as metrics for Prometheus.
//
// # What it costs
//
// As long as somebody looks at a page, the handler asks the server again and
// again, and waits for [Options.Interval] after each look. A look goes over all
// keys (SCAN), takes a few requests for each lock, and asks all clients once who
// they are (see admin.Admin.Participants). All browsers share these looks. When
// nobody looks at a page, nothing is asked, and what happens then is not seen.
//
// At most 200 pages can be open at a time, and together they can show at most 32
// locks on pages of their own. A request beyond that gets the status 503.
package dashboard
