// Package election lets one process lead at a time, of all those that stand for
// it:
//
//	err := election.New(client, "scheduler").Run(ctx, func(ctx context.Context, term int64) error { ... })
//
// Standby lets candidates that are better go first. Candidate.Leading says whether
// this process leads, without a request.
//
// The client is one of package redlatch, which also has the errors that are
// returned here.
package election
