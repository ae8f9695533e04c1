package dashboard

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// A markup is HTML of ours. Texts of others are strings, which no function here
// takes for it.
type markup string

// A writer writes HTML.
type writer struct{ strings.Builder }

// put writes markup in which a % stands for each of the texts. They are escaped,
// for a place between tags or between the quotes of an attribute.
func (w *writer) put(m markup, texts ...any) {
	parts := strings.Split(string(m), "%")
	if len(parts) != len(texts)+1 {
		panic(fmt.Sprintf("dashboard: %d texts for %q", len(texts), string(m)))
	}
	for i, part := range parts {
		w.WriteString(part)
		if i < len(texts) {
			w.text(texts[i])
		}
	}
}

// text writes a text or a number.
func (w *writer) text(v any) {
	switch v := v.(type) {
	case markup:
		w.WriteString(string(v))
	case int:
		w.WriteString(strconv.Itoa(v))
	case float64:
		w.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	default:
		w.WriteString(html.EscapeString(fmt.Sprint(v)))
	}
}

// putIf writes markup if the text is not empty.
func (w *writer) putIf(m markup, text string) {
	if text != "" {
		w.put(m, text)
	}
}

// when returns markup if so, and else nothing.
func when(so bool, m markup) markup {
	if so {
		return m
	}
	return ""
}
