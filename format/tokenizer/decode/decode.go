// Package decode turns tokens back into text, as the decoders of tokenizer files do.
//
// Call [Start] with decoders, then [Run.Push] for each token and [Run.Flush] at the end. Each type
// is the decoder of that name in Hugging Face's files. Text comes out as soon as no later
// token can change it.
//
// Invariants: what is put out is UTF-8. A character whose bytes are spread over tokens comes out
// whole. All that was put out, together, is what the reference decodes of the same tokens.
// There is one exception, see [ByteFallback].
//
// Source: github.com/huggingface/tokenizers.
package decode

import (
	"strings"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/normalize"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// Put takes a part of the text.
type Put func(text string)

// Decoder is one step from tokens to text.
type Decoder interface {
	// start returns the step for one text. Fused says that what comes in is one token, in parts.
	start(fused bool) stage
}

// stage is a decoder at work.
type stage interface {
	push(token string, put Put) error
	flush(put Put) error
	fuses() bool // what it puts out is one token, in parts
}

// Run decodes one text.
type Run struct {
	stages []stage
	out    strings.Builder
	puts   []Put // of each stage: into the next one
	err    error
}

// Start begins a text. Without decoders tokens are joined by spaces.
func Start(decoders []Decoder) *Run {
	r := &Run{}
	if len(decoders) == 0 {
		decoders = []Decoder{spaced{}}
	}
	fused := false
	for _, d := range decoders {
		s := d.start(fused)
		fused = fused || s.fuses()
		r.stages = append(r.stages, s)
	}
	for i := range r.stages {
		r.puts = append(r.puts, func(text string) { r.pass(i+1, text) })
	}
	return r
}

// pass gives a token to a stage, or puts it out behind the last one.
func (r *Run) pass(i int, token string) {
	if i == len(r.stages) {
		r.out.WriteString(token)
	} else if err := r.stages[i].push(token, r.puts[i]); err != nil && r.err == nil {
		r.err = err
	}
}

// take returns what was put out.
func (r *Run) take() (string, error) {
	text := r.out.String()
	r.out.Reset()
	return text, r.err
}

// Push takes the next token, and returns the text that is certain now.
func (r *Run) Push(token string) (string, error) {
	r.pass(0, token)
	return r.take()
}

// Flush returns the text that is left.
func (r *Run) Flush() (string, error) {
	for i, s := range r.stages {
		if err := s.flush(r.puts[i]); err != nil && r.err == nil {
			r.err = err
		}
	}
	return r.take()
}

// each changes every token alone.
type each struct {
	change func(token string, first bool) (string, error)
	later  bool // not the first token any more
}

func (e *each) push(token string, put Put) error {
	text, err := e.change(token, !e.later)
	e.later = true
	put(text)
	return err
}

func (e *each) flush(Put) error { return nil }
func (e *each) fuses() bool     { return false }

// whole collects what is one token, and changes it at the end.
type whole struct {
	each
	text strings.Builder
}

func (w *whole) push(token string, _ Put) error {
	w.text.WriteString(token)
	return nil
}

func (w *whole) flush(put Put) error { return w.each.push(w.text.String(), put) }
func (w *whole) fuses() bool         { return true }

func startEach(fused bool, change func(token string, first bool) (string, error)) stage {
	if fused {
		return &whole{each: each{change: change}}
	}
	return &each{change: change}
}

// spaced joins tokens by spaces.
type spaced struct{}

func (spaced) start(fused bool) stage {
	return startEach(fused, func(token string, first bool) (string, error) {
		if first {
			return token, nil
		}
		return " " + token, nil
	})
}

// Fuse makes one token of all.
type Fuse struct{}

func (Fuse) start(bool) stage { return fuse{} }

type fuse struct{}

func (fuse) push(token string, put Put) error { put(token); return nil }
func (fuse) flush(Put) error                  { return nil }
func (fuse) fuses() bool                      { return true }

// Replace replaces in each token.
type Replace struct{ normalize.Replace }

func (r Replace) start(fused bool) stage {
	return startEach(fused, func(token string, _ bool) (string, error) { return r.Normalize(token) })
}

// WordPiece joins subwords, and puts spaces between words.
type WordPiece struct {
	Prefix  string // of a subword that continues a word
	Cleanup bool   // no spaces before punctuation, and in English contractions
}

// cleanups are what is replaced, in this order, and by what.
var cleanups = [...][2]string{
	{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"},
	{" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
}

func (w WordPiece) start(fused bool) stage {
	return startEach(fused, func(token string, first bool) (string, error) {
		if !first {
			if bare, ok := strings.CutPrefix(token, w.Prefix); ok {
				token = bare
			} else {
				token = " " + token
			}
		}
		for i := 0; w.Cleanup && i < len(cleanups); i++ {
			token = strings.ReplaceAll(token, cleanups[i][0], cleanups[i][1])
		}
		return token, nil
	})
}

// Metaspace makes spaces of signs; in the first token it removes them.
type Metaspace struct {
	Sign   string
	Scheme split.Scheme
}

func (m Metaspace) start(fused bool) stage {
	return startEach(fused, func(token string, first bool) (string, error) {
		space := " "
		if first && m.Scheme != split.Never {
			space = ""
		}
		return strings.ReplaceAll(token, m.Sign, space), nil
	})
}

// BPE makes spaces of the suffix that ends words; in the last token it removes it.
type BPE struct{ Suffix string }

func (b BPE) start(fused bool) stage {
	if fused {
		return startEach(true, func(token string, _ bool) (string, error) { return strings.ReplaceAll(token, b.Suffix, ""), nil })
	}
	return &lastToken{suffix: b.Suffix}
}

// lastToken holds a token until another one comes.
type lastToken struct {
	suffix string
	held   bool
	token  string
}

func (l *lastToken) push(token string, put Put) error {
	if l.held {
		put(strings.ReplaceAll(l.token, l.suffix, " "))
	}
	l.held, l.token = true, token
	return nil
}

func (l *lastToken) flush(put Put) error {
	if l.held {
		put(strings.ReplaceAll(l.token, l.suffix, ""))
	}
	return nil
}

func (l *lastToken) fuses() bool { return false }

// Strip removes some of a character at the ends of each token.
type Strip struct {
	Content     rune
	Start, Stop int // how many
}

func (s Strip) start(fused bool) stage {
	if fused {
		return &strip{Strip: s, left: s.Start}
	}
	return startEach(false, func(token string, _ bool) (string, error) {
		one := string(s.Content)
		for range s.Start {
			bare, ok := strings.CutPrefix(token, one)
			if !ok {
				break
			}
			token = bare
		}
		for range s.Stop {
			bare, ok := strings.CutSuffix(token, one)
			if !ok {
				break
			}
			token = bare
		}
		return token, nil
	})
}

// strip removes characters at the ends of what comes in parts.
type strip struct {
	Strip
	left int    // how many may still go at the start
	held string // characters that may be at the end
}

func (s *strip) push(token string, put Put) error {
	one := string(s.Content)
	for s.left > 0 && token != "" {
		bare, ok := strings.CutPrefix(token, one)
		if !ok {
			s.left = 0
			break
		}
		token = bare
		s.left--
	}
	text := s.held + token
	end := len(text)
	for range s.Stop {
		if !strings.HasSuffix(text[:end], one) {
			break
		}
		end -= len(one)
	}
	s.held = text[end:]
	put(text[:end])
	return nil
}

func (s *strip) flush(Put) error { return nil }
func (s *strip) fuses() bool     { return true }

// ByteLevel makes bytes of the characters that stand for them. A token with others stands for
// itself. What is no UTF-8 becomes U+FFFD.
type ByteLevel struct{}

func (ByteLevel) start(bool) stage { return &byteLevel{} }

type byteLevel struct{ held []byte }

func (b *byteLevel) push(token string, put Put) error {
	if bytes, ok := split.FromBytes(token); ok {
		token = bytes
	}
	b.held = append(b.held, token...)
	text, rest := complete(b.held)
	b.held = append(b.held[:0], rest...)
	if text != "" {
		put(text)
	}
	return nil
}

func (b *byteLevel) flush(put Put) error {
	if len(b.held) > 0 {
		put("\ufffd") // it has begun one character
	}
	b.held = nil
	return nil
}

func (b *byteLevel) fuses() bool { return true }

// complete returns the text of bytes, and the bytes at their end that begin a character.
// For each longest beginning of a character that is cut short there is one U+FFFD, and for each
// other byte that is not UTF-8.
func complete(b []byte) (text string, rest []byte) {
	if utf8.Valid(b) {
		return string(b), nil
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			out.Write(b[:n])
			b = b[n:]
			continue
		}
		n = beginning(b)
		if n == len(b) && !utf8.FullRune(b) {
			return out.String(), b
		}
		out.WriteString("\ufffd")
		b = b[n:]
	}
	return out.String(), nil
}

// beginning returns the length of the longest beginning of a character, at least 1.
func beginning(b []byte) int {
	n := 1
	for n < len(b) && n < utf8.UTFMax && !utf8.FullRune(b[:n]) {
		if _, size := utf8.DecodeRune(b[:n+1]); utf8.FullRune(b[:n+1]) && size == 1 {
			break // the next byte does not go on
		}
		n++
	}
	return n
}

// ByteFallback makes bytes of tokens <0x00> to <0xFF>. Bytes beside each other that are not UTF-8
// become one U+FFFD each; characters before the first such byte have already come
// out whole, where the reference has U+FFFD for their bytes too. Set Exact to wait for the
// end of the bytes and do as it does.
type ByteFallback struct{ Exact bool }

func (f ByteFallback) start(bool) stage { return &byteFallback{exact: f.Exact} }

type byteFallback struct {
	exact  bool
	broken bool // what is held is not UTF-8, whatever comes
	held   []byte
}

func (f *byteFallback) push(token string, put Put) error {
	if b, ok := fallback(token); ok {
		f.held = append(f.held, b)
		if f.exact || f.broken || !utf8.FullRune(f.held) {
			return nil
		}
		if f.broken = !utf8.Valid(f.held); !f.broken {
			put(string(f.held))
			f.held = f.held[:0]
		}
		return nil
	}
	err := f.flush(put)
	put(token)
	return err
}

func (f *byteFallback) flush(put Put) error {
	if utf8.Valid(f.held) {
		if len(f.held) > 0 {
			put(string(f.held))
		}
	} else {
		for range f.held {
			put("\ufffd")
		}
	}
	f.held, f.broken = f.held[:0], false
	return nil
}

func (f *byteFallback) fuses() bool { return false }
