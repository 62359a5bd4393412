// Package normalize changes text before it is split, as tokenizer files say.
//
// Call [Normalizer.Normalize] of one of the types here; [Sequence] applies several. Each type
// is the normalizer of that name in Hugging Face's files.
//
// Invariants: text in UTF-8 stays so; every result is that of the reference implementation,
// whose version of Unicode is older than Go's. Code points that it does not know are
// left as they are, see [Form].
//
// Source: github.com/huggingface/tokenizers; Unicode Standard Annex 15.
package normalize

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tally-network/tally/format/tokenizer/chars"
	"github.com/tally-network/tally/format/tokenizer/pattern"
)

// Normalizer changes a text. It may be used by several goroutines.
type Normalizer interface {
	Normalize(text string) (string, error)
}

// Sequence applies normalizers in their order.
type Sequence []Normalizer

// Normalize applies them.
func (s Sequence) Normalize(text string) (string, error) {
	var err error
	for _, n := range s {
		if text, err = n.Normalize(text); err != nil {
			return "", err
		}
	}
	return text, nil
}

// Form is one of Unicode's normalization forms.
type Form uint8

// The forms.
const (
	NFC Form = iota
	NFD
	NFKC
	NFKD
)

// Normalize returns the form of a text. A code point that package norm changes, and the
// reference does not, ends what is normalized before it.
func (f Form) Normalize(text string) (string, error) {
	form := [...]norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD}[f]
	if isASCII(text) {
		return text, nil
	}
	table := chars.Load()
	normal := chars.Of(chars.Normal)
	var b strings.Builder
	from := 0
	for at, r := range text {
		if r < utf8.RuneSelf || table.Of(r)&normal != 0 {
			continue
		}
		n := utf8.RuneLen(r)
		p := norm.NFKC.PropertiesString(text[at : at+n])
		if p.BoundaryBefore() && p.CCC() == 0 && p.Decomposition() == nil {
			continue
		}
		b.WriteString(form.String(text[from:at]))
		from = at + n
		b.WriteString(text[at:from])
	}
	if from == 0 {
		return form.String(text), nil
	}
	b.WriteString(form.String(text[from:]))
	return b.String(), nil
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Lowercase puts each code point in lower case.
type Lowercase struct{}

// Normalize returns the text in lower case.
func (Lowercase) Normalize(text string) (string, error) { return chars.ToLower(text), nil }

// StripAccents removes combining marks that stand as code points of their own.
type StripAccents struct{}

// Normalize removes them.
func (StripAccents) Normalize(text string) (string, error) {
	return without(text, chars.Combining), nil
}

// without removes what is of a class.
func without(text string, c chars.Class) string {
	if isASCII(text) && c != chars.Control {
		return text
	}
	table := chars.Load()
	class := chars.Of(c)
	return strings.Map(func(r rune) rune {
		if table.Of(r)&class != 0 {
			return -1
		}
		return r
	}, text)
}

// Bert cleans text for BERT.
type Bert struct {
	Clean     bool // removes control characters, and makes all white space spaces
	Chinese   bool // puts spaces around Chinese characters
	Accents   bool // removes accents
	Lowercase bool // puts all in lower case
}

// Normalize cleans the text.
func (n Bert) Normalize(text string) (string, error) {
	if n.Clean {
		text = clean(text)
	}
	if n.Chinese && !isASCII(text) {
		text = spaced(text)
	}
	if n.Accents {
		decomposed, err := NFD.Normalize(text)
		if err != nil {
			return "", err
		}
		text = without(decomposed, chars.Nonspacing)
	}
	if n.Lowercase {
		text = chars.ToLower(text)
	}
	return text, nil
}

func clean(text string) string {
	table := chars.Load()
	control, space := chars.Of(chars.Control), chars.Of(chars.Space)
	return strings.Map(func(r rune) rune {
		switch of := table.Of(r); {
		case of&control != 0:
			return -1
		case of&space != 0:
			return ' '
		}
		return r
	}, text)
}

// chinese are the ranges of Chinese characters, as BERT counts them.
var chinese = [...][2]rune{
	{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f},
}

func spaced(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		around := false
		for _, c := range chinese {
			around = around || c[0] <= r && r <= c[1]
		}
		if around {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		if around {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// Replace puts a text in place of every match.
type Replace struct {
	Old     string           // what is replaced, unless
	Pattern *pattern.Pattern // says it
	New     string
}

// Normalize replaces.
func (n Replace) Normalize(text string) (string, error) {
	if n.Pattern == nil {
		if n.Old == "" {
			return "", fmt.Errorf("replace by %.20q: the text to replace is empty", n.New)
		}
		if err := n.fits(len(text), strings.Count(text, n.Old)); err != nil {
			return "", err
		}
		return strings.ReplaceAll(text, n.Old, n.New), nil
	}
	var b strings.Builder
	m := n.Pattern.Match(text)
	for at := 0; ; {
		start, end, found, err := m.Next(at)
		if err != nil {
			return "", err
		}
		if !found && at == 0 {
			return text, nil
		}
		if !found {
			b.WriteString(text[at:])
			return b.String(), nil
		}
		b.WriteString(text[at:start])
		b.WriteString(n.New)
		if err := n.fits(b.Len(), 0); err != nil {
			return "", err
		}
		at = end
	}
}

// maxText bounds what a text becomes, in bytes: a tokenizer is a stranger's, and may make much of little.
const maxText = 64 << 20

// fits fails if a text of so many bytes is too long once so many matches are replaced.
func (n Replace) fits(bytes, matches int) error {
	if bytes > maxText || matches > 0 && len(n.New) > (maxText-bytes)/matches {
		return fmt.Errorf("replace by %.20q: the text becomes longer than %d bytes", n.New, maxText)
	}
	return nil
}

// Prepend puts a text before every text that is not empty.
type Prepend struct{ Text string }

// Normalize puts it there.
func (n Prepend) Normalize(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if len(text)+len(n.Text) > maxText {
		return "", fmt.Errorf("prepend %.20q: the text becomes longer than %d bytes", n.Text, maxText)
	}
	return n.Text + text, nil
}

// Strip removes white space at the ends.
type Strip struct{ Left, Right bool }

// Normalize removes it.
func (n Strip) Normalize(text string) (string, error) {
	if n.Left {
		text = strings.TrimLeftFunc(text, isSpace)
	}
	if n.Right {
		text = strings.TrimRightFunc(text, isSpace)
	}
	return text, nil
}

func isSpace(r rune) bool { return chars.In(r, chars.Of(chars.Space)) }

// Nmt is the cleaning of sentencepiece's rule nmt.
type Nmt struct{}

// Normalize removes control characters, and makes spaces of other white space.
func (Nmt) Normalize(text string) (string, error) {
	return strings.Map(func(r rune) rune {
		switch {
		case 1 <= r && r <= 8, r == 0xb, 0xe <= r && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
			return -1
		case r == 9, r == 0xa, r == 0xc, r == 0xd, r == 0x1680, 0x200b <= r && r <= 0x200f, r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
			return ' '
		}
		return r
	}, text), nil
}
