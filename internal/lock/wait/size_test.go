package wait

import (
	"testing"
	"unsafe"

	"github.com/redlatch/redlatch/internal/lock/term"
)

// Each hold has one of either. A few bytes more would cost 64, because Go
// allocates in classes of sizes and puts a header of eight bytes before what is
// larger than 512.
func TestAHoldCostsNoLargerSizeClass(t *testing.T) {
	t.Parallel()
	const header = 8
	if got := unsafe.Sizeof(term.Term{}) + header; got > 832 {
		t.Errorf("a term needs %d bytes, more than the class of 832", got)
	}
	if got := unsafe.Sizeof(Entry{}) + header; got > 576 {
		t.Errorf("an entry needs %d bytes, more than the class of 576", got)
	}
}
