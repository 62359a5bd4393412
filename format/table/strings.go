package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// Strings are texts in one piece of alloc: eight bytes a text beside their own.
type Strings struct {
	text  []byte
	ends  []int
	alloc tensor.Allocator // of the texts
	owner any              // of text
}

// Len returns how many there are.
func (s *Strings) Len() int { return len(s.ends) }

// At returns text i as a view. It is valid while the column is held: clone what outlives it.
func (s *Strings) At(i int) string { return view(s.bytes(i)) }

func (s *Strings) bytes(i int) []byte {
	from := 0
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.text[from:s.ends[i]]
}

// Append adds a copy of a text.
func (s *Strings) Append(b []byte) error {
	if s.alloc != nil && len(b) > cap(s.text)-len(s.text) {
		room, owner, err := s.alloc(max(2*cap(s.text), len(s.text)+len(b), leastText))
		if err != nil {
			return err
		}
		s.text, s.owner = room[:copy(room, s.text)], owner
	}
	s.text = append(s.text, b...)
	s.ends = append(s.ends, len(s.text))
	return nil
}

// leastText is how many bytes are allocated at least.
const leastText = 1 << 20

// view returns bytes that nobody changes any more as a string.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// inferredCategories is how many different texts a column has at most that is taken for a category.
const inferredCategories = 1000

// TextBuilder gathers the texts of a column, record by record. As long as few differ it keeps
// each once.
type TextBuilder struct {
	kind    Kind           // 0: to be found out
	values  *tensor.Tensor // room for codes
	codes   []int32
	words   []string // by code
	slots   []int32  // a code and 1 by the hash of its word, or the next place that is free
	seed    maphash.Seed
	recent  [256][2]recent // by the ends of words, two that share a place
	room    int            // bytes of text that there may be
	texts   Strings        // once there are too many words
	many    bool
	missing []int32
	n       int
}

// NewTextBuilder returns the builder of a Text or a Category, or of what is one of the two by
// what it holds: see [TextBuilder.Column]. It has room for some records, and may take as many bytes of
// Go's memory for their texts at once; they lie in the memory that is given.
func NewTextBuilder(kind Kind, records, bytes int, alloc tensor.Allocator) *TextBuilder {
	b := &TextBuilder{kind: kind, many: kind == Text, room: bytes, texts: Strings{alloc: alloc}}
	if b.many {
		b.texts.ends = make([]int, 0, records)
	} else {
		b.slots, b.seed = make([]int32, 64), maphash.MakeSeed()
		if values, err := alloc.New(tensor.Int32, tensor.Shape{records}); err == nil { // else there is room once it is needed
			b.values, b.codes = values, tensor.Of[int32](values)[:0]
		}
	}
	return b
}

// recent is a word that was found last of those with a hash of its ends.
type recent struct {
	Ends
	code int32
}

// Ends are the first and the last bytes of a text. Below sixteen bytes they are all of it: bytes 0 to 7, and
// 8 to 14, the low ones first, with zeros behind them; the highest byte of the second word is their number and 1.
type Ends struct{ first, last uint64 }

// long stands instead of the number of bytes of a text that has more.
const long = 0xff << 56

// endsOf returns those of a text.
func endsOf(text []byte) Ends {
	n := len(text)
	if n >= 16 {
		return Ends{binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[n-8:]) | long}
	}
	var padded [16]byte
	copy(padded[:], text)
	return ShortEnds(binary.LittleEndian.Uint64(padded[:]), binary.LittleEndian.Uint64(padded[8:]), n)
}

// slot is the place of a word in recent.
func (e Ends) slot() byte {
	return byte((e.first ^ bits.RotateLeft64(e.last, 29)) * 0x9e3779b97f4a7c15 >> 56)
}

// ShortEnds returns those of a text of fewer than sixteen bytes, of which the first eight and the others are words.
func ShortEnds(first, others uint64, n int) Ends { return Ends{first, others | uint64(n+1)<<56} }

// AppendKnown adds the text of up to fifteen bytes that has these ends, if one like it came not long ago. It reports whether.
func (b *TextBuilder) AppendKnown(e Ends) bool {
	near := &b.recent[e.slot()]
	known := &near[0]
	if known.Ends != e {
		known = &near[1]
	}
	if known.Ends != e || len(b.codes) == cap(b.codes) || b.many {
		return false
	}
	b.codes = append(b.codes, known.code)
	b.n++
	return true
}

// find returns the code of a word, and where it would stand: −1, if it is new.
func (b *TextBuilder) find(word []byte) (code int32, slot int) {
	slot = int(maphash.Bytes(b.seed, word)) & (len(b.slots) - 1)
	for ; ; slot = (slot + 1) & (len(b.slots) - 1) {
		if code = b.slots[slot] - 1; code < 0 || b.words[code] == string(word) {
			return code, slot
		}
	}
}

// add gives a new word a code.
func (b *TextBuilder) add(word string, slot int) int32 {
	b.words = append(b.words, word)
	code := int32(len(b.words))
	b.slots[slot] = code
	if 2*len(b.words) > len(b.slots) {
		b.slots = make([]int32, 2*len(b.slots))
		for i, w := range b.words {
			_, slot := b.find([]byte(w))
			b.slots[slot] = int32(i + 1)
		}
	}
	return code - 1
}

// Append adds a copy of a text.
func (b *TextBuilder) Append(text []byte) error {
	b.n++
	if b.many {
		return b.texts.Append(text)
	}
	ends := endsOf(text)
	near := &b.recent[ends.slot()]
	for _, known := range near {
		if known.Ends == ends && (ends.last < long || b.words[known.code] == string(text)) {
			b.codes = append(b.codes, known.code)
			return nil
		}
	}
	code, slot := b.find(text)
	if code < 0 {
		if b.kind == Category && len(b.words) == MaxCategories {
			return fmt.Errorf("more than %d different texts are no category: read the column as text", MaxCategories)
		}
		if b.kind != Category && len(b.words) == inferredCategories {
			if err := b.spread(); err != nil {
				return err
			}
			return b.texts.Append(text)
		}
		code = b.add(string(text), slot)
	}
	near[0], near[1] = recent{ends, code}, near[0]
	b.codes = append(b.codes, code)
	return nil
}

// Dictionary are texts that columns name by their numbers. They must not change.
type Dictionary struct {
	Words [][]byte
	codes []int32 // a code and 1, where it is known
}

// AppendNamed adds a copy of each text that a dictionary has by these numbers, which must lie in it. All
// appends by one dictionary go to one builder.
func (b *TextBuilder) AppendNamed(d *Dictionary, numbers []uint32) error {
	if d.codes == nil {
		d.codes = make([]int32, len(d.Words))
	}
	for _, n := range numbers {
		if code := d.codes[n] - 1; code >= 0 && !b.many {
			b.codes = append(b.codes, code)
			b.n++
			continue
		}
		if err := b.Append(d.Words[n]); err != nil {
			return err
		}
		if !b.many {
			d.codes[n] = b.codes[len(b.codes)-1] + 1
		}
	}
	return nil
}

// AppendMissing adds a record without a text.
func (b *TextBuilder) AppendMissing() error {
	if b.n >= math.MaxInt32 {
		return errors.New("too many records: split the file")
	}
	b.missing = append(b.missing, int32(b.n))
	b.n++
	if b.many {
		return b.texts.Append(nil)
	}
	b.codes = append(b.codes, -1)
	return nil
}

// spread turns codes into texts.
func (b *TextBuilder) spread() error {
	size := 0
	for _, w := range b.words {
		size += len(w)
	}
	b.texts.ends = make([]int, 0, cap(b.codes))
	guess := float64(size) / float64(len(b.words)) * float64(cap(b.codes)) * 9 / 8 // as if those to come were as long
	if b.texts.alloc == nil {
		b.texts.text = make([]byte, 0, int(min(float64(b.room), guess)))
	}
	for _, code := range b.codes {
		word := ""
		if code >= 0 {
			word = b.words[code]
		}
		if err := b.texts.Append([]byte(word)); err != nil {
			return err
		}
	}
	b.many, b.values, b.codes, b.words, b.slots = true, nil, nil, nil, nil
	return nil
}

// Column returns what was gathered. Texts of which at most a thousand differ, and at most half as
// many as records have one, are a category, unless the kind was given. The builder has done its work then.
func (b *TextBuilder) Column(name string) (*Column, error) {
	if few := 2*len(b.words) <= b.n-len(b.missing); b.kind == 0 && !b.many && !few {
		if err := b.spread(); err != nil {
			return nil, err
		}
	}
	c := &Column{Name: name, Kind: Text, Texts: b.texts, Allocator: b.texts.alloc}
	for _, i := range b.missing {
		c.Missing = marked(c.Missing, b.n, int(i))
	}
	if b.many {
		return c, nil
	}
	c.Kind, c.Categories = Category, slices.Clone(b.words)
	slices.Sort(c.Categories)
	place := make([]int32, len(b.words)) // by code
	for i, w := range c.Categories {
		code, _ := b.find([]byte(w))
		place[code] = int32(i)
	}
	var err error
	if b.values != nil && b.n <= b.values.Len() {
		c.Values, err = b.values.Part(0, tensor.Int32, tensor.Shape{b.n})
	} else {
		c.Values, err = tensor.From(tensor.Shape{b.n}, b.codes)
	}
	if err != nil {
		return nil, err
	}
	for i, values := 0, tensor.Of[int32](c.Values); i < b.n; i++ {
		if values[i] >= 0 {
			values[i] = place[values[i]]
		}
	}
	return c, nil
}

// CheckText refuses what is no text in UTF-8, and says in which line.
func CheckText(text []byte) error {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return fmt.Errorf("line %d has a byte 0: this is no text in UTF-8; save it as UTF-8 (in pandas: encoding='utf-8')", lineOf(text, i))
	}
	if utf8.Valid(text) {
		return nil
	}
	i := 0
	for i < len(text) {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	return fmt.Errorf("line %d is no UTF-8: save the file as UTF-8 (in pandas: encoding='utf-8')", lineOf(text, i))
}

func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte{'\n'}) }

// MeansMissing reports whether a text stands for no value: the words are those of pandas.
func MeansMissing(b []byte) bool {
	if len(b) > len("#N/A N/A") {
		return false
	}
	switch string(b) {
	case "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
		"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null":
		return true
	}
	return false
}

// Truth returns the truth value that a text stands for, whose words are those of JSON, Python
// and spreadsheets.
func Truth(b []byte) (value, ok bool) {
	switch string(b) {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

// shorten returns the beginning of a text for people to see.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
