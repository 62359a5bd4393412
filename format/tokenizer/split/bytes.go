package split

import "strings"

// byteRunes are the characters that stand for bytes; runeBytes are what characters stand for, from
// the first on, or -1. Printable characters of Latin 1 stand for themselves, and the
// others for those from U+0100 on.
var (
	byteRunes [256]rune
	runeBytes [324]int16
)

func init() {
	for i := range runeBytes {
		runeBytes[i] = -1
	}
	next := rune(256)
	for b := range byteRunes {
		r := rune(b)
		if !('!' <= b && b <= '~' || 0xa1 <= b && b <= 0xac || 0xae <= b) {
			r = next
			next++
		}
		byteRunes[b] = r
		runeBytes[r] = int16(b)
	}
}

// ByteRune returns the character that stands for a byte.
func ByteRune(b byte) rune { return byteRunes[b] }

// RuneByte returns the byte that a character stands for.
func RuneByte(r rune) (byte, bool) {
	if r < 0 || int(r) >= len(runeBytes) || runeBytes[r] < 0 {
		return 0, false
	}
	return byte(runeBytes[r]), true
}

// ToBytes writes a text in characters that stand for its bytes.
func ToBytes(text string) string {
	var b strings.Builder
	b.Grow(len(text) * 2)
	for i := range len(text) {
		b.WriteRune(byteRunes[text[i]])
	}
	return b.String()
}

// FromBytes returns the bytes that a text stands for, if all its characters stand for some.
func FromBytes(text string) (string, bool) {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		c, ok := RuneByte(r)
		if !ok {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}

// ByteLevel writes text in characters that stand for bytes.
type ByteLevel struct {
	PrefixSpace bool // puts a space before a piece that starts with none
	Regex       bool // cuts by GPT-2's expression first
	Raw         bool // leaves the bytes as they are, for a model that knows
}

// Split cuts a piece.
func (l ByteLevel) Split(p Piece, yield Yield) error {
	if l.PrefixSpace && !strings.HasPrefix(p.Text, " ") {
		p.Text = " " + p.Text
	}
	out := yield
	if !l.Raw {
		out = func(p Piece) error { return yield(Piece{Text: ToBytes(p.Text), First: p.First}) }
	}
	if l.Regex {
		return scanner(scanGPT2).split(p, out)
	}
	return out(p)
}
