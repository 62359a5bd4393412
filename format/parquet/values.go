package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/tally-network/tally/core/tensor"
)

// fill adds the values of a page, of which so many are there.
func (c *column) fill(encoding int64, b []byte, present int) error {
	var err error
	switch {
	case present == 0:
	case encoding == plainDictionary || encoding == dictionary:
		err = c.named(b, present)
	case c.typ == 0:
		err = texts(encoding, b, present, c.text)
	default:
		err = c.numbers(encoding, b, present, c.add)
	}
	if err != nil {
		return err
	}
	_, err = c.next(0)
	return err
}

// next passes records without a value, and returns how many of the values after them, at most so many, belong together.
func (c *column) next(most int) (int, error) {
	if c.there == nil {
		return most, nil
	}
	for len(c.there) > 0 && !c.there[0] {
		if err := c.lack(); err != nil {
			return 0, err
		}
		c.there = c.there[1:]
	}
	n := 0
	for n < min(most, len(c.there)) && c.there[n] {
		n++
	}
	if c.there = c.there[n:]; n == 0 && most > 0 {
		return 0, errMany
	}
	return n, nil
}

// lack adds a record without a value.
func (c *column) lack() error {
	if c.texts != nil {
		return c.texts.AppendMissing()
	}
	if c.typ.Float() { // the table knows that NaN is missing
		c.values.Set(c.n, tensor.FloatWord(c.typ, math.NaN()))
	} else {
		if c.missing == nil {
			c.missing = make([]bool, c.records)
		}
		c.missing[c.n] = true
	}
	c.n++
	return nil
}

// add adds numbers, as words of a unit.
func (c *column) add(words []byte) error {
	unit, size := c.unit(), c.typ.Size()
	for len(words) > 0 {
		n, err := c.next(len(words) / unit)
		if err != nil {
			return err
		}
		to := c.values.Bytes()[c.n*size:]
		if size == unit {
			copy(to, words[:n*unit])
		} else if err := c.narrowed(to, words[:n*unit]); err != nil {
			return err
		}
		c.n += n
		words = words[n*unit:]
	}
	return nil
}

// narrowed sets elements of fewer bits than their physical type to words of that type.
func (c *column) narrowed(to, words []byte) error {
	size := c.typ.Size()
	for i := 0; i < len(words); i += c.width {
		w := uint64(binary.LittleEndian.Uint32(words[i:]))
		if c.width == 8 {
			w = binary.LittleEndian.Uint64(words[i:])
		}
		if narrow(c.typ, w) != w {
			return fmt.Errorf("a value lies outside %v", c.typ)
		}
		for k := range size {
			to[k] = byte(w >> (8 * k))
		}
		to = to[size:]
	}
	return nil
}

// narrow returns a word as one of its physical type has it that a type of fewer bits holds.
func narrow(typ tensor.DType, w uint64) uint64 {
	switch typ {
	case tensor.Int8:
		return uint64(uint32(int8(w)))
	case tensor.Int16:
		return uint64(uint32(int16(w)))
	case tensor.Uint8:
		return uint64(uint8(w))
	case tensor.Uint16:
		return uint64(uint16(w))
	}
	return uint64(uint32(w))
}

// text adds a text.
func (c *column) text(text []byte) error {
	if _, err := c.next(1); err != nil {
		return err
	}
	if err := c.r.spend(1, int64(len(text))); err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return errNoText
	}
	if c.nested != nil {
		return c.nested.texts.Append(text)
	}
	return c.texts.Append(text)
}

var errNoText = errors.New("it holds bytes that are no text in UTF-8: write it as numbers or texts, or without it")

// named adds values that a page names by their numbers in the dictionary.
func (c *column) named(b []byte, n int) error {
	if len(b) == 0 || !c.hasDict {
		return errPage
	}
	if c.typ == 0 {
		return hybrid(b[1:], uint(b[0]), n, c.namedTexts)
	}
	unit := c.unit()
	room := make([]byte, blockSize*unit)
	return hybrid(b[1:], uint(b[0]), n, func(block []uint32) error {
		words, count := room[:len(block)*unit], len(c.dict)/unit
		for i, at := range block {
			if uint64(at) >= uint64(count) {
				return errPage
			}
			if unit == 8 {
				binary.LittleEndian.PutUint64(words[8*i:], binary.LittleEndian.Uint64(c.dict[8*int(at):]))
			} else {
				copy(words[i*unit:], c.dict[int(at)*unit:][:unit])
			}
		}
		return c.add(words)
	})
}

// namedTexts adds texts by their numbers.
func (c *column) namedTexts(block []uint32) error {
	size := int64(0)
	for _, at := range block {
		if uint64(at) >= uint64(len(c.sound)) {
			return errPage
		}
		word := c.words.Words[at]
		if size += int64(len(word)); !c.sound[at] {
			if !utf8.Valid(word) {
				return errNoText
			}
			c.sound[at] = true
		}
	}
	if err := c.r.spend(1, size); err != nil {
		return err
	}
	if c.nested != nil {
		for _, at := range block {
			if err := c.nested.texts.Append(c.words.Words[at]); err != nil {
				return err
			}
		}
		return nil
	}
	for len(block) > 0 {
		n, err := c.next(len(block))
		if err != nil {
			return err
		}
		if err := c.texts.AppendNamed(&c.words, block[:n]); err != nil {
			return err
		}
		block = block[n:]
	}
	return nil
}
