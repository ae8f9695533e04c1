package script

import (
	_ "embed"
	"strings"

	"github.com/redlatch/redlatch/driver"
)

// Messages says by which kind of Pub/Sub a script tells others.
type Messages uint8

// The kinds of Pub/Sub.
const (
	Classic Messages = iota // PUBLISH, which is what the sources say
	Sharded                 // SPUBLISH
	Both
	kinds
)

//go:embed both.luainc
var both string

// By returns the script that does the same by that kind of Pub/Sub. One without
// keys is always classic: in a cluster it runs anywhere, and a sharded channel
// belongs to one node.
func (s *Script) By(m Messages) *Script { return s.all[m] }

// variants makes the scripts that By returns.
func (s *Script) variants() {
	s.all = [kinds]*Script{s, s, s}
	if len(s.header.Keys) == 0 || !strings.Contains(s.Source(), "'PUBLISH'") && !strings.Contains(s.Source(), "'NUMSUB'") {
		return
	}
	all := &s.all
	all[Sharded] = s.variant(strings.NewReplacer("'PUBLISH'", "'SPUBLISH'", "'NUMSUB'", "'SHARDNUMSUB'").Replace(s.Source()))
	all[Both] = s.variant(both + strings.NewReplacer("redis.call('PUBLISH', ", "publish(", "redis.call('PUBSUB', 'NUMSUB', ", "numsub(", "redis.pcall('PUBSUB', 'NUMSUB', ", "numsub(").Replace(s.Source()))
	for _, v := range all[1:] {
		v.all = *all
	}
}

func (s *Script) variant(source string) *Script {
	return &Script{Script: driver.NewScript(s.Name(), source), header: s.header}
}
