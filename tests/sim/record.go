package sim

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redlatch/redlatch/driver"
)

// Ordered stands before a script that is recorded, on any server: pairs is in the
// order of the keys, which Lua leaves open.
const Ordered = `local function pairs(t)
  local keys, i = {}, 0
  for k in next, t do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return function()
    i = i + 1
    if keys[i] ~= nil then return keys[i], t[keys[i]] end
  end
end
`

// A Recording has what the servers of a world were asked and answered, for package
// real, which asks real servers the same.
type Recording struct {
	mu      sync.Mutex
	Servers []*Record
}

// A Record is that of one server, in order.
type Record struct {
	Steps []Step

	within bool // a command is on its way, which the hook has seen already
	calls  []Call
}

// A Step is a script that a server executed.
type Step struct {
	Script        *driver.Script
	Keys, Args    []string
	Before, After []Key // what the server has stored then
	Calls         []Call
	Reply         any // as Call.Reply
}

// A Call is a command of a script.
type Call struct {
	Args     []string
	Reply    any  // an int, a string, nil, a list of these, or an error; a status is a [server.Simple]
	Injected bool // an ailment has answered
}

// A Key is what a server has stored by a name.
type Key struct {
	Name, Kind string
	Content    []string // of a hash in the order of its fields, and of a sorted set each member with its score
	Ends       bool     // it has a TTL
}

// begin returns a record for one more server.
func (r *Recording) begin() *Record {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Servers = append(r.Servers, &Record{})
	return r.Servers[len(r.Servers)-1]
}

// call executes a command of a script, and notes what it was answered.
func (r *Record) call(s *node, c *server.Peer, cmd string, args []string) {
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	peer := server.NewPeer(w)
	peer.Ctx = c.Ctx
	r.within = true
	s.mini.Server().Dispatch(peer, append([]string{cmd}, args...))
	r.within = false
	_ = w.Flush()
	c.WriteRaw(buf.String())
	reply := parsed(&buf)
	err, failed := reply.(error)
	r.calls = append(r.calls, Call{
		Args: append([]string{cmd}, args...), Reply: reply,
		Injected: failed && (err.Error() == string(noMemory) || err.Error() == string(noDisk)),
	})
}

func parsed(buf *bytes.Buffer) any {
	v, err := server.ParseReply(bufio.NewReader(bytes.NewReader(buf.Bytes())))
	if err != nil {
		return err
	}
	return v
}

// keysOf returns what a snapshot has, sorted.
func keysOf(c snapshot) (all []Key) {
	for _, k := range c.keys {
		key := Key{Name: k.name, Kind: k.kind, Content: k.content, Ends: k.ttl > 0}
		for _, member := range slices.Sorted(maps.Keys(k.scores)) {
			key.Content = append(key.Content, member, strconv.FormatFloat(k.scores[member], 'g', 17, 64))
		}
		all = append(all, key)
	}
	return all
}
