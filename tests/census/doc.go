// Package census tells of who takes part: the notes by which clients say who they are, the questions that tools ask all
// clients, and what becomes of answers that nobody should believe.
package census
