package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// blockSize is how many values are unpacked at a time.
const blockSize = 1024

// hybrid reads n values of some bits, in runs of one value or packed, and hands them on in blocks.
func hybrid(b []byte, width uint, n int, put func(block []uint32) error) error {
	if width > 32 {
		return errPage
	}
	r := runs{b: b, width: width}
	var room [blockSize]uint32
	for n > 0 {
		block := room[:min(n, blockSize)]
		if err := r.read(block); err != nil {
			return err
		}
		if err := put(block); err != nil {
			return err
		}
		n -= len(block)
	}
	return nil
}

// runs are values of some bits.
type runs struct {
	b      []byte
	width  uint
	same   uint64 // how often the value comes again
	value  uint32
	packed uint64 // values that are left of a packed run, with which b begins
	bit    uint   // where the next of them stands
	size   int    // bytes of that run
}

// read fills a block.
func (r *runs) read(block []uint32) error {
	for len(block) > 0 {
		n := int(min(uint64(len(block)), max(r.same, r.packed)))
		switch {
		case r.same > 0:
			for i := range block[:n] {
				block[i] = r.value
			}
			r.same -= uint64(n)
		case r.packed > 0:
			if err := r.unpack(block[:n]); err != nil {
				return err
			}
			if r.packed -= uint64(n); r.packed == 0 {
				r.b = r.b[min(r.size, len(r.b)):]
			}
		default:
			if err := r.next(); err != nil {
				return err
			}
		}
		block = block[n:]
	}
	return nil
}

// next begins a run.
func (r *runs) next() error {
	head, size := binary.Uvarint(r.b)
	if size <= 0 {
		return errPage
	}
	r.b = r.b[size:]
	if head&1 == 0 {
		bytes := int(r.width+7) / 8
		if len(r.b) < bytes || head == 0 {
			return errPage
		}
		r.same, r.value = head>>1, 0
		for i := range bytes {
			r.value |= uint32(r.b[i]) << (8 * i)
		}
		r.b = r.b[bytes:]
		return nil
	}
	groups := head >> 1
	if r.width > 0 && groups > uint64(len(r.b)) { // the last group may be cut short
		return errPage
	}
	groups = min(groups, math.MaxInt32) // of no bits
	r.packed, r.bit, r.size = 8*groups, 0, int(groups)*int(r.width)
	return nil
}

// unpack reads values of a packed run; bits are taken from the low end.
func (r *runs) unpack(block []uint32) error {
	if uint64(r.bit)+uint64(len(block))*uint64(r.width) > 8*uint64(len(r.b)) {
		return errPage
	}
	mask := uint64(1)<<r.width - 1
	for i := range block {
		var word uint64
		if at := r.bit / 8; at+8 <= uint(len(r.b)) {
			word = binary.LittleEndian.Uint64(r.b[at:])
		} else {
			for k, x := range r.b[at:] {
				word |= uint64(x) << (8 * k)
			}
		}
		block[i] = uint32(word >> (r.bit % 8) & mask)
		r.bit += r.width
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
	if at := uint(i) * width; width <= 56 && at/8+8 <= uint(len(b)) {
		return binary.LittleEndian.Uint64(b[at/8:]) >> (at % 8) & (1<<width - 1)
	}
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

// unit is how many bytes a number or a truth value has until it is narrowed to its type.
func (l *leaf) unit() int { return max(l.width, 1) }

// numbers reads the values of an encoding of numbers or truth values, and hands them on as little-endian words of a unit.
func (l *leaf) numbers(encoding int64, b []byte, n int, put func(words []byte) error) error {
	integer := l.node.physical == physicalInt32 || l.node.physical == physicalInt64
	switch {
	case encoding == plain && l.node.physical == physicalBoolean:
		if len(b) < (n+7)/8 {
			return errPage
		}
		return inBlocks(n, 1, put, func(i int, word []byte) { word[0] = b[i/8] >> (i % 8) & 1 })
	case encoding == runLength && l.node.physical == physicalBoolean:
		if len(b) < 4 {
			return errPage
		}
		var room [blockSize]byte
		return hybrid(b[4:], 1, n, func(block []uint32) error {
			for i, v := range block {
				room[i] = byte(v)
			}
			return put(room[:len(block)])
		})
	case encoding == plain && l.width > 0:
		if len(b)/l.width < n {
			return errPage
		}
		return put(b[:n*l.width])
	case encoding == streamSplit && l.width > 0:
		if len(b)/l.width < n {
			return errPage
		}
		return inBlocks(n, l.width, put, func(i int, word []byte) {
			for k := range word {
				word[k] = b[k*n+i]
			}
		})
	case encoding == deltaIntegers && integer:
		return l.deltas(b, n, put)
	}
	return fmt.Errorf("encoding %d of %v is not read: write it with another", encoding, l.typ)
}

// inBlocks hands on n words, each set by what its number says.
func inBlocks(n, unit int, put func(words []byte) error, set func(i int, word []byte)) error {
	room := make([]byte, min(n, blockSize)*unit)
	for at := 0; at < n; at += blockSize {
		words := room[:min(n-at, blockSize)*unit]
		for i := 0; i < len(words); i += unit {
			set(at+i/unit, words[i:i+unit])
		}
		if err := put(words); err != nil {
			return err
		}
	}
	return nil
}

// deltas is numbers for integers that are told by how they differ.
func (l *leaf) deltas(b []byte, n int, put func(words []byte) error) error {
	count, room := 0, make([]byte, 0, blockSize*l.width)
	_, err := deltas(b, n, func(v int64) (err error) {
		count++
		if room = binary.LittleEndian.AppendUint64(room, uint64(v)); l.width == 4 {
			room = room[:len(room)-4]
		}
		if len(room) >= (blockSize-1)*l.width {
			err = put(room)
			room = room[:0]
		}
		return err
	})
	if err == nil && count != n {
		err = errMany
	}
	if err != nil {
		return err
	}
	return put(room)
}
