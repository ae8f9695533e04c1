package results

// The texts of docs/robustness.md. Its figures come from the files beside this
// one.
const intro = `<!-- make robustness writes this page, of the files in tests/sim/results. Mend its texts in tests/sim/results/texts.go. -->

# Robustness

This page says how redlatch was tested against faults that nobody had planned one by one, and what that found. Anybody can play the same again,
bit for bit. [guarantees.md](guarantees.md) says what is promised.

## What this does not show

* It does not prove that there is no fault. It shows what was played, and that the checker finds known faults.
* An empty cell in a table was not played, and neither was a type without a column or row. A rule without a mutant shows nothing of the checker.
* The server of the simulation is an embedded one. Real servers are given the same scripts, and their answers are compared ([tests](../tests/sim/real)).
* In the simulation a process that stands still stops its links only. Its code goes on. ` + "[Real processes](../tests/sim/campaign)" + ` are stopped as a whole.
* All goroutines share one clock there. So no client's own clock is stepped.
* An adapter's own faults are not played. ` + "[The contract tests](../drivertest)" + ` test the adapters on real servers.
* The checker does not ask who comes first. It notices a caller that waits for ever, and not one that waits for too long.

## The claim

* Two never trust that they have what one may have, unless a loss of data may have taken it from one of them.
* A loss excuses only those whom it may have taken something from. It excuses them until the leases that were confirmed before are over.
* A hold that ends by its window ends while the server still has it.
* A hold is told that it is gone only if something took it away.
* Tokens and terms rise, unless data was lost between.
* When the faults are over, everybody who waits gets it. Nothing is left in the server or in the process.

## The checker

The checker knows nothing of the library. Each worker notes when it believes that it has something, and when it can know that this is over. The
checker compares these times with one another, and with the losses of data that the faults have declared. ` + "[The package comment](../tests/sim/doc.go)" + ` has each check.

[Porcupine](https://github.com/anishathalye/porcupine) searches one order in which all calls can have been answered as they were. It has [models](../tests/sim/linear)
of locks, semaphores, latches, barriers and limiters. Of a lock that is a second opinion.

## The menu

Three processes of three workers each want two objects of one type. For a minute two faults at a time act on them. Beside these, all the time:

* requests and replies are lost, and requests are executed up to 20 seconds late;
* replies come when nobody waits for them any more;
* messages are lost, late or come twice;
* the server's clock runs up to 2 % fast or slow.

After that minute nothing goes wrong any more, and all that is left has to come right. Odd seeds lose no data, so that nothing excuses anything.

## The figures
`

const campaignText = `Real processes on real servers have played, too: %s. They are killed and stopped, and their connections are cut ([how](../tests/sim/campaign)).
Each has one of the three adapters. In some plays a process of Redisson takes part.

`

const noCampaign = `Real processes on real servers play, too, with ` + "`make campaign`" + `. Its figures are not on this page yet.
`

const matrixText = `## What met what

The cells say how often each fault struck each type. A type that nobody holds has no faults that lose data: no lease would bound what they excuse.
`

const overlapText = `## Overlaps after a loss of data

When the server has lost a lock, two holders may overlap. This table has the longest time for which two did. Links lose replies meanwhile, so that a
renewal may fail, too. No lease is longer than eight seconds here. The checker allows no overlap beyond the lease that was confirmed before.
`

const mutantsText = `## The checker is checked

A mutant is the library with one fault that was put in on purpose. The checker must find each within a stated number of seeds, and must find
nothing with the same seed in the library itself. Of this run: %s. It found %d mutants. The median number of seeds is %d.
`

const leftText = `Of %d more it is not known yet whether they are found.
`

const recordText = `## Track record

Faults of redlatch itself that were found before its first release, and mended. Each has a test that fails if it comes back.
`

const replayText = `## Play it yourself

| command | what it does |
|---|---|
| ` + "`make sim`" + ` | plays random seeds of all types for ten minutes, and prints each |
| ` + "`make sim FOR=1h TYPE=fair`" + ` | the same for an hour, of one type |
| ` + "`make sim SEED=7 TYPE=fair`" + ` | plays one seed again, always the same way, and prints what happens |
| ` + "`make sim SHRINK=7 TYPE=fair`" + ` | leaves out the faults that a violation does not need, and prints the rest |
| ` + "`make sim-test`" + ` | looks for all mutants |
| ` + "`make robustness`" + ` | plays and looks for the mutants, and writes this page |
| ` + "`make campaign`" + ` | plays with real processes; ` + "`make page`" + ` then brings its figures to this page |

A seed that goes wrong prints the command that plays it again. Its plan, its trace and its history are kept in ` + "`.tools/sim/wrong`" + `. A browser
shows the history: each call, the order that was found, and what struck meanwhile. ` + "`make check`" + ` plays seeds that the commit gives, so that each commit
plays other ones, and a failure of it can be played again.
`
