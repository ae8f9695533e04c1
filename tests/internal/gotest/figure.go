package main

import (
	"errors"
	"fmt"
	"time"
)

// A figure is what the tests of a run are to take of the processor; 0: any. No run
// fails for it: a slow machine, or one that has other things to do, takes several
// times as much for the same tests.
type figure time.Duration

// tell prints what a run took, beside the figure. It fails if a run that has
// passed did not measure that.
func (f figure) tell(r *run, passed bool) error {
	tests, now := r.tests()
	fmt.Printf("the tests took %s of processor time, and building them %s", seconds(tests), seconds(max(0, r.all-now)))
	if f == 0 {
		fmt.Println()
		return nil
	}
	fmt.Printf("; the Makefile's figure for the tests is %s\n", seconds(time.Duration(f)))
	switch {
	case tests == 0 && passed:
		return errors.New("no package says what its tests took")
	case tests > time.Duration(f)*3/2:
		fmt.Println("That is more than 1.5 times the figure: this machine is slow or busy, or the tests cost more now. If you have changed them, compare with a run without your change.")
	}
	return nil
}
