// Package callsite remembers where something was asked for: see [Site].
package callsite
