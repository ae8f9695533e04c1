// Package bounded reads files whose names users give, which may be endless: a
// device, a pipe, or a log by mistake. It promises that none of them fills the
// memory.
package bounded

import (
	"fmt"
	"io"
	"os"
)

// Text is the most that a configuration or a file of certificates has: every
// authority of a system is a quarter of a megabyte.
const Text = 4 << 20

// ReadFile is os.ReadFile for a file of at most so many bytes. A longer one is an
// error that says so.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d MB: that is another file", name, most>>20)
	}
	return text, nil
}
