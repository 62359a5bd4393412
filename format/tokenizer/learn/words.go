package learn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	in, done := bufio.NewReaderSize(r, maxLine), int64(0)
	for number := 1; ; number++ {
		line, err := in.Peek(maxLine)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		} else if err == nil {
			line = line[:cut(line)]
		}
		if len(line) == 0 {
			return nil
		}
		if !utf8.Valid(line) {
			return fmt.Errorf("line %d is not UTF-8: convert the file to UTF-8", number)
		}
		if err := cutter.Split(split.Piece{Text: string(line)}, w.add); err != nil {
			return err
		}
		if _, err := in.Discard(len(line)); err != nil {
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
	w.counts[p.Text] = 1
	return nil
}
