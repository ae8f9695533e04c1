// Package overview puts together what is known of locks and synchronizers: what is
// stored, what the clients say of it, and who waits for whom. The command and the
// dashboard show it; its JSON is a contract, described in docs/cli.md.
//
// What clients say proves nothing: see admin.Admin.Participants. All texts are as
// they were stored or sent, with whatever bytes: whoever shows them escapes them,
// with Printable at least.
package overview
