package parquet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// Physical types.
const (
	physicalBoolean = iota
	physicalInt32
	physicalInt64
	physicalInt96
	physicalFloat
	physicalDouble
	physicalBytes
	physicalFixed
)

// Annotations of nodes, in the older form.
const (
	convertedText, convertedMap, convertedMapItem, convertedList, convertedEnum, convertedDecimal = 0, 1, 2, 3, 4, 5
	convertedUint8, convertedInt8, convertedJSON, convertedInterval                               = 11, 15, 19, 21
)

// Annotations of nodes.
const (
	logicalText, logicalMap, logicalList, logicalEnum, logicalDecimal = 1, 2, 3, 4, 5
	logicalInteger, logicalJSON, logicalFloat16                       = 10, 12, 15
)

// leaf is a column as the schema has it.
type leaf struct {
	name     string
	node     node
	typ      tensor.DType // 0: text
	width    int          // bytes of a value, where all have the same; 0: of texts
	def, rep int          // the levels of values that are there
	document *document    // of the first leaf of a column that is read as JSON; else nil
}

// maxLevel bounds the levels of a column.
const maxLevel = 30

// walker turns a schema into leaves.
type walker struct {
	schema []node
	at     int
	leaves []leaf
}

// leaves returns the columns of a schema.
func (m *metadata) leaves() ([]leaf, error) {
	w := &walker{schema: m.schema}
	if len(m.schema) == 0 || m.schema[0].children < 1 {
		return nil, errors.New("the schema has no columns")
	}
	w.at = 1
	for range m.schema[0].children {
		from, first := w.at, len(w.leaves)
		if err := w.walk("", 0, 0, 0); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(w.leaves[first:], func(l leaf) bool { return l.rep > 0 && l.typ == 0 }) {
			w.leaves[first].document = newDocument(m.schema[from:w.at])
		}
	}
	if w.at != len(m.schema) {
		return nil, errors.New("the schema has more elements than children")
	}
	return w.leaves, nil
}

// walk reads a node and those below it. The names of as many levels as unnamed are those of lists,
// and not part of a column's.
func (w *walker) walk(prefix string, unnamed, def, rep int) error {
	if w.at == len(w.schema) || def > maxLevel {
		return fmt.Errorf("the schema ends too early, or is nested more than %d deep", maxLevel)
	}
	n := w.schema[w.at]
	w.at++
	name := prefix
	if unnamed > 0 {
		unnamed--
	} else {
		if name != "" {
			name += "."
		}
		name += n.name
	}
	if len(name) > table.MaxName {
		return fmt.Errorf("column %.40q: a name has at most %d bytes", name, table.MaxName)
	}
	switch n.repetition {
	case required:
	case optional:
		def++
	case repeated:
		def++
		rep++
	default:
		return fmt.Errorf("column %.40q: repetition %d is unknown", name, n.repetition)
	}
	if n.physical >= 0 && n.children == 0 {
		return w.leaf(leaf{name: name, node: n, def: def, rep: rep})
	}
	if n.logical == logicalMap || n.converted == convertedMap || n.converted == convertedMapItem {
		return fmt.Errorf("column %.40q is a map: write each of its values as a column", name)
	}
	if (n.logical == logicalList || n.converted == convertedList) && w.at < len(w.schema) {
		if unnamed = 1; w.schema[w.at].children == 1 {
			unnamed = 2
		}
	}
	for range n.children {
		if err := w.walk(name, unnamed, def, rep); err != nil {
			return err
		}
	}
	return nil
}

// leaf adds a column, if its type is one of numbers, truth values or texts.
func (w *walker) leaf(l leaf) error {
	if len(w.leaves) == table.MaxColumns {
		return fmt.Errorf("more than %d columns: write numbers that belong together as a list", table.MaxColumns)
	}
	n := l.node
	refused := ""
	switch n.physical {
	case physicalBoolean:
		l.typ = tensor.Bool
	case physicalInt32:
		l.typ, l.width = tensor.Int32, 4
	case physicalInt64:
		l.typ, l.width = tensor.Int64, 8
	case physicalFloat:
		l.typ, l.width = tensor.Float32, 4
	case physicalDouble:
		l.typ, l.width = tensor.Float64, 8
	case physicalBytes:
		if n.logical == 0 && n.converted < 0 {
			break // texts of older programs are not marked; they are checked
		}
		if n.logical != logicalText && n.logical != logicalEnum && n.logical != logicalJSON && n.converted != convertedText && n.converted != convertedEnum && n.converted != convertedJSON {
			refused = "bytes"
		}
	case physicalFixed:
		if l.typ, l.width = tensor.Float16, 2; n.logical != logicalFloat16 || n.length != 2 {
			refused = "bytes of a fixed number"
		}
	default:
		refused = "of an old type of times"
	}
	if n.logical == logicalDecimal || n.converted == convertedDecimal || n.converted == convertedInterval {
		refused = "decimal, or an interval"
	}
	if refused != "" {
		return fmt.Errorf("column %.40q is %s: write it as numbers, truth values or texts, or without it", l.name, refused)
	}
	if n.physical == physicalInt32 || n.physical == physicalInt64 {
		if typ := integerType(n, l.typ); typ.Size() <= l.width {
			l.typ = typ
		}
	}
	w.leaves = append(w.leaves, l)
	return nil
}

// integerType returns the type that an annotation names. Times are whole numbers of their units.
func integerType(n node, typ tensor.DType) tensor.DType {
	signed, unsigned := []tensor.DType{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64}, []tensor.DType{tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64}
	switch c := n.converted; {
	case n.logical == logicalInteger:
		for i, bits := range []byte{8, 16, 32, 64} {
			if n.bits == bits && n.signed {
				return signed[i]
			} else if n.bits == bits {
				return unsigned[i]
			}
		}
	case c >= convertedUint8 && c < convertedInt8:
		return unsigned[c-convertedUint8]
	case c >= convertedInt8 && c < convertedJSON:
		return signed[c-convertedInt8]
	}
	return typ
}
