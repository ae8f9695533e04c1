package mask

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"testing"
)

func TestASecretIsInNoText(t *testing.T) {
	const secret = "a \"b\"/%\n"
	cause := &fs.PathError{Op: "HELLO", Path: secret, Err: errors.New("unknown command")}
	for _, form := range []string{secret, fmt.Sprintf("%q", secret), url.PathEscape(secret), url.QueryEscape(secret)} {
		said := fmt.Errorf("AUTH `ann` `%s`: %w", form, cause)
		err := fmt.Errorf("h:6379: %w", Error(said, "", "ann", secret))
		want := "h:6379: AUTH `***` `***`: HELLO ***: unknown command"
		if form[0] == '"' {
			want = "h:6379: AUTH `***` `\"***\"`: HELLO ***: unknown command"
		}
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%v", errors.Unwrap(err))} {
			if text != want && "h:6379: "+text != want {
				t.Errorf("%q is shown as %q", form, text)
			}
		}
		var path *fs.PathError
		if !errors.Is(err, cause) || !errors.As(err, &path) || errors.Unwrap(errors.Unwrap(err)) != nil {
			t.Error("the cause is lost, or can be printed")
		}
	}
	harmless := errors.New("unknown command")
	if Error(nil, "x") != nil || Error(harmless, "x") != harmless { //nolint:errorlint // the very error
		t.Error("what has no secret is another error")
	}
}
