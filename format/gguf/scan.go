package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

// scanner goes through a header by a window. It allocates nothing but the window, and the names it
// returns.
type scanner struct {
	src         io.ReaderAt
	size, limit int64  // of the file; of what may be read of it
	window      []byte // what is read, from byte from on
	from, at    int64
}

// windowBytes is how many bytes are read at once.
const windowBytes = 1 << 16

// span is bytes of the file.
type span struct{ from, to int64 }

// entry is a pair whose value is still in the file.
type entry struct {
	key   string
	typ   valueType
	place span
}

// info is what a header says of a weight.
type info struct {
	name   string
	typ    quant.Type
	shape  tensor.Shape
	offset uint64 // from where weights start
}

// header is what a header says.
type header struct {
	version uint32
	pairs   []entry
	infos   []info
	end     int64
}

// scan reads the header of a file of size bytes.
func scan(src io.ReaderAt, size int64) (*header, error) {
	s := &scanner{src: src, size: size, limit: min(size, MaxHeader)}
	h := &header{}
	tensors, pairs, err := s.begin(h)
	if err != nil {
		return nil, err
	}
	for i := range pairs {
		e, err := s.nextEntry()
		if err != nil {
			return nil, fmt.Errorf("metadata %d of %d, %q: %w", i+1, pairs, e.key, err)
		}
		h.pairs = append(h.pairs, e)
	}
	for i := range tensors {
		x, err := s.nextInfo()
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d, %q: %w", i+1, tensors, x.name, err)
		}
		h.infos = append(h.infos, x)
	}
	h.end = s.at
	return h, nil
}

// begin reads what stands before the pairs.
func (s *scanner) begin(h *header) (tensors, pairs uint64, err error) {
	if s.size < 4 {
		return 0, 0, errors.New("it is no GGUF file: it has no header")
	}
	b, err := s.take(4)
	if err != nil {
		return 0, 0, err
	}
	if string(b) != magic {
		return 0, 0, errors.New("it is no GGUF file: a model of another format has to be converted")
	}
	version, err := s.word32()
	if err != nil {
		return 0, 0, err
	}
	switch {
	case version&0xffff == 0 && version != 0:
		return 0, 0, errors.New("the file is big-endian: convert it to little-endian with gguf-convert-endian")
	case version != 2 && version != 3:
		return 0, 0, fmt.Errorf("version %d of GGUF: versions 2 and 3 are read, convert the model again", version)
	}
	h.version = version
	if tensors, err = s.word64(); err != nil {
		return 0, 0, err
	}
	if pairs, err = s.word64(); err != nil {
		return 0, 0, err
	}
	if tensors > MaxTensors || pairs > MaxPairs {
		return 0, 0, fmt.Errorf("%d tensors and %d metadata, limits %d and %d", tensors, pairs, MaxTensors, MaxPairs)
	}
	return tensors, pairs, nil
}

// take returns the next n bytes, at most windowBytes, until the next call.
func (s *scanner) take(n int) ([]byte, error) {
	if int64(n) > s.limit-s.at {
		return nil, s.ends()
	}
	if s.at < s.from || s.at+int64(n) > s.from+int64(len(s.window)) {
		if s.window == nil {
			s.window = make([]byte, min(windowBytes, s.limit))
		}
		s.window = s.window[:min(int64(cap(s.window)), s.limit-s.at)]
		got, err := io.ReadAtLeast(io.NewSectionReader(s.src, s.at, int64(len(s.window))), s.window, n)
		if s.from, s.window = s.at, s.window[:got]; err != nil {
			return nil, err
		}
	}
	b := s.window[s.at-s.from:][:n]
	s.at += int64(n)
	return b, nil
}

// skip passes n bytes.
func (s *scanner) skip(n uint64) error {
	if n > uint64(s.limit-s.at) {
		return s.ends()
	}
	s.at += int64(n)
	return nil
}

// ends says that the header goes on where it may not.
func (s *scanner) ends() error {
	if s.limit < s.size {
		return fmt.Errorf("the header takes more than %d bytes: leave metadata out that a model does not need", MaxHeader)
	}
	return errors.New("the file ends inside its header: fetch it again")
}

func (s *scanner) word32() (uint32, error) {
	b, err := s.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (s *scanner) word64() (uint64, error) {
	b, err := s.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// identifier reads a string of 1 to limit bytes, which is a name.
func (s *scanner) identifier(limit uint64) (string, error) {
	n, err := s.word64()
	if err != nil {
		return "", err
	}
	if n == 0 || n > limit {
		return "", fmt.Errorf("a name of %d bytes, which has 1 to %d", n, limit)
	}
	b, err := s.take(int(n))
	return string(b), err
}

// nextEntry reads a pair.
func (s *scanner) nextEntry() (e entry, err error) {
	if e.key, err = s.identifier(MaxKey); err != nil {
		return e, err
	}
	typ, err := s.word32()
	if err != nil {
		return e, err
	}
	e.typ, e.place.from = valueType(typ), s.at
	err = s.value(e.typ, 0)
	e.place.to = s.at
	if n := e.place.to - e.place.from; err == nil && n > MaxValue {
		err = fmt.Errorf("a value of %d bytes, limit %d: leave it out, if the model does not need it", n, MaxValue)
	}
	return e, err
}

// value passes a value, in arrays of the given depth.
func (s *scanner) value(t valueType, depth int) error {
	switch {
	case !t.known():
		return fmt.Errorf("a value of the unknown type %d: convert the model again", uint32(t))
	case t == typeArray:
		return s.array(depth + 1)
	case t == typeString:
		n, err := s.word64()
		if err != nil {
			return err
		}
		return s.skip(n)
	case t == typeBool:
		b, err := s.take(1)
		if err == nil && b[0] > 1 {
			err = fmt.Errorf("a bool is %d, not 0 or 1: convert the model again", b[0])
		}
		return err
	}
	return s.skip(uint64(t.width()))
}

// array passes an array.
func (s *scanner) array(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("arrays in arrays, more than %d deep", MaxDepth)
	}
	typ, err := s.word32()
	if err != nil {
		return err
	}
	n, err := s.word64()
	if err != nil {
		return err
	}
	t := valueType(typ)
	switch {
	case n > MaxElements:
		return fmt.Errorf("an array of %d elements, limit %d: leave it out, if the model does not need it", n, MaxElements)
	case t.known() && t != typeBool && t.width() > 0:
		return s.skip(n * uint64(t.width()))
	case !t.known(): // also where the array is empty
		return s.value(t, depth)
	}
	for range n {
		if err := s.value(t, depth); err != nil {
			return err
		}
	}
	return nil
}

// nextInfo reads what the header says of a weight.
func (s *scanner) nextInfo() (x info, err error) {
	if x.name, err = s.identifier(MaxName); err != nil {
		return x, err
	}
	rank, err := s.word32()
	if err != nil {
		return x, err
	}
	if rank > MaxRank {
		return x, fmt.Errorf("%d axes, limit %d", rank, MaxRank)
	}
	x.shape = make(tensor.Shape, rank)
	for i := range x.shape {
		d, err := s.word64()
		if err != nil {
			return x, err
		}
		if d > tensor.MaxDim {
			return x, fmt.Errorf("an axis of %d elements, limit 2^40", d)
		}
		x.shape[len(x.shape)-1-i] = int(d)
	}
	typ, err := s.word32()
	if err != nil {
		return x, err
	}
	if x.typ, err = quant.FromGGML(typ); err != nil {
		return x, err
	}
	x.offset, err = s.word64()
	return x, err
}
