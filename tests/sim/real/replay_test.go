package real

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/tests/sim"
)

//go:embed ask.lua
var ask string

// wrapped returns the text that asks a real server for what a script does there.
func wrapped(x *driver.Script) string {
	return ask + sim.Ordered + "local function script()\n" + x.Source() + "\nend\nlocal fine, reply = pcall(script)\n" +
		"if not fine and type(reply) ~= 'table' then reply = {err = tostring(reply)} end\nreturn {log, tell(reply), all()}\n"
}

// What a real server is not believed, but has the answer of the record. Of the
// fields of a hash only the order is.
var (
	clocks = []string{"TIME", "PTTL"}
	counts = []string{"PUBSUB", "PUBLISH"}
	fields = []string{"HGETALL", "HKEYS", "HRANDFIELD"}
)

// A replay plays a record on a real server.
type replay struct {
	server *testserver.Server
	shas   map[string]string // of the wrapped scripts, by their own
	stored []sim.Key
	wrong  []string
	steps  int
}

// most is how many differences a replay tells of.
const most = 10

// play replays the record of one server.
func (r *replay) play(record *sim.Record) {
	r.server.MustDo("FLUSHALL")
	r.stored = nil
	for _, step := range record.Steps {
		r.steps++
		r.become(step.Before)
		got, err := r.run(step)
		if err != nil {
			r.differ(step, "%v", err)
			return
		}
		r.compare(step, got)
		if len(r.wrong) >= most {
			return
		}
		r.stored = got.stored
		r.become(step.After) // after a difference
	}
}

func (r *replay) differ(step sim.Step, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf("%s %s, script %d, KEYS %q ARGV %q: %s", r.server.Kind(), step.Script.Name(), r.steps, step.Keys, step.Args,
		fmt.Sprintf(format, args...)))
}

// become has the server store just that.
func (r *replay) become(keys []sim.Key) {
	want := byName(keys)
	for name, is := range byName(r.stored) {
		if to, ok := want[name]; ok && same(is, to) {
			delete(want, name)
			continue
		}
		r.server.MustDo("DEL", name)
	}
	for name, k := range want {
		switch k.Kind {
		case "string":
			r.server.MustDo("SET", name, k.Content[0])
		case "hash":
			r.server.MustDo(append([]string{"HSET", name}, k.Content...)...)
		case "list":
			r.server.MustDo(append([]string{"RPUSH", name}, k.Content...)...)
		case "zset":
			for i := 0; i < len(k.Content); i += 2 {
				r.server.MustDo("ZADD", name, k.Content[i+1], k.Content[i])
			}
		}
		if k.Ends {
			r.server.MustDo("PEXPIRE", name, "1000000000")
		}
	}
	r.stored = keys
}

func byName(keys []sim.Key) map[string]sim.Key {
	all := map[string]sim.Key{}
	for _, k := range keys {
		all[k.Name] = k
	}
	return all
}

func same(a, b sim.Key) bool {
	return a.Kind == b.Kind && a.Ends == b.Ends && slices.Equal(sorted(a), sorted(b))
}

// sorted returns the content of a key in an order of its own: pairs by their first
// half.
func sorted(k sim.Key) []string {
	if k.Kind == "list" || k.Kind == "string" {
		return k.Content
	}
	return pairs(k.Content)
}

func pairs(list []string) (all []string) {
	for p := range slices.Chunk(list, 2) {
		all = append(all, fmt.Sprintf("%q", p))
	}
	slices.Sort(all)
	return all
}

// An answer is what a real server says to a script.
type answer struct {
	calls  []call
	reply  any
	stored []sim.Key
}

type call struct {
	args  []string
	reply any
}

func (r *replay) run(step sim.Step) (a answer, err error) {
	sha := r.shas[step.Script.SHA()]
	if sha == "" {
		text, err := r.server.Do("SCRIPT", "LOAD", wrapped(step.Script))
		if err != nil {
			return a, err
		}
		sha, _ = text.(string)
		r.shas[step.Script.SHA()] = sha
	}
	v, err := r.server.Do(slices.Concat([]string{"EVALSHA", sha, strconv.Itoa(len(step.Keys))}, step.Keys, step.Args, []string{answers(step.Calls)})...)
	if err != nil {
		return a, err
	}
	parts, _ := v.([]any)
	if len(parts) != 3 {
		return a, fmt.Errorf("the server answers %v", v)
	}
	calls, _ := parts[0].([]any)
	for _, v := range calls {
		pair, _ := v.([]any)
		a.calls = append(a.calls, call{texts(pair[0]), pair[1]})
	}
	a.reply = parts[1]
	keys, _ := parts[2].([]any)
	for _, v := range keys {
		k, _ := v.([]any)
		key := sim.Key{Name: fmt.Sprint(k[0]), Kind: fmt.Sprint(k[1]), Ends: k[2] == int64(1), Content: texts(k[3])}
		if key.Kind == "zset" {
			for i := 1; i < len(key.Content); i += 2 {
				key.Content[i] = number(key.Content[i])
			}
		}
		a.stored = append(a.stored, key)
	}
	return a, nil
}

func texts(v any) (all []string) {
	list, _ := v.([]any)
	for _, x := range list {
		all = append(all, fmt.Sprint(x))
	}
	return all
}

// sameText says whether two arguments are the same. Where a script gives a number
// with a fraction, the embedded server writes it in another way.
func sameText(a, b string) bool { return a == b || number(a) == number(b) }

// number writes a number as a record has scores.
func number(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// answers packs what the server is to take from the record: by the number of the
// command, its name, and how it was answered.
func answers(calls []sim.Call) string {
	own := map[int][]any{}
	for i, c := range calls {
		switch cmd := c.Args[0]; {
		case c.Injected:
			own[i+1] = []any{cmd, "refused", c.Reply.(error).Error()}
		case failed(c.Reply): // what it says then is compared
		case slices.Contains(slices.Concat(clocks, counts, fields), cmd):
			own[i+1] = []any{cmd, "answered", c.Reply}
		}
	}
	var b strings.Builder
	head(&b, 0xdf, len(own))
	for _, i := range slices.Sorted(maps.Keys(own)) {
		pack(&b, i)
		pack(&b, own[i])
	}
	return b.String()
}

func failed(reply any) bool { _, is := reply.(error); return is }

// pack writes a value as MessagePack.
func pack(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteByte(0xc2) // false
	case int:
		b.WriteByte(0xd3)
		for shift := 56; shift >= 0; shift -= 8 {
			b.WriteByte(byte(v >> shift))
		}
	case string:
		head(b, 0xdb, len(v))
		b.WriteString(v)
	case []any:
		head(b, 0xdd, len(v))
		for _, x := range v {
			pack(b, x)
		}
	default:
		panic(fmt.Sprintf("a %T in a record", v))
	}
}

func head(b *strings.Builder, kind byte, n int) {
	b.Write([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// compare compares what a server has said to a script with the record.
func (r *replay) compare(step sim.Step, got answer) {
	for i, want := range step.Calls {
		if i == len(got.calls) {
			r.differ(step, "command %d is not given: %q", i+1, want.Args)
			break
		}
		if is := got.calls[i]; !slices.EqualFunc(is.args, want.Args, sameText) {
			r.differ(step, "command %d is %q, in the embedded server %q", i+1, is.args, want.Args)
			break
		} else if w := told(want.Reply); !alike(want.Args, is.reply, w) {
			r.differ(step, "command %d, %q, is answered %q, in the embedded server %q", i+1, want.Args, is.reply, w)
		}
	}
	if len(got.calls) > len(step.Calls) {
		r.differ(step, "command %d is %q, and none in the embedded server", len(step.Calls)+1, got.calls[len(step.Calls)].args)
	}
	if want := told(step.Reply); !equal(got.reply, want) {
		r.differ(step, "it returns %q, in the embedded server %q", got.reply, want)
	}
	have, want := byName(got.stored), byName(step.After)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if is, ok := have[name]; !ok || !same(is, want[name]) {
			r.differ(step, "it leaves %+v, in the embedded server %+v", is, want[name])
		}
		delete(have, name)
	}
	for name := range have {
		r.differ(step, "it leaves %+v, and nothing in the embedded server", have[name])
	}
}

// told says what a reply is, as ask.lua does.
func told(v any) any {
	switch v := v.(type) {
	case nil:
		return "_"
	case int:
		return ":" + strconv.Itoa(v)
	case string:
		return "$" + v
	case server.Simple:
		return "+" + string(v)
	case error:
		return "-" + v.Error()
	case []any:
		list := []any{}
		for _, x := range v {
			list = append(list, told(x))
		}
		return list
	}
	panic(fmt.Sprintf("a %T in a record", v))
}

// alike says whether a command's answers are the same, as far as a command's can
// be.
func alike(args []string, a, b any) bool {
	switch cmd := args[0]; {
	case cmd == "PTTL":
		return fmt.Sprint(a) == fmt.Sprint(b) || lives(a) && lives(b)
	case slices.Contains(clocks, cmd), slices.Contains(counts, cmd):
		return shape(a) == shape(b)
	case cmd == "HGETALL":
		return slices.Equal(pairs(texts(a)), pairs(texts(b)))
	case cmd == "HKEYS":
		return slices.Equal(slices.Sorted(slices.Values(texts(a))), slices.Sorted(slices.Values(texts(b))))
	case cmd == "HRANDFIELD":
		return len(texts(a)) == len(texts(b)) && shape(a) == shape(b)
	}
	return equal(a, b)
}

// lives says whether a PTTL is that of a key that ends.
func lives(v any) bool {
	s, _ := v.(string)
	return strings.HasPrefix(s, ":") && !strings.HasPrefix(s, ":-")
}

// shape says of which kinds of values a reply consists.
func shape(v any) string {
	if s, ok := v.(string); ok {
		return s[:1]
	}
	list, _ := v.([]any)
	text := "*"
	for _, x := range list {
		text += shape(x)
	}
	return text
}

var codes = regexp.MustCompile(`\b[A-Z]{3,}\b`)

// code returns that of an error, wherever it stands in the text: the embedded
// server puts it into another text, with the code ERR.
func code(text string) string {
	all := codes.FindAllString(text, 2)
	if len(all) == 2 && all[0] == "ERR" {
		return all[1]
	}
	return strings.Join(all[:min(len(all), 1)], "")
}

func equal(a, b any) bool {
	if as, ok := a.(string); ok {
		bs, ok := b.(string)
		if ok && strings.HasPrefix(as, "-") && strings.HasPrefix(bs, "-") {
			return code(as) == code(bs)
		}
		return ok && as == bs
	}
	al, _ := a.([]any)
	bl, ok := b.([]any)
	return ok && slices.EqualFunc(al, bl, equal)
}

// newReplay returns one for a server of its own.
func newReplay(tb testing.TB, kind testserver.Kind) *replay {
	tb.Helper()
	return &replay{server: testserver.Start(tb, kind), shas: map[string]string{}}
}
