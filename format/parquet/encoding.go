package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Encodings of values.
const (
	plain           = 0
	plainDictionary = 2
	runLength       = 3
	deltaIntegers   = 5
	deltaLengths    = 6
	deltaTexts      = 7
	dictionary      = 8
	streamSplit     = 9
)

var (
	errPage = errors.New("a page ends too early, or is damaged")
	errMany = errors.New("a page has other values than its header counts")
)

// hybrid reads n values of some bits, in runs of one value or packed.
func hybrid(b []byte, width uint, n int, put func(v uint32)) error {
	if width > 32 {
		return errPage
	}
	for n > 0 {
		head, size := binary.Uvarint(b)
		if size <= 0 {
			return errPage
		}
		b = b[size:]
		if head&1 == 0 {
			bytes := int(width+7) / 8
			if len(b) < bytes || head == 0 {
				return errPage
			}
			var v uint32
			for i := range bytes {
				v |= uint32(b[i]) << (8 * i)
			}
			b = b[bytes:]
			for run := min(uint64(n), head>>1); run > 0; run-- {
				put(v)
				n--
			}
			continue
		}
		groups := head >> 1
		if width > 0 && groups > uint64(len(b)) { // the last group may be cut short
			return errPage
		}
		var at, have uint // bits are taken from the low end
		var word uint64
		used := uint(0)
		for left := groups; left > 0 && n > 0; left-- {
			for i := 0; i < 8 && n > 0; i++ {
				for have < width {
					if at == uint(len(b)) {
						return errPage
					}
					word |= uint64(b[at]) << have
					at++
					have += 8
				}
				put(uint32(word & (1<<width - 1)))
				word >>= width
				have -= width
				n--
			}
			used += width
		}
		b = b[min(used, uint(len(b))):]
	}
	return nil
}

// levelWidth returns the bits of levels up to one.
func levelWidth(most int) uint { return uint(bits.Len(uint(most))) }

// deltas reads integers that are told by how they differ, and returns what follows them.
func deltas(b []byte, most int, put func(v int64) error) ([]byte, error) {
	t := &thrift{b: b} // whose integers are the same
	block, minis, total, value := t.uvarint(), t.uvarint(), t.uvarint(), t.integer()
	if t.err != nil || minis == 0 || minis > 1<<10 || block%minis != 0 || block/minis%32 != 0 || block > 1<<20 || total > uint64(most) {
		return nil, errPage
	}
	each := int(block / minis)
	left := int(total)
	if left > 0 {
		left--
		if err := put(value); err != nil {
			return nil, err
		}
	}
	for left > 0 {
		least := t.integer()
		if t.err != nil || len(b)-t.at < int(minis) {
			return nil, errPage
		}
		widths := b[t.at:][:minis]
		t.at += int(minis)
		for _, width := range widths {
			if left == 0 {
				break
			}
			size := each / 8 * int(width)
			if width > 64 || len(b)-t.at < size {
				return nil, errPage
			}
			packed := b[t.at:][:size]
			t.at += size
			for i := 0; i < each && left > 0; i++ {
				value += least + int64(unpack(packed, i, uint(width)))
				left--
				if err := put(value); err != nil {
					return nil, err
				}
			}
		}
	}
	return b[t.at:], nil
}

// unpack returns value i of some bits, the low ones first.
func unpack(b []byte, i int, width uint) (v uint64) {
	for bit := uint(0); bit < width; {
		at := uint(i)*width + bit
		take := min(8-at%8, width-bit)
		v |= (uint64(b[at/8]) >> (at % 8) & (1<<take - 1)) << bit
		bit += take
	}
	return v
}

// texts reads the values of an encoding of texts.
func texts(encoding int64, b []byte, n int, put func([]byte) error) error {
	switch encoding {
	case plain:
		for range n {
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return errPage
			}
			size := binary.LittleEndian.Uint32(b)
			if err := put(b[4:][:size]); err != nil {
				return err
			}
			b = b[4+size:]
		}
		return nil
	case deltaLengths:
		return suffixes(b, n, put)
	case deltaTexts:
		var shared []int64
		rest, err := deltas(b, n, func(v int64) error { shared = append(shared, v); return nil })
		if err != nil || len(shared) != n {
			return errors.Join(err, errMany)
		}
		var last []byte
		i := 0
		return suffixes(rest, n, func(end []byte) error {
			if shared[i] < 0 || shared[i] > int64(len(last)) {
				return errPage
			}
			last = append(last[:shared[i]:shared[i]], end...)
			i++
			return put(last)
		})
	}
	return fmt.Errorf("encoding %d of texts is not read: write it with another", encoding)
}

// suffixes reads texts whose lengths stand before all of them.
func suffixes(b []byte, n int, put func([]byte) error) error {
	var lengths []int64
	b, err := deltas(b, n, func(v int64) error { lengths = append(lengths, v); return nil })
	if err != nil || len(lengths) != n {
		return errors.Join(err, errMany)
	}
	for _, size := range lengths {
		if size < 0 || size > int64(len(b)) {
			return errPage
		}
		if err := put(b[:size]); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// numbers reads the values of an encoding of numbers or truth values, as little-endian words.
func (l *leaf) numbers(encoding int64, b []byte, n int, put func(w uint64) error) error {
	switch {
	case encoding == plain && l.node.physical == physicalBoolean:
		if len(b) < (n+7)/8 {
			return errPage
		}
		for i := range n {
			if err := put(uint64(b[i/8] >> (i % 8) & 1)); err != nil {
				return err
			}
		}
		return nil
	case encoding == runLength && l.node.physical == physicalBoolean:
		if len(b) < 4 {
			return errPage
		}
		var failed error
		err := hybrid(b[4:], 1, n, func(v uint32) {
			if failed == nil {
				failed = put(uint64(v))
			}
		})
		return errors.Join(err, failed)
	case (encoding == plain || encoding == streamSplit) && l.width > 0:
		if len(b)/l.width < n {
			return errPage
		}
		for i := range n {
			var w uint64
			for k := range l.width {
				at := i*l.width + k
				if encoding == streamSplit {
					at = k*n + i
				}
				w |= uint64(b[at]) << (8 * k)
			}
			if err := put(w); err != nil {
				return err
			}
		}
		return nil
	case encoding == deltaIntegers && (l.node.physical == physicalInt32 || l.node.physical == physicalInt64):
		count := 0
		_, err := deltas(b, n, func(v int64) error { count++; return put(uint64(v)) })
		if err == nil && count != n {
			err = errMany
		}
		return err
	}
	return fmt.Errorf("encoding %d of %v is not read: write it with another", encoding, l.typ)
}
