package main

import (
	"context"
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// A duration is a flag: a Go duration, or a number of seconds as flock(1) and
// timeout(1) take it.
type duration struct {
	time.Duration
	set bool
}

var errDuration = errors.New(`write it as 500ms, 10s, 1h30m, or as a number of seconds`)

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		seconds, err := strconv.ParseFloat(s, 64)
		// Beyond 1e9 seconds, a generation, the product would overflow.
		if err != nil || !(seconds >= -1e9 && seconds <= 1e9) {
			return errDuration
		}
		v = time.Duration(seconds * float64(time.Second))
	}
	if v < 0 {
		return errors.New("it must not be negative")
	}
	d.Duration, d.set = v, true
	return nil
}

// String returns the value for the help, where "" is left out.
func (d *duration) String() string {
	if d.Duration == 0 && !d.set {
		return ""
	}
	return d.Duration.String()
}

// most is how long a call may wait; without the flag, for as long as anybody
// lives.
func (d *duration) most() time.Duration {
	if !d.set {
		return 100 * 365 * 24 * time.Hour
	}
	return d.Duration
}

// bound returns ctx, which ends when the flag says so.
func (d *duration) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.most())
}

// Type names the value in the help.
func (d *duration) Type() string { return "duration" }

// A list is a flag that names several things with commas between them; one with a
// comma or a quotation mark in it stands in quotation marks, as in CSV.
type list []string

func (l *list) Set(s string) error {
	r := csv.NewReader(strings.NewReader(s))
	r.FieldsPerRecord = -1
	lines, err := r.ReadAll()
	if err != nil {
		return err
	}
	if len(lines) > 1 {
		return errors.New("it has several lines; write it in one line, with commas between the names")
	}
	names := slices.Concat(lines...)
	if slices.Contains(names, "") {
		return errors.New("there is nothing where a name or value should be")
	}
	*l = append(append(list{}, *l...), names...)
	return nil
}

func (l *list) String() string { return strings.Join(*l, ",") }

// Type names the value in the help.
func (l *list) Type() string { return "NAME,NAME,..." }

// A choice is a flag with one of a few words.
type choice struct {
	value   string
	options []string
}

func (c *choice) Set(s string) error {
	if !slices.Contains(c.options, s) {
		return errors.New("it must be one of: " + strings.Join(c.options, ", "))
	}
	c.value = s
	return nil
}

func (c *choice) String() string { return c.value }

// Type names the value in the help.
func (c *choice) Type() string { return "word" }

// completes has a shell complete the flag by its words.
func (c *choice) completes(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.options, cobra.ShellCompDirectiveNoFileComp)) // there is such a flag
}

// outputFlag adds -o and returns whether JSON was asked for.
func outputFlag(cmd *cobra.Command) (asJSON func() bool) {
	c := &choice{value: "table", options: []string{"table", "json"}}
	cmd.Flags().VarP(c, "output", "o", "table or json; docs/cli.md describes the JSON")
	c.completes(cmd, "output")
	return func() bool { return c.value == "json" }
}
