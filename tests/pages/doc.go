// Package pages has tests of the pages for users: README.md and docs.
package pages
