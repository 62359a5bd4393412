package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tally-network/tally/format/table"
)

// metadata is what the end of a file says.
type metadata struct {
	schema []node
	rows   int64
	groups []group
}

// node is an element of the schema, before its children.
type node struct {
	name       string
	physical   int64 // −1: a group
	length     int64 // of bytes, where it is fixed
	repetition int64
	children   int64
	converted  int64 // −1: none
	logical    int   // 0: none
	bits       byte  // of a logical integer
	signed     bool
}

// Repetitions of nodes.
const (
	required = iota
	optional
	repeated
)

// group is some rows of all columns.
type group struct {
	rows   int64
	chunks []chunk
}

// chunk is the values of a column in a group.
type chunk struct {
	codec        int64
	values       int64
	data, dict   int64 // offsets
	size         int64 // bytes, with the headers of pages
	outside, any bool  // it lies in another file, or is encrypted; it has metadata
}

const magic = "PAR1"

// Limits on metadata, of whose items a byte may make a whole struct.
const (
	maxNodes  = 4 * table.MaxColumns
	maxGroups = 1 << 16
	maxChunks = 1 << 19
)

// limited reads a list of at most so many items, all such lists together.
func (t *thrift) limited(have *int, most int, item func()) {
	t.list(func(byte) {
		if *have++; *have > most {
			t.fail(fmt.Errorf("metadata has more than %d items of a kind: write larger row groups, or fewer columns", most))
			return
		}
		item()
	})
}

// readMetadata reads the end of a file.
func readMetadata(src io.ReaderAt, size int64) (*metadata, error) {
	var end [8]byte
	if size < 12 {
		return nil, errors.New("it is no Parquet file: it is too short")
	}
	if err := readAt(src, end[:], size-8); err != nil {
		return nil, err
	}
	if string(end[4:]) == "PARE" {
		return nil, errors.New("it is encrypted: write it without encryption")
	}
	if string(end[4:]) != magic {
		return nil, errors.New("it is no Parquet file: it does not end in PAR1")
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	if n > size-12 {
		return nil, fmt.Errorf("the metadata has %d bytes, and the file %d", n, size)
	}
	t := &thrift{b: make([]byte, n)}
	if err := readAt(src, t.b, size-8-n); err != nil {
		return nil, err
	}
	m := &metadata{}
	var nodes, groups, chunks int
	t.fields(func(id int, typ byte) bool {
		switch {
		case id == 2 && typ == thriftList:
			t.limited(&nodes, maxNodes, func() { m.schema = append(m.schema, t.node()) })
		case id == 3 && typ == thriftI64:
			m.rows = t.integer()
		case id == 4 && typ == thriftList:
			t.limited(&groups, maxGroups, func() { m.groups = append(m.groups, t.group(&chunks)) })
		default:
			return false
		}
		return true
	})
	return m, t.err
}

func readAt(src io.ReaderAt, b []byte, at int64) error {
	_, err := io.ReadFull(io.NewSectionReader(src, at, int64(len(b))), b)
	return err
}

// integers returns what reads fields that are integers, by their numbers.
func (t *thrift) integers(into map[int]*int64) func(id int, typ byte) bool {
	return func(id int, typ byte) bool {
		to := into[id]
		if to == nil || typ < thriftI16 || typ > thriftI64 {
			return false
		}
		*to = t.integer()
		return true
	}
}

func (t *thrift) node() node {
	n := node{physical: -1, converted: -1}
	numbers := t.integers(map[int]*int64{1: &n.physical, 2: &n.length, 3: &n.repetition, 5: &n.children, 6: &n.converted})
	t.fields(func(id int, typ byte) bool {
		switch {
		case id == 4 && typ == thriftBinary:
			n.name = string(t.binary())
		case id == 10 && typ == thriftStruct:
			t.fields(func(id int, typ byte) bool {
				n.logical = id
				if id != logicalInteger || typ != thriftStruct {
					return false
				}
				t.fields(func(id int, typ byte) bool {
					if id == 1 && typ == thriftByte {
						n.bits = t.byte()
						return true
					}
					n.signed = n.signed || id == 2 && typ == thriftTrue
					return false
				})
				return true
			})
		default:
			return numbers(id, typ)
		}
		return true
	})
	return n
}

func (t *thrift) group(chunks *int) (g group) {
	numbers := t.integers(map[int]*int64{3: &g.rows})
	t.fields(func(id int, typ byte) bool {
		if id == 1 && typ == thriftList {
			t.limited(chunks, maxChunks, func() { g.chunks = append(g.chunks, t.chunk()) })
			return true
		}
		return numbers(id, typ)
	})
	return g
}

func (t *thrift) chunk() (c chunk) {
	numbers := t.integers(map[int]*int64{4: &c.codec, 5: &c.values, 7: &c.size, 9: &c.data, 11: &c.dict})
	t.fields(func(id int, typ byte) bool {
		if id == 3 && typ == thriftStruct {
			c.any = true
			t.fields(numbers)
			return true
		}
		c.outside = c.outside || id == 1 || id == 8
		return false
	})
	return c
}

// header is what stands before a page.
type header struct {
	kind         int64
	size, packed int64 // bytes, and as they are compressed
	values       int64
	encoding     int64
	defBytes     int64 // of version 2: of levels
	repBytes     int64
	plain        bool // of version 2: not compressed
	hasLayout    bool
}

// Kinds of pages.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

func (t *thrift) header() (h header) {
	numbers := t.integers(map[int]*int64{1: &h.kind, 2: &h.size, 3: &h.packed})
	ofPage := t.integers(map[int]*int64{1: &h.values, 2: &h.encoding})
	ofPageV2 := t.integers(map[int]*int64{1: &h.values, 4: &h.encoding, 5: &h.defBytes, 6: &h.repBytes})
	t.fields(func(id int, typ byte) bool {
		switch {
		case (id == 5 || id == 7) && typ == thriftStruct:
			h.hasLayout = true
			t.fields(ofPage)
		case id == 8 && typ == thriftStruct:
			h.hasLayout = true
			t.fields(func(id int, typ byte) bool {
				h.plain = h.plain || id == 7 && typ == thriftFalse
				return ofPageV2(id, typ)
			})
		default:
			return numbers(id, typ)
		}
		return true
	})
	return h
}
