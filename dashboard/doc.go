// Package dashboard shows locks and synchronizers as web pages that keep themselves up to date: who
// holds each, who waits, for how long, what was lost, and who may be waiting for one another. It is
// what the command redlatch serve shows.
//
//	pages := dashboard.New(client, dashboard.Options{})
//	defer pages.Close()
//	mux.Handle("/locks/", mustLogIn(http.StripPrefix("/locks", pages)))
//
// The pages only show. Nothing on them releases or changes anything. But they show the names of all
// locks and who uses them to whoever can open them: a [Handler] has no authentication of its own, so
// mount it behind the program's.
//
// All links are relative, so that the pages work below any path that ends with a slash. Nothing is
// loaded from elsewhere, and the content security policy forbids it. Names and identities are whatever
// somebody has written: they are escaped. Without JavaScript the pages reload themselves.
//
// # What it costs
//
// As long as somebody looks, the server is asked again and again, [Options.Interval] after it has
// answered: all keys are gone over (SCAN), each lock takes a few requests, and all clients are asked
// once who they are (see redlatch.Client.Participants). However many browsers look, they share that.
// When nobody looks, nothing is asked, and what happens then is not seen.
//
// At most 200 pages are open at a time, which show 32 locks by themselves at most. Whoever opens
// more gets the status 503.
package dashboard
