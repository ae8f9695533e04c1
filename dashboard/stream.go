package dashboard

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

const (
	beat        = 15 * time.Second // after which a browser hears something at the latest; app.js knows it
	mostSending = 10 * time.Second // for which a browser may not take what it is sent
)

// stream sends the parts of a page that are not as they were, after each look,
// until the browser or the handler ends it. A browser that is slow gets the latest
// look, and not those in between.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, q query) {
	v, err := h.watch.attach(q.name)
	if err != nil {
		unavailable(w, err)
		return
	}
	defer h.watch.detach(v)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not keep it back
	if r.Method == http.MethodHead {
		return
	}
	to := sender{w: w, flush: http.NewResponseController(w), sent: map[string]string{}}
	_ = to.flush.SetReadDeadline(time.Time{}) // a server's ReadTimeout would end it
	alive := time.NewTicker(beat)
	defer alive.Stop()
	text := to.changes(h, q)
	if text != "" {
		text = "retry: 2000\n\n" + text
	}
	for text != "" && to.send(text) {
		select {
		case <-r.Context().Done():
			return
		case <-h.watch.ctx.Done():
			return
		case <-alive.C:
			text = "event: alive\ndata:\n\n"
		case <-v.changed:
			text = to.changes(h, q)
		}
	}
}

// A sender sends events.
type sender struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	sent  map[string]string
}

// changes is an event with the parts that are not as they were.
func (to *sender) changes(h *Handler, q query) string {
	parts := h.parts(q)
	for id, text := range parts {
		if to.sent[id] == text {
			delete(parts, id)
		} else {
			to.sent[id] = text
		}
	}
	var event strings.Builder
	event.WriteString("event: look\ndata: ")
	e := json.NewEncoder(&event)
	e.SetEscapeHTML(false)                  // the parts are full of it
	if err := e.Encode(parts); err != nil { // in one line, and its end
		return ""
	}
	event.WriteString("\n")
	return event.String()
}

// send says whether a text was sent.
func (to *sender) send(text string) bool {
	_ = to.flush.SetWriteDeadline(time.Now().Add(mostSending)) // if there is such a thing
	if _, err := to.w.Write([]byte(text)); err != nil {
		return false
	}
	err := to.flush.Flush()
	_ = to.flush.SetWriteDeadline(time.Time{}) // with HTTP/2 it would end the stream, even if nobody writes
	return err == nil
}

// parts are those of a page that change, by their ids.
func (h *Handler) parts(q query) map[string]string {
	v, texts := h.view(q), make(map[string]string, len(parts))
	for id, draw := range parts {
		var w writer
		draw(&w, v)
		texts[id] = w.String()
	}
	return texts
}
