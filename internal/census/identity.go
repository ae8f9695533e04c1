package census

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/redlatch/redlatch/internal/wire"
)

// What an identity has at most.
const (
	mostText     = 100 // bytes of each text
	mostLabels   = 16
	mostIdentity = 8 << 10 // bytes of what is stored
)

// An Identity says who a client is.
type Identity struct {
	Name    string            `json:"name,omitempty"`
	Program string            `json:"program,omitempty"`
	Host    string            `json:"host,omitempty"`
	PID     int               `json:"pid,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// Known says whether it says anything.
func (i Identity) Known() bool { return i.Name != "" || i.Program != "" || i.Host != "" || i.PID != 0 }

// String returns "billing@host-7 pid 4121", or what of it is known.
func (i Identity) String() string {
	s := cmp.Or(i.Name, i.Program)
	if i.Host != "" {
		s += "@" + i.Host
	}
	if i.PID != 0 {
		s += " pid " + strconv.Itoa(i.PID)
	}
	return s
}

// WithDefaults fills in what is not set, and refuses what could not be shown.
func (i Identity) WithDefaults() (Identity, error) {
	texts := []string{i.Name, i.Program, i.Host}
	for label, value := range i.Labels {
		texts = append(texts, label, value)
	}
	for _, text := range texts {
		if len(text) > mostText || clean(text) != text {
			return i, fmt.Errorf("%s is longer than %d bytes, or cannot be printed", wire.Quote(text), mostText)
		}
	}
	if len(i.Labels) > mostLabels {
		return i, fmt.Errorf("it has %d labels, and may have %d", len(i.Labels), mostLabels)
	}
	if i.Program == "" && len(os.Args) > 0 && os.Args[0] != "" {
		i.Program = clean(filepath.Base(os.Args[0]))
	}
	if i.Host == "" {
		host, _ := os.Hostname() // else it stays unknown
		i.Host = clean(host)
	}
	i.PID = cmp.Or(i.PID, os.Getpid())
	i.Labels = maps.Clone(i.Labels)
	if n := len(i.note()); n >= mostIdentity {
		return i, fmt.Errorf("it has %d bytes as JSON, and may have %d: shorten its labels", n, mostIdentity-1)
	}
	return i, nil
}

// clean returns the beginning of a text in a form that can be printed.
func clean(text string) string {
	return wire.Text(text[:min(len(text), mostText)])
}

// cleaned is an identity that somebody else has written.
func (i Identity) cleaned() Identity {
	i.Name, i.Program, i.Host, i.PID = clean(i.Name), clean(i.Program), clean(i.Host), max(i.PID, 0)
	labels := i.Labels
	i.Labels = nil
	for n, label := range slices.Sorted(maps.Keys(labels)) {
		if n == mostLabels {
			break
		}
		if i.Labels == nil {
			i.Labels = map[string]string{}
		}
		i.Labels[clean(label)] = clean(labels[label])
	}
	return i
}

// A noted identity is what is stored.
type noted struct {
	V int `json:"v"`
	Identity
}

// note writes what is stored.
func (i Identity) note() string {
	text, _ := json.Marshal(noted{version, i}) //nolint:errchkjson // texts and a number always can
	return string(text)
}

// readIdentity reads what is stored, if that is an identity.
func readIdentity(text string) (Identity, bool) {
	var n noted
	if len(text) >= mostIdentity || json.Unmarshal([]byte(text), &n) != nil || n.V != version || !n.Known() {
		return Identity{}, false
	}
	return n.cleaned(), true
}
