// Package election tells of candidates: who leads, when the next one does, and what others see of it.
package election
