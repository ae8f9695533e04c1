// Package look opens the pages of the site in a real browser. make site-test
// builds the site and runs it.
package look
