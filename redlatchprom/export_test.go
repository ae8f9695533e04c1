package redlatchprom

import "github.com/redlatch/redlatch/observe"

// Hooks are what Watch adds to a client.
func (m *Metrics) Hooks() observe.Hooks { return m.hooks() }
