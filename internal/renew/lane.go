package renew

// MaxSenders is how many batches of a lane are under way at a time. So many round
// trips overlap; the rest waits here, where waiting costs nothing, and not for a
// connection.
const MaxSenders = 64

// A lane is what is due at one node. Its senders come one by one, each called by
// the one before if that has left something to do, and end when nothing is left.
type lane struct {
	name    string
	senders int
	coming  bool     // the latest of them has not begun
	queue   []*bunch // each has leases; one that was served goes to the end
	bunches map[sort]*bunch
}

// A bunch is what can be asked about together.
type bunch struct {
	sort

	leases []*Lease
}

// A sort of leases are those that fit into one batch.
type sort struct {
	kind  *Kind
	group int
}

func (l *Lease) sort() sort { return sort{l.Kind, l.Group} }

func newLane(name string) *lane { return &lane{name: name, bunches: make(map[sort]*bunch)} }

func (ln *lane) add(l *Lease) {
	k := l.sort()
	b := ln.bunches[k]
	if b == nil {
		b = &bunch{sort: k}
		ln.bunches[k] = b
		ln.queue = append(ln.queue, b)
	}
	b.leases = append(b.leases, l)
}

// take moves the leases that are to be asked about next to batch, and readies
// them. It adds nothing if nothing is due.
func (ln *lane) take(batch []*Lease) []*Lease {
	for len(ln.queue) > 0 && len(batch) == 0 {
		b := ln.queue[0]
		ln.queue[0] = nil
		ln.queue = ln.queue[1:]
		n := min(len(b.leases), MaxBatch)
		for _, l := range b.leases[:n] {
			if l.removed {
				l.due = false
				continue
			}
			l.ready()
			batch = append(batch, l)
		}
		clear(b.leases[:n])
		if b.leases = b.leases[n:]; len(b.leases) > 0 {
			ln.queue = append(ln.queue, b)
		} else {
			delete(ln.bunches, b.sort)
		}
	}
	return batch
}

// ready makes l one that is being asked about.
func (l *Lease) ready() {
	l.asking, l.Ask, l.Result = true, 0, Failed
	if l.renewing {
		l.Ask = l.Length
	}
}
