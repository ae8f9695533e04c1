package driver_test

import (
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/driver"
)

// What became of a script decides whether it may be sent again. An adapter says so
// for each error.
func ExampleRunError() {
	refused := driver.ServerError("LOADING Redis is loading the dataset in memory", errors.New("loading"))
	fmt.Println(refused.Outcome, refused.Code)

	unsent := &driver.RunError{Outcome: driver.NotExecuted, Err: errors.New("connection refused")}
	fmt.Println(unsent.Outcome)

	lost := driver.Failure(errors.New("read: connection reset by peer")) // it may have run
	fmt.Println(lost.Outcome)
	// Output:
	// not executed LOADING
	// not executed
	// unknown
}
