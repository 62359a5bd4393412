package tokenizer

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/chars"
	"github.com/tally-network/tally/format/tokenizer/model"
)

// finder finds added tokens: at each place the longest, from left to right.
type finder struct {
	trie   *model.Trie
	tokens []*Added
	starts [256]bool // bytes that some token starts with
}

func newFinder() *finder { return &finder{trie: model.NewTrie()} }

func (f *finder) add(form string, a *Added) error {
	if id, n := f.trie.Longest(form); n == len(form) {
		return errors.New("it looks like added token " + f.tokens[id].Content)
	}
	f.starts[form[0]] = true
	f.tokens = append(f.tokens, a)
	return f.trie.Add(form, int32(len(f.tokens)-1))
}

// next returns the first token that is found from a place on.
func (f *finder) next(text string, at int) (a *Added, start, end int) {
	for ; at < len(text); at++ {
		if !f.starts[text[at]] {
			continue
		}
		if id, n := f.trie.Longest(text[at:]); n > 0 {
			return f.tokens[id], at, at + n
		}
	}
	return nil, 0, 0
}

// split cuts a text at the tokens that are found. Between gets what is between them, found gets
// the tokens; both in the order of the text.
func (f *finder) split(text string, between func(from, to int) error, found func(a *Added)) error {
	from := 0
	for at := 0; len(f.tokens) > 0; {
		a, start, end := f.next(text, at)
		if a == nil {
			break
		}
		at = end
		if a.SingleWord && (endsWord(text[:start]) || startsWord(text[end:])) {
			continue
		}
		if a.StripLeft {
			start = max(len(strings.TrimRightFunc(text[:start], isSpace)), from)
		}
		if a.StripRight {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], isSpace))
		}
		if from < start {
			if err := between(from, start); err != nil {
				return err
			}
		}
		found(a)
		from = end
	}
	if from < len(text) {
		return between(from, len(text))
	}
	return nil
}

func isSpace(r rune) bool { return chars.In(r, chars.Of(chars.Space)) }

func endsWord(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && chars.In(r, chars.Of(chars.RustWord))
}

func startsWord(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && chars.In(r, chars.Of(chars.RustWord))
}
