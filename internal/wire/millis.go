package wire

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// Millis writes a time in ms.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// FromMillis returns what the server says in ms. Others may have stored more than
// a Duration can be: that is 146 years, to which something can be added.
func FromMillis(ms int64) time.Duration {
	const most = 1 << 62 / int64(time.Millisecond)
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

// StoredMillis reads a time in ms that others may have stored, and says whether it
// is one. Whoever waits until then waits for ever if it is no time that a clock
// reaches.
func StoredMillis(text string) (ms int64, ok bool) {
	const never = 922337203685477 // Redisson's mark, and the most that scripts say
	n, err := strconv.ParseFloat(text, 64)
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || math.IsNaN(n) {
		return 0, false
	}
	return int64(max(-never, min(n, never))), true
}

// MillisUp is Millis of a time that must not become shorter.
func MillisUp(d time.Duration) string { return Millis(d + time.Millisecond - 1) }
