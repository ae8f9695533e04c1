package faultnet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of one reply, so that a broken server cannot make
// the parser recurse without end.
const maxDepth = 64

var errProtocol = errors.New("faultnet: not RESP")

// frame is one complete message of the server: a reply or a push.
type frame struct {
	raw  []byte
	kind byte   // type byte of the message, behind any attribute
	head string // first element of an array or push when it is a string
	next string // second element of an array or push when it is a string
}

// scanner reads whole RESP messages and keeps their exact bytes.
type scanner struct {
	r    *bufio.Reader
	raw  []byte
	next string // second element of the outermost aggregate
}

func newScanner(r io.Reader) *scanner { return &scanner{r: bufio.NewReaderSize(r, 16<<10)} }

// line reads up to and including "\r\n" and returns the line without it.
func (s *scanner) line() (string, error) {
	b, err := s.r.ReadBytes('\n')
	s.raw = append(s.raw, b...)
	if err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}

// bulk reads n bytes and the "\r\n" behind them.
func (s *scanner) bulk(n int64) (string, error) {
	var b bytes.Buffer // grows with what arrives, not with what a header claims
	if _, err := io.CopyN(&b, s.r, n+2); err != nil {
		return "", unexpected(err)
	}
	s.raw = append(s.raw, b.Bytes()...)
	if !bytes.HasSuffix(b.Bytes(), []byte("\r\n")) {
		return "", fmt.Errorf("%w: bulk string without line end", errProtocol)
	}
	return string(b.Bytes()[:n]), nil
}

func length(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < -1 || n > 512<<20 {
		return 0, fmt.Errorf("%w: length %q", errProtocol, s)
	}
	return n, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// request reads one client request. args is empty for the requests that a
// server ignores: an empty line, "*0" and "*-1".
func (s *scanner) request() (args []string, raw []byte, err error) {
	s.raw = nil
	l, err := s.line()
	if err != nil {
		if len(s.raw) > 0 {
			err = unexpected(err)
		}
		return nil, nil, err
	}
	if !strings.HasPrefix(l, "*") {
		args = strings.Fields(l) // an inline command, as typed into telnet
	} else {
		n, err := length(l[1:])
		if err != nil {
			return nil, nil, err
		}
		for range n {
			l, err := s.line()
			if err != nil {
				return nil, nil, unexpected(err)
			}
			if !strings.HasPrefix(l, "$") {
				return nil, nil, fmt.Errorf("%w: %q where an argument was due", errProtocol, l)
			}
			size, err := length(l[1:])
			if err != nil || size < 0 {
				return nil, nil, fmt.Errorf("%w: argument of length %q", errProtocol, l[1:])
			}
			arg, err := s.bulk(size)
			if err != nil {
				return nil, nil, err
			}
			args = append(args, arg)
		}
	}
	if len(args) > 0 {
		args[0] = strings.ToUpper(args[0])
	}
	return args, s.raw, nil
}

// frame reads one message of the server, with the attribute in front of it if
// there is one.
func (s *scanner) frame() (frame, error) {
	s.raw, s.next = nil, ""
	kind, head, err := s.value(0)
	if err != nil {
		if len(s.raw) > 0 {
			err = unexpected(err)
		}
		return frame{}, err
	}
	return frame{raw: s.raw, kind: kind, head: head, next: s.next}, nil
}

// value reads one value. text is the string that it is, or of an aggregate the
// string that its first element is.
func (s *scanner) value(depth int) (kind byte, text string, err error) {
	if depth > maxDepth {
		return 0, "", fmt.Errorf("%w: nested too deep", errProtocol)
	}
	l, err := s.line()
	if err != nil {
		return 0, "", err
	}
	if l == "" {
		return 0, "", fmt.Errorf("%w: empty line where a value was due", errProtocol)
	}
	kind, rest := l[0], l[1:]
	per := int64(1)
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return kind, rest, nil
	case '$', '=', '!':
		n, err := length(rest)
		if err != nil || n < 0 {
			return kind, "", err
		}
		text, err = s.bulk(n)
		return kind, text, err
	case '*', '~', '>':
	case '%', '|':
		per = 2
	default:
		return 0, "", fmt.Errorf("%w: a value starts with %q", errProtocol, kind)
	}
	n, err := length(rest)
	if err != nil {
		return 0, "", err
	}
	for i := range n * per {
		k, t, err := s.value(depth + 1)
		if err != nil {
			return 0, "", err
		}
		if k == '$' || k == '+' {
			switch {
			case i == 0:
				text = t
			case i == 1 && depth == 0:
				s.next = t
			}
		}
	}
	if kind == '|' { // an attribute belongs to the value that follows
		return s.value(depth + 1)
	}
	return kind, text, nil
}
