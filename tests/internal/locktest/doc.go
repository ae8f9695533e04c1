// Package locktest is the world of the tests: an embedded server in fake time and
// the clients that share it, a tap on a client's driver that loses, delays or
// repeats what scripts answer, and words for what tests do again and again.
package locktest
