// Package events tells of what observers are told: the begin and the end of every
// acquisition, and the end of every hold, of all types.
package events
