package parquet

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// document is a column that is read as JSON: a tree, whose leaves are columns of the file. The levels of their values say which
// lists and structs are there, as in Dremel (Melnik et al., 2010).
type document struct {
	name     string
	key      []byte // the name as JSON, and a colon
	kind     documentKind
	def, rep int         // levels: from def on it is there; a value of level rep begins another element of this list
	fields   []*document // of a struct; of a list, its element alone
	leaves   int         // columns below it
}

type documentKind uint8

const (
	value documentKind = iota
	object
	list
)

// stream is what a document is made of, of one column of the file.
type stream struct {
	rep, def []uint8
	texts    table.Strings
	column   *column
	at, next int // levels, and values, that have been taken
}

// newDocument reads the part of a schema that describes one column, which has been walked.
func newDocument(schema []node) *document {
	t := &treeReader{schema: schema}
	return t.read(0, 0)
}

// treeReader turns a part of a schema into a tree.
type treeReader struct {
	schema []node
	at     int
}

// read reads a node that lies below some levels.
func (t *treeReader) read(def, rep int) *document {
	n := t.schema[t.at]
	switch n.repetition {
	case repeated: // a list without a group around it
		d := &document{name: n.name, kind: list, def: def, rep: rep + 1}
		return d.with(t.body(def+1, rep+1))
	case optional:
		def++
	}
	return t.body(def, rep)
}

// body reads a node but its repetition.
func (t *treeReader) body(def, rep int) *document {
	n := t.schema[t.at]
	t.at++
	d := &document{name: n.name, def: def}
	if n.physical >= 0 && n.children == 0 {
		d.leaves = 1
		return d
	}
	if isList := n.logical == logicalList || n.converted == convertedList; isList && n.children == 1 && t.schema[t.at].repetition == repeated {
		d.kind, d.rep = list, rep+1
		if t.schema[t.at].children == 1 { // a group around each element
			t.at++
			return d.with(t.read(def+1, rep+1))
		}
		return d.with(t.body(def+1, rep+1))
	}
	d.kind = object
	for range n.children {
		if f := t.read(def, rep); f.leaves > 0 {
			d.with(f)
		}
	}
	return d
}

// with adds a field, or an element.
func (d *document) with(field *document) *document {
	if d.kind == object {
		field.key = append(appendText(nil, field.name), ':')
	}
	d.fields = append(d.fields, field)
	d.leaves += field.leaves
	return d
}

// document reads a column of JSON, whose leaves begin with that of number first.
func (r *reader) document(d *document, leaves []leaf, first int) (*table.Column, error) {
	streams := make([]*stream, d.leaves)
	for i := range streams {
		s := &stream{}
		var err error
		if s.column, err = r.values(&leaves[first+i], first+i, s); err != nil {
			return nil, err
		}
		streams[i] = s
	}
	out := &table.Column{Name: d.name, Kind: table.JSON}
	var b []byte
	for record := range int(r.meta.rows) {
		var ok bool
		var err error
		if b, ok, err = d.append(b[:0], streams); err != nil {
			return nil, err
		}
		for _, s := range streams {
			if s.at < len(s.rep) && s.rep[s.at] != 0 {
				return nil, errMany
			}
		}
		if !ok {
			if out.Missing == nil {
				out.Missing = make([]bool, r.meta.rows)
			}
			out.Missing[record], b = true, b[:0]
		}
		if err := r.spend(1, int64(len(b))); err != nil { // names stand in every record
			return nil, err
		}
		if err := out.Texts.Append(b); err != nil {
			return nil, err
		}
	}
	for _, s := range streams {
		if s.at < len(s.rep) {
			return nil, errMany
		}
	}
	return out, nil
}

// level returns the definition level of the next value.
func (s *stream) level() (int, error) {
	if s.at >= len(s.rep) || s.at >= len(s.def) {
		return 0, errMany
	}
	return int(s.def[s.at]), nil
}

// growing is how many bytes are allocated for each that a record takes in the end.
const growing = 8

// append appends the next of a document as JSON, and reports whether there is one: otherwise it is null.
func (d *document) append(b []byte, streams []*stream) (_ []byte, ok bool, err error) {
	level, err := streams[0].level()
	if err != nil {
		return b, false, err
	}
	if level < d.def {
		return append(b, "null"...), false, d.skip(streams)
	}
	switch d.kind {
	case object:
		b, err = d.appendObject(b, streams)
	case list:
		b, err = d.appendList(b, streams, level)
	default:
		s := streams[0]
		s.at++
		b, err = s.append(b)
	}
	if err == nil && int64(len(b)) > streams[0].column.r.budget/growing { // names and escapes make much of little
		err = errBudget
	}
	return b, true, err
}

// skip passes a value of each column.
func (d *document) skip(streams []*stream) error {
	for _, s := range streams[:d.leaves] {
		if _, err := s.level(); err != nil {
			return err
		}
		s.at++
	}
	return nil
}

// appendObject appends a struct. Fields that are null are left out: a schema has all that any record has.
func (d *document) appendObject(b []byte, streams []*stream) ([]byte, error) {
	b = append(b, '{')
	first := true
	for _, f := range d.fields {
		before := len(b)
		if !first {
			b = append(b, ',')
		}
		var ok bool
		var err error
		if b, ok, err = f.append(append(b, f.key...), streams); err != nil {
			return b, err
		}
		if streams = streams[f.leaves:]; ok {
			first = false
		} else {
			b = b[:before]
		}
	}
	return append(b, '}'), nil
}

func (d *document) appendList(b []byte, streams []*stream, level int) (_ []byte, err error) {
	if b = append(b, '['); level == d.def { // it is there, and empty
		return append(b, ']'), d.skip(streams)
	}
	for s := streams[0]; ; b = append(b, ',') {
		if b, _, err = d.fields[0].append(b, streams); err != nil {
			return b, err
		}
		if s.at >= len(s.rep) || int(s.rep[s.at]) < d.rep {
			return append(b, ']'), nil
		}
	}
}

// append appends the next value as JSON.
func (s *stream) append(b []byte) ([]byte, error) {
	i, c := s.next, s.column
	s.next++
	if c.typ == 0 {
		if i >= s.texts.Len() {
			return b, errMany
		}
		return appendText(b, s.texts.At(i)), nil
	}
	if i >= c.n {
		return b, errMany
	}
	w := c.values.At(i)
	switch {
	case c.typ == tensor.Bool:
		return strconv.AppendBool(b, w != 0), nil
	case c.typ.Unsigned():
		return strconv.AppendUint(b, w, 10), nil
	case c.typ.Integer():
		return strconv.AppendInt(b, int64(w), 10), nil
	}
	x, bits := tensor.FloatOf(c.typ, w), 32
	if c.typ == tensor.Float64 {
		bits = 64
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return b, fmt.Errorf("%v is no number in JSON: take the record out", x)
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits), nil
}

// appendText appends a text, as it stands but for what JSON has to escape.
func appendText(b []byte, text string) []byte {
	b = append(b, '"')
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
