package pages

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The program of the README is the one that is built and run, and short enough to
// be read before it is copied.
func TestTheReadmeShowsTheFirstProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../../examples/first/main.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(readme)
	if shown == nil {
		t.Fatal("README has no program")
	}
	if _, want, _ := strings.Cut(string(program), "\npackage"); string(shown[1]) != "package"+want {
		t.Error("README shows another program than examples/first has")
	}
	if n := strings.Count(string(shown[1]), "\n"); n > 25 {
		t.Errorf("the program has %d lines", n)
	}
}
