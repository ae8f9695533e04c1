package main

import (
	"fmt"
	"slices"
	"strings"
)

const shareLegend = `What the server pays, whatever the client library is. Pairs and hand-offs go to it in pipelines of hundreds of
commands, with prebuilt arguments, so that system calls do not hide the scripts. *Script µs* is the time in the scripts,
as INFO commandstats counts it. *Server CPU µs* is all CPU time of the server: reading requests, scripts, answers and
messages. *Commands* are the scripts and what they call. A hand-off is all that it takes in turn: a caller is refused, or
lines up; the holder releases; the next one has the lock. Somebody listens to its channel, and three more wait in the
queue of a fair lock. *Times* divides server CPU time within a run. SET NX is a lock without waiters: SET with NX and
PX, and a script that compares and deletes. *Redisson's steps* are scripts of redlatch's tests that do what Redisson's
scripts do. They read a fair lock's time from the client, and give no lock away.
`

// shareWhy explains the scripts that cost most.
const shareWhy = `
**What these scripts pay for.** A script that does nothing costs some 1.5 µs, each command in it 0.3 to 0.6, and a number
among a command's arguments 0.25, because the server prints it. Those that cost most beyond that are three:

* **A fair hand-off** is two scripts of 28 commands in all: 12 line up, 16 hand over. Of the 12, three read the queue
  and its scores, one the holder, one its TTL, one the time. One counts who listens, two say that the client lives and can
  be given the lock, and two add it to the queue. Of the 16, six read, one counts who listens, five take the
  next one out of the queue or write it as the holder, with a TTL; one takes the old holder out. One moves the end of the queue, as a
  waiter of Redisson expects, and one publishes. The last one is EVALSHA itself, in both. Redisson's own scripts take 34.
  Six of the 28 are for what only redlatch keeps: who can be given the lock, and is heard. The other 22 are what a queue
  in Redisson's layout costs, so that 20 are not to be had. A hand-off that only wakes the waiter would need a third
  script. To line up and to hand over in one script would save a few reads, but only for a caller that releases and asks
  again at once.
* **A barrier** stores each arrival with who has arrived, and proves that its client lives. The last arrival keeps how
  the generation ended, for callers whose reply was lost.
* **A rate limiter** keeps a record for each take, as Redisson does, and adds up the records, because the sum that
  Redisson keeps beside them can go astray.
`

// verdicts are those of the results, and of the server's share. How many
// microseconds a script takes is the machine's: so its CPU has a bound beside
// another one.
func (r record) verdicts() []verdict {
	rows := func(work, who string, handOff bool) shareRow {
		if len(r.Share) == 0 {
			return nil
		}
		return r.shareOf(r.Share[0].Server, work, who, handOff)
	}
	plain := rows("plain", oursToRun, false)
	return append(r.Results.verdicts(),
		judge("the server's share of a plain pair: commands", bound{value: 7, most: true}, plain.of(shareCommands)),
		judge("the server's share of a plain pair: CPU, times SET NX with compare and delete", bound{value: 2.2, most: true}, plain.times(rows("plain", setNX, false))),
		judge("the server's share of a fair hand-off: commands", bound{value: 20, most: true}, rows("fair", oursToRun, true).of(shareCommands)))
}

// A shareRow are the figures of one row, of pairs or of hand-offs.
type shareRow []shareFigure

func (r record) shareOf(server, work, who string, handOff bool) (row shareRow) {
	for _, f := range r.Share {
		if f.Server == server && f.Work == work && f.Who == who && f.HandOff == handOff {
			row = append(row, f)
		}
	}
	return row
}

func (f shareRow) of(metric func(shareFigure) float64) []float64 {
	var all []float64
	for _, x := range f {
		all = append(all, metric(x))
	}
	return all
}

// times divides CPU time run by run.
func (f shareRow) times(base shareRow) []float64 {
	var all []float64
	for _, x := range f {
		for _, y := range base {
			if x.Run == y.Run {
				all = append(all, x.CPU/y.CPU)
			}
		}
	}
	return all
}

func scriptTime(f shareFigure) float64    { return f.Script }
func shareCPU(f shareFigure) float64      { return f.CPU }
func shareCommands(f shareFigure) float64 { return f.Commands }

// serverShare is a table for each server.
func (r record) serverShare(b *strings.Builder) {
	if len(r.Share) == 0 {
		return
	}
	b.WriteString("\n## The server's share\n\n" + shareLegend)
	var servers []string
	for _, f := range r.Share {
		if !slices.Contains(servers, f.Server) {
			servers = append(servers, f.Server)
		}
	}
	for _, server := range servers {
		of := func(work, who string, handOff bool) shareRow { return r.shareOf(server, work, who, handOff) }
		t := table{head: []string{
			"", "", "a pair: script µs", "server CPU µs", "commands", "times SET NX", "times Redisson's",
			"a hand-off: script µs", "server CPU µs", "commands", "times Redisson's",
		}}
		for _, w := range shareWorks() {
			pairs, handOffs := of(w.name, w.who, false), of(w.name, w.who, true)
			if len(pairs) == 0 {
				continue
			}
			cells := []string{w.name, w.who}
			add := func(row shareRow, bases ...shareRow) {
				cells = append(cells, spanOf(row.of(scriptTime)), spanOf(row.of(shareCPU)), unless(len(row) == 0, median(row.of(shareCommands))))
				for _, base := range bases {
					cells = append(cells, unless(len(base) == 0, median(row.times(base))))
				}
			}
			theirs := func(handOff bool) shareRow {
				if w.who != oursToRun {
					return nil
				}
				return of(w.name, redissonsSame, handOff)
			}
			add(pairs, of("plain", setNX, false), theirs(false))
			add(handOffs, theirs(true))
			t.add(cells...)
		}
		fmt.Fprintf(b, "\n### On %s\n\n%s", server, t.String())
	}
	b.WriteString(shareWhy)
}
