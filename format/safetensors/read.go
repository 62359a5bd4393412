package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// Read returns the tensors, in memory of alloc, and the metadata of the file in the first size
// bytes of src. An element type of the format that tensors do not have is
// errors.ErrUnsupported.
func Read(src io.ReaderAt, size int64, alloc tensor.Allocator) (map[string]*tensor.Tensor, map[string]string, error) {
	h, err := checkedHeader(src, size)
	if err != nil {
		return nil, nil, err
	}
	tensors := make(map[string]*tensor.Tensor, len(h.places))
	for i := range h.places {
		if tensors[h.places[i].name], err = h.load(src, &h.places[i], alloc); err != nil {
			return nil, nil, err
		}
	}
	return tensors, h.metadata, nil
}

// Info is what a header says of a tensor.
type Info struct {
	Type  tensor.DType
	Shape tensor.Shape
}

// List returns what Read would, without the elements.
func List(src io.ReaderAt, size int64) (map[string]Info, error) {
	h, err := checkedHeader(src, size)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Info, len(h.places))
	for _, p := range h.places {
		all[p.name] = Info{p.typ, p.shape}
	}
	return all, nil
}

// ReadOne returns one tensor of those that Read would.
func ReadOne(src io.ReaderAt, size int64, name string) (*tensor.Tensor, error) {
	h, err := checkedHeader(src, size)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(h.places, func(p place) bool { return p.name == name })
	if i < 0 {
		return nil, fmt.Errorf("read safetensors: there is no tensor %.100q", name)
	}
	return h.load(src, &h.places[i], nil)
}

// load reads the elements of a tensor.
func (h *header) load(src io.ReaderAt, p *place, alloc tensor.Allocator) (*tensor.Tensor, error) {
	t, err := elements.Read(io.NewSectionReader(src, p.at, p.end-p.at), p.typ, p.shape, alloc)
	if err != nil {
		return nil, fmt.Errorf("read safetensors: tensor %q: %w", p.name, err)
	}
	return t, nil
}

// checkedHeader reads the header, whose tensors lie in the file one after the other.
func checkedHeader(src io.ReaderAt, size int64) (*header, error) {
	h, err := readHeader(src, size)
	if err == nil {
		err = h.check()
	}
	if err != nil {
		return nil, fmt.Errorf("read safetensors: %w", err)
	}
	return h, nil
}

// header is what a header says.
type header struct {
	base, size int64 // where elements start; where the file ends
	places     []place
	metadata   map[string]string
}

// place is where a tensor's elements lie in the file.
type place struct {
	name    string
	typ     tensor.DType
	shape   tensor.Shape
	at, end int64
}

// readHeader reads the header. Places lie inside the file.
func readHeader(src io.ReaderAt, size int64) (*header, error) {
	if size < 8 {
		return nil, fmt.Errorf("%d bytes hold no header", size)
	}
	var prefix [8]byte
	if err := readFull(src, prefix[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("the header has %d bytes, limit %d, and the file %d", n, MaxHeader, size)
	}
	text := make([]byte, n)
	if err := readFull(src, text, 8); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(text, []byte("{")) || !utf8.Valid(text) {
		return nil, errors.New("the header is not a JSON object in UTF-8")
	}
	h := &header{base: 8 + int64(n), size: size}
	s := &scanner{b: text}
	if err := h.scan(s); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if len(bytes.Trim(text[s.at:], " ")) > 0 {
		return nil, errors.New("header: only spaces may follow the object")
	}
	return h, nil
}

func readFull(src io.ReaderAt, b []byte, at int64) error {
	_, err := io.ReadFull(io.NewSectionReader(src, at, int64(len(b))), b)
	return err
}

// check sorts the places and refuses elements that are too few or too many for
// the shape, shared, missing, or in no tensor.
func (h *header) check() error {
	slices.SortFunc(h.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.end, b.end))
	})
	end := h.base
	for _, p := range h.places {
		need, err := elements.Size(p.typ, p.shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", p.name, err)
		}
		if p.end-p.at != need {
			return fmt.Errorf("tensor %q: %v%v takes %d bytes, data_offsets give %d", p.name, p.typ, p.shape, need, p.end-p.at)
		}
		if p.at != end {
			return fmt.Errorf("tensor %q: elements start at byte %d, the ones before end at %d", p.name, p.at, end)
		}
		end = p.end
	}
	if end != h.size {
		return fmt.Errorf("tensors end at byte %d and the file at %d", end, h.size)
	}
	return nil
}

// scan reads the object that a header is.
func (h *header) scan(s *scanner) error {
	names := map[string]bool{}
	return s.object(func(name string) error {
		if names[name] {
			return errors.New("given twice")
		}
		names[name] = true
		if name == metadataKey {
			return h.scanMetadata(s)
		}
		if len(h.places) == MaxTensors {
			return fmt.Errorf("more than %d tensors", MaxTensors)
		}
		p := place{name: name}
		err := h.scanPlace(s, &p)
		h.places = append(h.places, p)
		return err
	})
}

func (h *header) scanMetadata(s *scanner) error {
	h.metadata = map[string]string{}
	return s.object(func(key string) error {
		if _, twice := h.metadata[key]; twice {
			return errors.New("given twice")
		}
		if len(h.metadata) == MaxMetadata {
			return fmt.Errorf("more than %d entries", MaxMetadata)
		}
		v, err := s.text()
		h.metadata[key] = v
		return err
	})
}

// placeKeys are the keys of a tensor's entry; all are wanted, once.
var placeKeys = []string{"dtype", "shape", "data_offsets"}

func (h *header) scanPlace(s *scanner, p *place) error {
	var given [3]bool
	err := s.object(func(key string) error {
		i := slices.Index(placeKeys, key)
		if i < 0 {
			return errors.New("unknown key")
		}
		if given[i] {
			return errors.New("given twice")
		}
		given[i] = true
		switch key {
		case "dtype":
			name, err := s.text()
			if err != nil {
				return err
			}
			p.typ, err = dtypeOf(name)
			return err
		case "shape":
			dims, err := s.numbers(tensor.MaxRank, tensor.MaxDim)
			for _, d := range dims {
				p.shape = append(p.shape, int(d))
			}
			return err
		default:
			at, err := s.numbers(2, h.size-h.base)
			if err != nil {
				return err
			}
			if len(at) != 2 || at[0] > at[1] {
				return fmt.Errorf("%v is no range", at)
			}
			p.at, p.end = h.base+at[0], h.base+at[1]
			return nil
		}
	})
	if err == nil && given != [3]bool{true, true, true} {
		err = fmt.Errorf("%v are wanted", placeKeys)
	}
	return err
}

func dtypeOf(name string) (tensor.DType, error) {
	for _, d := range dtypes {
		if d.name == name {
			return d.typ, nil
		}
	}
	return 0, fmt.Errorf("element type %.20q, convert it to one of F32, BF16, I64 and the like: %w", name, errors.ErrUnsupported)
}
