package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// writeTime is how long a client may take to read what is sent to it at once.
const writeTime = 30 * time.Second

// Write sends a value as JSON.
func Write(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	if err := encoder(&b).Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // a test's writer has no deadlines
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	return err
}

func encoder(b *bytes.Buffer) *json.Encoder {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // it is read by programs, and replies are full of angle brackets
	return e
}

// Stream sends values one by one. Headers are sent with the first, so that until then a fault has a status.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	kind    string
	events  bool
	begun   bool
	out     bytes.Buffer
	json    *json.Encoder
}

// Events returns a stream of server-sent events.
func Events(w http.ResponseWriter) *Stream { return newStream(w, "text/event-stream", true) }

// Lines returns a stream of lines of JSON.
func Lines(w http.ResponseWriter) *Stream { return newStream(w, "application/x-ndjson", false) }

func newStream(w http.ResponseWriter, kind string, events bool) *Stream {
	s := &Stream{w: w, control: http.NewResponseController(w), kind: kind, events: events}
	s.json = encoder(&s.out)
	return s
}

// Begun reports whether something was sent.
func (s *Stream) Begun() bool { return s.begun }

// Send sends a value, under the name of an event if it has one.
func (s *Stream) Send(event string, v any) error {
	s.out.Reset()
	if event != "" {
		s.out.WriteString("event: " + event + "\n")
	}
	if s.events {
		s.out.WriteString("data: ")
	}
	if err := s.json.Encode(v); err != nil { // ends in a line feed
		return err
	}
	return s.flush()
}

// Done sends the mark by which OpenAI's streams end.
func (s *Stream) Done() error {
	s.out.Reset()
	s.out.WriteString("data: [DONE]\n")
	return s.flush()
}

func (s *Stream) flush() error {
	if s.events {
		s.out.WriteByte('\n')
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", s.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies shall pass each piece on
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.w.Write(s.out.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}
