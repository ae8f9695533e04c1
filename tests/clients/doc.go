// Package clients tests what goes for every type of a client. The first word of a
// file's name is its subject:
//
//   - client: bad input, errors, Info, lying servers, names that twin, the keys
//     and messages of each type;
//   - census: the notes by which clients say who they are, the questions that
//     tools ask all clients, and what becomes of answers that nobody should
//     believe;
//   - events: what observers are told: the begin and the end of every acquisition,
//     and the end of every hold;
//   - shutdown: how a client ends: what is refused, what still works, and what
//     others get, and when;
//   - wire: what redlatch writes to Redis, compared with what Redisson wrote: the
//     golden files of internal/wire;
//   - lua: the scripts themselves.
package clients
