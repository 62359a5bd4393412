package text

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sizes of a vocabulary, token 0 included.
const (
	DefaultVocabulary = 256
	MaxVocabulary     = 1 << 15
)

// maxDistinct bounds the different characters of a text. Natural language,
// whatever the script, has far fewer; binary data has more.
const maxDistinct = 1 << 16

// Unknown is the token of characters outside the vocabulary.
const Unknown = 0

// Tokenizer is a vocabulary of characters.
type Tokenizer struct {
	runes []rune // of tokens 1, 2, 3, …; ascending
	ids   map[rune]int32
}

// Train returns the tokenizer of at most size tokens, token 0 included, for the
// most frequent characters of the training text. Between equally frequent ones
// the smaller code point wins.
func Train(text string, size int) (*Tokenizer, error) {
	if size < 2 || size > MaxVocabulary {
		return nil, fmt.Errorf("train tokenizer: a vocabulary of %d, take 2 to %d", size, MaxVocabulary)
	}
	if err := check(text); err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	count := map[rune]int{}
	for _, r := range text {
		count[r]++
		if len(count) > maxDistinct {
			return nil, fmt.Errorf("train tokenizer: more than %d different characters, which is not text in a language", maxDistinct)
		}
	}
	runes := slices.SortedFunc(maps.Keys(count), func(a, b rune) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	runes = runes[:min(len(runes), size-1)]
	slices.Sort(runes)
	return newTokenizer(runes), nil
}

func newTokenizer(runes []rune) *Tokenizer {
	t := &Tokenizer{runes: runes, ids: make(map[rune]int32, len(runes))}
	for i, r := range runes {
		t.ids[r] = int32(i + 1)
	}
	return t
}

// Size returns the number of tokens, token 0 included.
func (t *Tokenizer) Size() int { return len(t.runes) + 1 }

// Encode returns the token of each character of the text.
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	if err := check(text); err != nil {
		return nil, fmt.Errorf("encode text: %w", err)
	}
	ids := make([]int32, 0, utf8.RuneCountInString(text))
	for _, r := range text {
		ids = append(ids, t.ids[r])
	}
	return ids, nil
}

// Decode returns the text of the tokens. Token 0 becomes U+FFFD.
func (t *Tokenizer) Decode(ids []int32) (string, error) {
	var b strings.Builder
	b.Grow(len(ids))
	for i, id := range ids {
		switch {
		case id == Unknown:
			b.WriteRune(utf8.RuneError)
		case id < 0 || int(id) > len(t.runes):
			return "", fmt.Errorf("decode tokens: token %d at place %d, the vocabulary has 0 to %d", id, i, len(t.runes))
		default:
			b.WriteRune(t.runes[id-1])
		}
	}
	return b.String(), nil
}

// check returns an error unless the text is not empty and is UTF-8.
func check(text string) error {
	if text == "" {
		return errors.New("the text is empty")
	}
	if utf8.ValidString(text) {
		return nil
	}
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return fmt.Errorf("byte %d of the text is not UTF-8: convert the file to UTF-8", i)
		}
	}
	return nil
}
