package reply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/model/lm"
)

// Token is a token of a reply as clients see it.
type Token struct {
	ID        int32
	Text      string // that it adds; in it U+FFFD stands for bytes that make no character alone
	LogProb   float32
	Likeliest []Token // the likeliest, the greatest first
	Offset    int     // in the text, in bytes
}

// writer makes text of the tokens of one reply.
type writer struct {
	choice    int
	tokens    *tokenizer.Tokenizer
	stream    *tokenizer.Stream
	ends      []int32
	stops     []string
	markers   map[int32]string // special tokens that stand for themselves
	calls     *caller          // nil if there are no tools
	oneCall   bool
	likeliest *int

	held    string  // text that may begin a stop string
	came    int     // bytes of text so far, the held with it
	count   int     // tokens so far
	pending []Token // that are not given yet
	last    []int32 // the last token, after which the next is spelled
}

func newWriter(r *Run, choice int) *writer {
	t := r.Model.Tokenizer
	w := &writer{choice: choice, tokens: t, stream: t.Stream(true), ends: r.Model.Ends, stops: r.ask.Stops, likeliest: r.ask.Likeliest, oneCall: r.ask.OneCall}
	if c := r.ask.Chat; c != nil && len(c.Tools) > 0 {
		w.calls, w.markers = newCaller(c.Tools), map[int32]string{}
		for _, m := range callMarkers {
			if id, ok := t.ID(m); ok {
				w.markers[id] = m
			}
		}
	}
	return w
}

// push takes the next token and returns what is certain now.
func (w *writer) push(t lm.Token) (e Event, err error) {
	e.Choice = w.choice
	w.count++
	over := t.Reason != ""
	text := ""
	if ends := over && slices.Contains(w.ends, t.ID); !ends {
		if text, err = w.text(t.ID); err != nil {
			return e, err
		}
		if w.likeliest != nil {
			w.keep(t)
		}
	}
	if over {
		rest, err := w.stream.Flush()
		if err != nil {
			return e, fmt.Errorf("decode tokens: %w", err)
		}
		text += rest
	}
	w.held += text
	w.came += len(text)
	return w.give(e, t.Reason), nil
}

// text returns what a token adds to the text.
func (w *writer) text(id int32) (string, error) {
	marker, ok := w.markers[id]
	if !ok && int(id) >= w.tokens.Size() {
		return "", nil // weights may have more rows than there are tokens
	}
	if !ok {
		return w.stream.Push(id)
	}
	before, err := w.stream.Flush()
	w.stream = w.tokens.Stream(true)
	return before + marker, err
}

// give fills an event with the text that no stop string can begin in.
func (w *writer) give(e Event, reason lm.Reason) Event {
	end := End{Reason: Reason(reason), Tokens: w.count}
	sure := w.held
	if at, stop := firstStop(w.held, w.stops); stop != "" {
		end.Reason, end.Stop = Stop, stop
		sure = w.held[:at]
	} else if reason == "" {
		sure = w.held[:len(w.held)-partial(w.held, w.stops)]
	}
	given := w.came - len(w.held) + len(sure)
	w.held = w.held[len(sure):]
	e.Text = sure
	if w.calls != nil {
		e.Text, e.Calls = w.calls.push(sure)
	}
	if end.Reason != "" && w.calls != nil {
		text, calls := w.calls.close()
		e.Text, e.Calls = e.Text+text, append(e.Calls, calls...)
		if w.calls.count > 0 && end.Reason == Stop {
			end.Reason = Calls
		}
	}
	if w.oneCall && len(e.Calls) > 0 {
		e.Calls, end.Reason = e.Calls[:1], Calls
	}
	over := end.Reason != ""
	for len(w.pending) > 0 && (w.pending[0].Offset < given || over && end.Stop == "") {
		e.Tokens, w.pending = append(e.Tokens, w.pending[0]), w.pending[1:]
	}
	if over {
		e.End = &end
	}
	return e
}

// keep keeps the likelihoods of a token until its text is given.
func (w *writer) keep(t lm.Token) {
	s := Token{ID: t.ID, Text: w.spell(t.ID), LogProb: t.LogProb, Offset: w.came}
	for _, o := range t.Likeliest[:min(len(t.Likeliest), *w.likeliest)] {
		s.Likeliest = append(s.Likeliest, Token{ID: o.ID, Text: w.spell(o.ID), LogProb: o.LogProb})
	}
	w.pending = append(w.pending, s)
	w.last = []int32{t.ID}
}

// spell returns the text of a token after the last one, where it may begin with a space that it has not alone.
func (w *writer) spell(id int32) string {
	before, err := w.tokens.Decode(w.last, false)
	if err != nil {
		return ""
	}
	both, err := w.tokens.Decode(append(w.last[:len(w.last):len(w.last)], id), false)
	if err != nil {
		return ""
	}
	if text, ok := strings.CutPrefix(both, before); ok {
		return text
	}
	text, err := w.tokens.Decode([]int32{id}, false)
	if err != nil {
		return ""
	}
	return text
}

// firstStop returns where the stop string begins that ends first, and of several the longest. Read byte by byte, it is the one that
// would be found, wherever tokens begin.
func firstStop(text string, stops []string) (at int, stop string) {
	for _, s := range stops {
		i := strings.Index(text, s)
		if end, old := i+len(s), at+len(stop); i >= 0 && (stop == "" || end < old || end == old && i < at) {
			at, stop = i, s
		}
	}
	return at, stop
}

// partial returns the length of the longest end of a text that begins one of the patterns, and is not the whole of it.
func partial(text string, patterns []string) (longest int) {
	for _, p := range patterns {
		for n := min(len(p)-1, len(text)); n > longest; n-- {
			if strings.HasPrefix(p, text[len(text)-n:]) {
				longest = n
				break
			}
		}
	}
	return longest
}
