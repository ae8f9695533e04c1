package wire

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const fuzzClient = "285475da-9152-8c83-822a-67ee2f116a79"

// ownKeys are the keys and channels of whatever has this name. Those of a latch's
// channel stand elsewhere in a cluster.
func ownKeys(name string) []string {
	owner := Owner(fuzzClient, 7)
	return slices.Concat([]string{
		Prefix(LockChannel, name), Prefix(LockToken, name), Prefix(LockQueue, name), Prefix(LockTimeout, name), Prefix(LockAlive, name),
		Prefix(Revoke, name), Prefix(RWChannel, name), Prefix(RWWriters, name), Prefix(SemaphoreChannel, name), Prefix(BarrierChannel, name),
		FairChannel(name, owner), ReadTimeout(name, owner, 1), Suffix(name, PermitTimeout), Session(name, fuzzClient, "rate"),
	}, BarrierKeys(name, "12"), RateKeys(name, fuzzClient)[1:])
}

// A name that is accepted has all its keys in one slot, none of them twice, and is
// found by them. An error about a name can be shown, however long the name is.
func FuzzCheckName(f *testing.F) {
	f.Fuzz(func(t *testing.T, name string) {
		err := CheckName(name)
		if err != nil {
			if !strings.ContainsAny(name, "{}") && name != "" || len(err.Error()) > 600 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("CheckName(%q): %q", name, err)
			}
			return
		}
		keys := ownKeys(name)
		for _, key := range keys {
			if got, want := Slot(key), Slot(name); got != want {
				t.Errorf("CheckName accepts %q: slot %d, but %q in slot %d", name, want, key, got)
			}
		}
		if slices.Sort(keys); len(slices.Compact(slices.Clone(keys))) != len(keys) {
			t.Errorf("%q has a key twice: %q", name, keys)
		}
		for _, found := range [][]string{PrefixedNames(Barrier, Prefix(Barrier, name)), SuffixedNames(Suffix(name, PermitTimeout), PermitTimeout)} {
			if !slices.Contains(found, name) {
				t.Errorf("%q is not among the names of its keys, %q", name, found)
			}
		}
		for _, key := range []string{Suffix(name, RateValue), Suffix(name, RateValue) + ":" + fuzzClient, ReadTimeout(name, Owner(fuzzClient, 7), 2), Session(name, fuzzClient, "x"), Prefix(LockToken, name)} {
			if !IsSideKey(key) {
				t.Errorf("%q of %q is not seen to be a side key", key, name)
			}
		}
	})
}

// Two names share side keys if Tag says so, and only then. They never share a
// session.
func FuzzTwinNames(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, b := range []string{b, "{" + a + "}", strings.Trim(a, "{}"), a + "}", "{" + a} {
			if a == b || CheckName(a) != nil || CheckName(b) != nil {
				continue
			}
			twins := Tag(a) != "" && Tag(a) == Tag(b)
			if (Prefix("p", a) == Prefix("p", b)) != twins || (Suffix(a, "s") == Suffix(b, "s")) != twins {
				t.Errorf("%q and %q have the keys %q and %q; twins: %v", a, b, Prefix("p", a), Prefix("p", b), twins)
			}
			if Session(a, fuzzClient, "x") == Session(b, fuzzClient, "x") {
				t.Errorf("%q and %q have one session", a, b)
			}
			for _, name := range []string{a, b} { // each is found by what they share
				if twins && (!slices.Contains(PrefixedNames("p", Prefix("p", a)), name) || !slices.Contains(SuffixedNames(Suffix(a, "s"), "s"), name)) {
					t.Errorf("%q is not found by the keys of %q and %q", name, a, b)
				}
			}
		}
	})
}

// The names that are found by a key are those that have it, each once: the golden
// definition is to try all its pieces.
func FuzzNamesOfSideKeys(f *testing.F) {
	f.Fuzz(func(t *testing.T, key string) {
		if len(key) > 60 {
			return // there are too many pieces
		}
		var prefixed, suffixed []string
		for i := range len(key) {
			for j := i + 1; j <= len(key); j++ {
				if name := key[i:j]; Prefix("p", name) == key {
					prefixed = append(prefixed, name)
				} else if Suffix(name, "s") == key {
					suffixed = append(suffixed, name)
				}
			}
		}
		for _, found := range [][2][]string{{PrefixedNames("p", key), prefixed}, {SuffixedNames(key, "s"), suffixed}} {
			got, want := slices.Sorted(slices.Values(found[0])), slices.Compact(slices.Sorted(slices.Values(found[1])))
			if !slices.Equal(got, want) {
				t.Errorf("the names of %q are %q, want %q", key, got, want)
			}
		}
	})
}

// tag finds what of a key is hashed, as the cluster specification words it.
var tag = regexp.MustCompile(`(?s)^[^{]*\{([^}]+)\}`)

func FuzzSlot(f *testing.F) {
	f.Fuzz(func(t *testing.T, key string) {
		hashed := key
		if m := tag.FindStringSubmatch(key); m != nil {
			hashed = m[1]
		}
		if got, want := Slot(key), xmodem(hashed)%16384; got != want {
			t.Errorf("Slot(%q) = %d, want %d, the slot of %q", key, got, want, hashed)
		}
	})
}

// xmodem is CRC-16/XMODEM as a long division, one bit of the message at a time.
func xmodem(s string) int {
	rest := 0
	for i := range len(s) + 2 { // two bytes of padding
		var b byte
		if i < len(s) {
			b = s[i]
		}
		for bit := 7; bit >= 0; bit-- {
			rest = rest<<1 | int(b>>bit)&1
			if rest > 0xffff {
				rest ^= 0x11021
			}
		}
	}
	return rest
}

// uuidField is a field of the shape that ClientOf looks for.
var uuidField = regexp.MustCompile(`(?s)^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-([0-9a-fA-F])[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}):.+$`)

// A client is found in each field that its owners have, and in nothing else.
func FuzzClientOf(f *testing.F) {
	f.Fuzz(func(t *testing.T, owner string, n uint64) {
		id, redlatch := ClientOf(owner)
		var want string
		ours := false
		if m := uuidField.FindStringSubmatch(owner); m != nil {
			want, ours = m[1], m[2] == "8"
		}
		if id != want || redlatch != ours {
			t.Fatalf("ClientOf(%q) = %q, %v; want %q, %v", owner, id, redlatch, want, ours)
		}
		if id == "" {
			return
		}
		for _, field := range []string{Owner(id, n), WriteField(Owner(id, n)), WriteField(Owner(id, n)) + ":tx"} {
			if got, redlatch := ClientOf(field); got != id || redlatch != ours || Writes(field) != (field != Owner(id, n)) {
				t.Errorf("ClientOf(%q) = %q, %v; Writes: %v", field, got, redlatch, Writes(field))
			}
		}
	})
}

// What others have written is shown on one line, as it is or as Go writes it, and
// not all of it.
func FuzzText(f *testing.F) {
	f.Fuzz(func(t *testing.T, said, arguments string) {
		quoted, shown := Quote(said), Text(said)
		for _, s := range []string{quoted, shown, ServerText(said)} {
			if len(s) > 5*mostText || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
				t.Errorf("%q is shown as %q", said, s)
			}
		}
		if back, err := strconv.Unquote(quoted); len(said) <= mostQuoted && (err != nil || back != said) {
			t.Errorf("%q is quoted as %s", said, quoted)
		}
		if back, err := strconv.Unquote(`"` + shown + `"`); len(said) <= mostText && shown != said && (err != nil || back != said) {
			t.Errorf("%q is shown as %s", said, shown)
		}
		const before = "args beginning with:"
		if with, without := ServerText(said+before+arguments), ServerText(said+before); with != without {
			t.Errorf("a server's %q is shown as %q", said+before+arguments, with)
		}
	})
}

// A time that others have stored is a number, and one that a Duration can be made
// of.
func FuzzStoredMillis(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		ms, ok := StoredMillis(text)
		if float, err := strconv.ParseFloat(text, 64); ok != (!math.IsNaN(float) && (err == nil || errors.Is(err, strconv.ErrRange))) {
			t.Fatalf("%q is a time: %v", text, ok)
		}
		if n, err := strconv.ParseInt(text, 10, 48); err == nil && ms != n {
			t.Errorf("%q is %d", text, ms)
		}
		const most = 922337203685477 // ms, of which 100 times as many are no Duration
		if d := FromMillis(ms); ms < -most || ms > most || (d < 0) != (ms < 0) || (ms > -1<<42 && ms < 1<<42 && d.Milliseconds() != ms) {
			t.Errorf("%q is %d ms, which are %v", text, ms, d)
		}
	})
}
