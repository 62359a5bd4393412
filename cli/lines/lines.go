// Package lines tells what roles do as lines of text, for people who look at no board.
//
// Make one [Lines] for all roles of a process with [To], and give its Event to those who observe them.
//
// Invariant: of a role that computes it tells at most one step in two seconds, and the last one of each unit.
//
// Source: node/events.
package lines

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/events"
)

// Lines tells events, each as a line. Safe for concurrent use.
type Lines struct {
	w        io.Writer
	mu       sync.Mutex
	computed map[string]time.Time    // when a role last told of its progress
	untold   map[string]events.Event // what it has told since
}

// pause is the least time between two lines about one provider's training.
const pause = 2 * time.Second

// To returns lines that are written to w.
func To(w io.Writer) *Lines {
	return &Lines{w: w, computed: map[string]time.Time{}, untold: map[string]events.Event{}}
}

// Event tells one.
func (l *Lines) Event(ev events.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if ev.Kind == events.Computed {
		if now.Sub(l.computed[ev.Role]) < pause {
			l.untold[ev.Role] = ev
			return
		}
		l.computed[ev.Role] = now
		delete(l.untold, ev.Role)
	}
	if last, ok := l.untold[ev.Role]; ok && ev.Kind == events.Posted && ev.Order == last.Order && ev.Unit == last.Unit {
		fmt.Fprintln(l.w, now.Format(time.TimeOnly), line(last)) // how far it came
		delete(l.untold, ev.Role)
	}
	fmt.Fprintln(l.w, now.Format(time.TimeOnly), line(ev))
}

// line writes an event in words.
func line(ev events.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %-9s", ev.Role, ev.Kind)
	if ev.Order != (canon.Hash{}) {
		fmt.Fprintf(&b, " order %s", ev.Order.Short())
	}
	if ev.Unit >= 0 && ev.Order != (canon.Hash{}) {
		fmt.Fprintf(&b, " unit %d", ev.Unit)
	}
	if ev.Kind == events.Computed {
		fmt.Fprintf(&b, " step %d", ev.Step)
		if ev.Loss != 0 { // of training
			fmt.Fprintf(&b, " loss %.4f", ev.Loss)
		}
		fmt.Fprintf(&b, " at %.1f steps/s", ev.Rate)
	}
	if ev.Text != "" {
		fmt.Fprintf(&b, " %s", ev.Text)
	}
	return b.String()
}

// Printable takes out of a text what is no letter or sign: in a stranger's words it may command the terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r == '\n' || r == '\t' {
			return r
		}
		return -1
	}, text)
}
