package wire

import (
	"strings"
	"testing"
)

func TestWhatOthersHaveWrittenIsShownInPartAndWithoutControlBytes(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for s, want := range map[string][2]string{
		"":                     {`""`, ""},
		"5f1b:1":               {`"5f1b:1"`, "5f1b:1"},
		`ann "the" \ owner é`:  {`"ann \"the\" \\ owner é"`, `ann "the" \ owner é`},
		"a\x1b[31m\r\n\u202eb": {`"a\x1b[31m\r\n\u202eb"`, `a\x1b[31m\r\n\u202eb`},
		"\xff":                 {`"\xff"`, `\xff`},
		long:                   {`"` + long[:100] + `"... (1048576 bytes)`, long[:500] + "... (1048576 bytes)"},
		long[:100] + "\n":      {`"` + long[:100] + `"... (101 bytes)`, long[:100] + `\n`},
	} {
		if got := [2]string{Quote(s), Text(s)}; got != want {
			t.Errorf("%.20q (%d bytes): %q, want %q", s, len(s), got, want)
		}
	}
}
