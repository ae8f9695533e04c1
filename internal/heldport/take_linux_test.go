package heldport

import (
	"strconv"
	"testing"
)

// The bus of a cluster's node was given the port of a server that was down until
// it was to start again.
func TestAPortThatIsHeldIsNotTakenByItsNumber(t *testing.T) {
	port, err := strconv.Atoi(Hold(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, letGo, err := take(port); err == nil {
		letGo()
		t.Errorf("port %d was taken twice", port)
	}
}
