package fair

import "testing"

// The client is closed while a spare is made: the subscription that had not begun
// when all spares were ended stayed for as long as the driver.
func TestNoSpareListensAfterClose(t *testing.T) {
	for _, closing := range []string{"before", "meanwhile"} {
		var c Queuers
		e, listens := &ownEntry{}, false
		hear := func() {
			if closing == "meanwhile" {
				c.closeSpares()
			}
			e.Notices().Start(func(func(bool)) func() {
				listens = true
				return func() { listens = false }
			}, nil)
		}
		if closing == "before" {
			c.closeSpares()
		}
		if c.addSpare("orders", e, hear) || listens || c.spares != nil {
			t.Errorf("closed %s: listens is %v, the spares are %v", closing, listens, c.spares)
		}
	}
	var c Queuers
	e, listens := &ownEntry{}, false
	if !c.addSpare("orders", e, func() { listens = true }) || !listens || c.takeSpare("orders", e) != e {
		t.Errorf("no spare was added; listens is %v", listens)
	}
}
