package inspect

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/wire"
)

func text(s string) driver.Reply  { return driver.Reply{Kind: driver.ReplyString, Str: s} }
func number(n int64) driver.Reply { return driver.Reply{Kind: driver.ReplyInt, Int: n} }

// pairs reads lines of a field or member and, behind the last space, its value.
func pairs(lines string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		i := strings.LastIndexByte(line, ' ')
		all[line[:max(i, 0)]] = line[i+1:]
	}
	return all
}

// answer is what lock.info.lua says of what is stored.
func answer(ttl, now int64, token string, fields map[string]string, queue []string, until map[string]string) driver.Reply {
	list := []driver.Reply{number(ttl), number(now), text(token), number(int64(2 * len(fields)))}
	add := func(m map[string]string) {
		for field, value := range m {
			list = append(list, text(field), text(value))
		}
	}
	add(fields)
	list = append(list, number(int64(len(queue))))
	for _, owner := range queue {
		list = append(list, text(owner))
	}
	add(until)
	return driver.Reply{Kind: driver.ReplyList, List: list}
}

// Whatever hash somebody has stored, it is read as what the comment of package
// admin's Locks says, the same each time, or refused as no lock, in few words.
func FuzzHash(f *testing.F) {
	f.Fuzz(func(t *testing.T, hash, queue, until, token string, ttl, now int64) {
		h := hashed{pairs(hash), strings.Fields(queue), token, ttl}
		now &= 1<<53 - 1 // as Lua has it
		read := func(name string) (Info, error) {
			s, err := parseStored(name, answer(ttl, now, token, h.fields, h.queue, pairs(until)))
			if err != nil {
				return Info{}, err
			}
			return s.info(s.guess())
		}
		info, err := read("x")
		if again, err2 := read("x"); !reflect.DeepEqual(again, info) || (err2 == nil) != (err == nil) {
			t.Fatalf("%+v, %v, and then %+v, %v", info, err, again, err2)
		}
		kind, is := h.kind(), h.isLock()
		if err != nil {
			if _, err := read(strings.Repeat("\n", 1000)); !isWrongType(err) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error %q", err)
			}
			if _, reads := h.values(now); is || (kind == Group && reads && h.token == "") || !reflect.DeepEqual(info, Info{}) {
				t.Errorf("a %s is refused: %v, and %+v", kind, err, info)
			}
			return
		}
		if info.Kind != kind || (kind != Group && info.looksLikeLock() != is) {
			t.Errorf("it is a %s, and looks like a lock: %v; want a %s, %v", info.Kind, info.looksLikeLock(), kind, is)
		}
		if kind == Group {
			h.checkValues(t, info, now)
		} else if got, want := stands(info), h.counts(); !maps.Equal(got, want) {
			t.Errorf("the counts are %v, want %v", got, want)
		}
		var waits []string
		for _, w := range info.Queue {
			waits = append(waits, w.Owner)
		}
		if kind == Fair && !slices.Equal(waits, h.queue) || kind != Fair && waits != nil {
			t.Errorf("of a %s %q wait, and are stored %q", kind, waits, h.queue)
		}
	})
}

// hashed is what is stored, and what the words of Locks make of it.
type hashed struct {
	fields map[string]string
	queue  []string
	token  string
	ttl    int64
}

func (h hashed) kind() string {
	token, _ := strconv.ParseInt(h.token, 10, 64)
	mode := h.fields["mode"]
	switch {
	case mode == "read" || mode == "write":
		return ReadWrite
	case slices.ContainsFunc(slices.Collect(maps.Keys(h.fields)), func(s string) bool { return strings.HasSuffix(s, ":expire_time") }):
		return Group
	case len(h.queue) > 0:
		return Fair
	case token > 0:
		return Fenced
	}
	return Lock
}

// counts are the numbers of the fields that are owners.
func (h hashed) counts() map[string]int {
	all := map[string]int{}
	for owner, text := range h.fields {
		if owner != "mode" || h.kind() != ReadWrite {
			all[owner], _ = strconv.Atoi(text)
		}
	}
	return all
}

var uuid = regexp.MustCompile(`(?s)^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:.`)

// isLock says whether there is one field that begins with a UUID and has a number;
// of a read-write lock, any number of such fields, which makes no more than 10,000
// holds. It does not know groups.
func (h hashed) isLock() bool {
	if _, err := strconv.ParseInt(h.token, 10, 64); h.token != "" && err != nil {
		return false
	}
	if h.kind() == Group {
		return false
	}
	holds, counts := 0, h.counts()
	for owner, n := range counts {
		if h.kind() == ReadWrite {
			owner = strings.TrimSuffix(owner, ":write")
		}
		if n < 1 || !uuid.MatchString(owner) {
			return false
		}
		holds += min(n, mostReads+1)
	}
	if h.kind() == ReadWrite {
		return h.ttl > 0 && len(counts) > 0 && holds <= mostReads
	}
	return h.ttl > 0 && len(counts) == 1
}

// stands is what stands in the hash of an Info.
func stands(info Info) map[string]int {
	all := map[string]int{}
	for _, h := range info.Holders {
		owner := h.Owner
		if h.Mode == wire.ModeWrite && !wire.Writes(owner) {
			owner = wire.WriteField(owner)
		}
		all[owner] = h.Count
	}
	return all
}

// values are the locked values of a group by their owners: the fields without a
// colon whose time is not over. It says whether each of those fields has a time
// and a count.
func (h hashed) values(now int64) (owners map[string]string, all bool) {
	owners = map[string]string{}
	for value, owner := range h.fields {
		if strings.Contains(value, ":") {
			continue
		}
		ms, ok := wire.StoredMillis(h.fields[value+":"+owner+":expire_time"])
		if _, err := strconv.Atoi(h.fields[value+":"+owner+":lock_count"]); err != nil || !ok {
			return nil, false
		}
		if ms > now {
			owners[value] = owner
		}
	}
	return owners, true
}

// checkValues wants that those values are locked, each for as long as the hash
// lasts at most.
func (h hashed) checkValues(t *testing.T, info Info, now int64) {
	t.Helper()
	got := map[string]string{}
	for _, v := range info.Holders {
		got[v.Value] = v.Owner
		if v.TTL <= 0 && h.ttl > 0 || h.ttl >= 0 && v.TTL > info.TTL {
			t.Errorf("value %q is read as %+v", v.Value, v)
		}
	}
	if want, all := h.values(now); !all || !maps.Equal(got, want) {
		t.Errorf("%v have the values, want %v", got, want)
	}
}

// Whatever a server answers, reading it ends with an Info or an error.
func FuzzAnswer(f *testing.F) {
	f.Fuzz(func(t *testing.T, lines string) {
		var r driver.Reply
		for line := range strings.Lines(lines) {
			line = strings.TrimSuffix(line, "\n")
			if n, err := strconv.ParseInt(line, 10, 64); err == nil {
				r.List = append(r.List, number(n))
			} else {
				r.List = append(r.List, text(line))
			}
		}
		s, err := parseStored("x", r)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("%q", err)
			}
			return
		}
		if got := 2*len(s.fields) + len(s.queue) + 2*len(s.waiting) + 5; got > len(r.List) {
			t.Errorf("%d parts are read of %d", got, len(r.List))
		}
		for _, kind := range []string{Lock, Fenced, Fair, ReadWrite, Group} {
			if info, err := s.info(kind); err == nil && (info.Kind != kind || info.Name != "x") {
				t.Errorf("as a %s it is %+v", kind, info)
			}
		}
	})
}

// A rate limiter is configured with numbers, or it is said which of its fields is
// none.
func FuzzRate(f *testing.F) {
	f.Fuzz(func(t *testing.T, permits, interval, kind, keepAlive string) {
		list := []driver.Reply{text(permits), text(interval), text(kind), text(keepAlive)}
		r, set, err := RateOf("x", list)
		if err != nil {
			if set || len(err.Error()) > 600 || !slices.ContainsFunc(list, func(r driver.Reply) bool { return strings.Contains(err.Error(), wire.Quote(r.Str)) }) {
				t.Errorf("%q: %v", list, err)
			}
			return
		}
		n, err := strconv.ParseInt(permits, 10, 48)
		if !set || err == nil && int64(r.Permits) != n {
			t.Errorf("%q: %+v, %v", list, r, set)
		}
		if ms, err := strconv.ParseInt(interval, 10, 40); err == nil && r.Interval != time.Duration(ms)*time.Millisecond {
			t.Errorf("%q: %+v", list, r)
		}
	})
}
