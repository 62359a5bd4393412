package learn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/split"
)

// Limits on what is learnt from.
const (
	MaxWord    = 1 << 10 // bytes of a word: longer ones are hardly of a language
	maxWords   = 1 << 24 // distinct ones
	maxLetters = 1 << 29 // bytes of all distinct words
	maxLine    = 1 << 20 // bytes of a line; longer ones are cut
)

// Words counts the words of texts.
type Words struct {
	counts map[string]int64
	bytes  int // of all distinct words
}

// Distinct returns how many different words there are.
func (w *Words) Distinct() int { return len(w.counts) }

// Read counts the words of a text, which is UTF-8. Each line is cut by itself, with the end of the line, as Hugging Face's
// library cuts files. progress, if it is not nil, is told now and then how many bytes were read.
func (w *Words) Read(ctx context.Context, r io.Reader, progress func(bytes int64)) error {
	if w.counts == nil {
		w.counts = map[string]int64{}
	}
	cutter := split.ByteLevel{Regex: true, Raw: true}
	in, done := lines{src: r, buf: make([]byte, maxLine)}, int64(0)
	for number := 1; ; number++ {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !utf8.Valid(line) {
			return fmt.Errorf("line %d is not UTF-8: convert the file to UTF-8", number)
		}
		if err := cutter.Split(split.Piece{Text: string(line)}, w.add); err != nil {
			return err
		}
		if done += int64(len(line)); number%1024 == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if progress != nil {
				progress(done)
			}
		}
	}
}

// lines cuts what is read into lines, and those that are too long.
type lines struct {
	src      io.Reader
	buf      []byte
	from, to int   // of what was read and not given
	end      error // of src
}

// next returns a line with its end, which holds until the next call; io.EOF behind the last.
func (l *lines) next() ([]byte, error) {
	for seen := l.from; ; {
		if at := bytes.IndexByte(l.buf[seen:l.to], '\n'); at >= 0 {
			return l.take(seen + at + 1 - l.from), nil
		}
		seen = l.to
		switch {
		case l.to-l.from == len(l.buf):
			return l.take(cut(l.buf)), nil
		case errors.Is(l.end, io.EOF) && l.to > l.from:
			return l.take(l.to - l.from), nil
		case l.end != nil:
			return nil, l.end
		case l.to == len(l.buf):
			l.to = copy(l.buf, l.buf[l.from:l.to])
			l.from, seen = 0, l.to
		}
		var n int
		n, l.end = l.src.Read(l.buf[l.to:])
		l.to += n
	}
}

func (l *lines) take(n int) []byte {
	line := l.buf[l.from : l.from+n]
	l.from += n
	return line
}

// cut returns where a line that is too long is cut: before its last space, or else behind its last whole character.
func cut(line []byte) int {
	if at := bytes.LastIndexByte(line, ' '); at > 0 {
		return at
	}
	at := len(line) - 1
	for at > len(line)-utf8.UTFMax && !utf8.RuneStart(line[at]) {
		at--
	}
	return at
}

func (w *Words) add(p split.Piece) error {
	if len(p.Text) > MaxWord {
		return nil
	}
	if n, known := w.counts[p.Text]; known {
		w.counts[p.Text] = n + 1
		return nil
	}
	if w.bytes += len(p.Text); len(w.counts) >= maxWords || w.bytes > maxLetters {
		return fmt.Errorf("more than %d different words, or %d bytes of them: train on a part of the text", maxWords, maxLetters)
	}
	w.counts[strings.Clone(p.Text)] = 1 // which is part of a line
	return nil
}
