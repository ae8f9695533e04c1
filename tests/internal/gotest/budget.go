package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// A budget is what the tests of a run are to take of the processor. A run that
// takes half as much again may have met a busy machine; the second one in a row
// fails.
type budget struct {
	figure time.Duration // 0: any
	over   string        // the file that is there after a run that took too much
}

// isOver says whether the run before took too much.
func (b budget) isOver() bool {
	_, err := os.Stat(b.over)
	return b.figure > 0 && err == nil
}

// keeps prints what a run took beside the figure, and says whether it may. A run
// that has failed may not have run everything: it decides nothing.
func (b budget) keeps(r *run, passed bool) (bool, error) {
	tests, now := r.tests()
	fmt.Printf("the tests took %s of processor time, and building them %s", seconds(tests), seconds(max(0, r.all-now)))
	if b.figure == 0 {
		fmt.Println()
		return true, nil
	}
	fmt.Printf("; the Makefile's figure for the tests is %s\n", seconds(b.figure))
	switch {
	case !passed:
		return true, nil
	case tests == 0:
		return false, errors.New("no package says what its tests took")
	case tests <= b.figure*3/2:
		if err := os.Remove(b.over); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return true, nil
	case b.isOver():
		fmt.Println("That is more than 1.5 times the figure, for the second time in a row. Make the slowest packages cheaper, or raise the figure and say what for.")
		return false, nil
	}
	fmt.Println("That is more than 1.5 times the figure. If the next run is, too, it fails.")
	return true, os.WriteFile(b.over, nil, 0o600)
}
