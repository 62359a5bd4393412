// Package rows reads and writes records as text: JSON Lines and comma-separated values.
//
// A file of JSON Lines has an object for each record, whose values are numbers, truth values,
// or lists of these, nested as deep as a tensor has axes. A file of comma-separated values has
// a number in each cell; its first line may name the columns. Neither states element types,
// so they are given when elements are read: integers must be whole and in range, floats are
// rounded once, to nearest. What JSON has no number for, such as "NaN", is a string; no other
// string is read.
//
// Call [ReadJSON] or [ReadCSV], and then [Column.Tensor]; [Append] writes what ReadJSON reads.
//
// Invariant: what is read takes memory in proportion to its bytes, which callers bound.
//
// Sources: jsonlines.org, RFC 8259, RFC 4180.
package rows

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// MaxColumns bounds the names of a file.
const MaxColumns = 1 << 12

// bareNumber finds what Python writes for a number that JSON does not have.
var bareNumber = regexp.MustCompile(`[\[:,]\s*-?(NaN|Infinity)`)

// mark is what some programs begin a text in UTF-8 with.
var mark = []byte("\ufeff")

// Table is what a file holds.
type Table struct {
	Columns map[string]*Column // by name
	Rows    *Column            // of comma-separated values: all columns as one
}

// Column is one value of each record, as text.
type Column struct {
	cells []string
	shape tensor.Shape
}

// ReadJSON reads an object from each line. All have the same names.
func ReadJSON(text []byte) (*Table, error) {
	t := &Table{Columns: map[string]*Column{}}
	record := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, mark)) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := t.object(line, record); err != nil {
			if bad := new(json.SyntaxError); errors.As(err, &bad) && bareNumber.Match(line) {
				err = fmt.Errorf("%w: JSON has no number for it, so write \"NaN\", \"Infinity\" or \"-Infinity\" as a string", err)
			}
			return nil, fmt.Errorf("record %d: %w", record, err)
		}
		record++
	}
	if record == 0 {
		return nil, errors.New("there are no records")
	}
	return t, t.settle()
}

// object adds the values of a record.
func (t *Table) object(line []byte, record int) error {
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.Join(errors.New("it is no object, such as {\"x\": [1, 2]}"), err)
	}
	names := 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := key.(string) // what else stands there is an error
		var cell json.RawMessage
		if err := d.Decode(&cell); err != nil {
			return err
		}
		c := t.Columns[name]
		if c == nil && record == 0 && names < MaxColumns {
			c = &Column{}
			t.Columns[name] = c
		}
		if c == nil || len(c.cells) != record {
			return fmt.Errorf("%.40q is not in the first record, or here twice, or one of more than %d", name, MaxColumns)
		}
		c.cells = append(c.cells, string(cell))
		names++
	}
	if names != len(t.Columns) {
		return fmt.Errorf("it has %d values, the first has %d", names, len(t.Columns))
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// ReadCSV reads comma-separated numbers. If the cells of the first line are none, they name
// the columns.
func ReadCSV(text []byte) (*Table, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, mark)))
	r.ReuseRecord = true
	t := &Table{Columns: map[string]*Column{}, Rows: &Column{}}
	first, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("there are no records")
	} else if err != nil {
		return nil, err
	}
	columns, err := t.header(first)
	if err == nil && columns == nil {
		err = t.line(first, nil)
	}
	for err == nil {
		var cells []string
		if cells, err = r.Read(); err == nil { // as many as the first line has
			err = t.line(cells, columns)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(t.Rows.cells) == 0 {
		return nil, errors.New("there are no records")
	}
	return t, t.settle()
}

// header makes the columns that the cells of a first line name, and none if they are numbers.
func (t *Table) header(cells []string) (columns []*Column, err error) {
	if len(cells) > MaxColumns {
		return nil, fmt.Errorf("%d columns, limit %d", len(cells), MaxColumns)
	}
	if counts(cells) {
		return nil, errors.New("the first line counts the columns, and so may be their names or a record: name them, or take the line out (in pandas: header=False)")
	}
	if len(cells) == 1 && strings.ContainsAny(cells[0], ";\t") {
		return nil, errors.New("the first line has no comma, and something else between its values: separate them by commas (in pandas: sep=',')")
	}
	names := 0
	for _, c := range cells {
		if named(c) {
			names++
		}
	}
	if names == 0 {
		return nil, nil
	}
	for _, c := range cells {
		name := strings.Clone(strings.TrimSpace(c))
		switch {
		case names < len(cells) && !named(c):
			return nil, fmt.Errorf("the first line has the number %.20q among names: give every column a name, and every record numbers", c)
		case name == "":
			return nil, fmt.Errorf("column %d has no name: name it, or take it out (in pandas: index=False)", len(columns))
		case t.Columns[name] != nil:
			return nil, fmt.Errorf("two columns are called %.40q", name)
		}
		t.Columns[name] = &Column{}
		columns = append(columns, t.Columns[name])
	}
	return columns, nil
}

// named reports whether a cell is a name, and no number.
func named(cell string) bool {
	cell = strings.TrimSpace(cell)
	_, err := strconv.ParseFloat(cell, 64)
	_, truth := truths[cell]
	return errors.Is(err, strconv.ErrSyntax) && !truth
}

// counts reports whether cells are 0, 1, 2 and so on.
func counts(cells []string) bool {
	for i, c := range cells {
		if c != strconv.Itoa(i) {
			return false
		}
	}
	return len(cells) > 1
}

// line adds the cells of a record.
func (t *Table) line(cells []string, columns []*Column) error {
	for i, c := range cells {
		if strings.ContainsAny(c, `[]{},"`) {
			return fmt.Errorf("record %d has %.20q, which is no number", len(t.Rows.cells), c)
		}
		if columns != nil {
			columns[i].cells = append(columns[i].cells, strings.Clone(c))
		}
	}
	t.Rows.cells = append(t.Rows.cells, "["+strings.Join(cells, ",")+"]")
	return nil
}

// settle finds the shapes, which are those of the first record.
func (t *Table) settle() error {
	all := maps.Clone(t.Columns)
	if t.Rows != nil {
		all[""] = t.Rows
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		s := scanner{text: c.cells[0]}
		inner, err := s.shape(nil, 0)
		if quoted, bad := strconv.Unquote(c.cells[0]); bad == nil && !notFinite(quoted) {
			err = fmt.Errorf("%.40s is no number%s", c.cells[0], hint(c.cells[0]))
		}
		if err == nil {
			c.shape = append(tensor.Shape{len(c.cells)}, inner...)
			err = c.shape.Check()
		}
		if err != nil {
			return fmt.Errorf("record 0, %.40q: %w", name, err)
		}
	}
	return nil
}

// Shape returns the shape of all records together: the first axis counts them.
func (c *Column) Shape() tensor.Shape { return c.shape.Clone() }

// Tensor returns the records as elements of a type.
func (c *Column) Tensor(typ tensor.DType) (*tensor.Tensor, error) {
	inner := c.shape[1:]
	each := inner.Elements()
	for i, cell := range c.cells { // a short record shall not stand for much memory
		if len(cell) < 2*each-1 {
			return nil, fmt.Errorf("record %d has fewer numbers than the first, %d: all records have one shape; pad them", i, each)
		}
	}
	t, err := tensor.New(typ, c.shape)
	if err != nil {
		return nil, err
	}
	for i, cell := range c.cells {
		f := filler{scanner: scanner{text: cell}, into: t, at: i * each}
		if err := f.fill(inner); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
	}
	return t, nil
}

// word returns an element that a text stands for.
func word(typ tensor.DType, text string) (tensor.Word, error) {
	bits := 8 * typ.Size()
	switch typ {
	case tensor.Bool:
		if w, ok := truths[text]; ok {
			return w, nil
		}
		return 0, fmt.Errorf("%.20q is neither true nor false", text)
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		v, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return 0, wrongWord(typ, text)
		}
		return tensor.Word(v), nil
	}
	if typ.Integer() {
		v, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return 0, wrongWord(typ, text)
		}
		return tensor.Word(v), nil
	}
	if quoted, err := strconv.Unquote(text); err == nil && notFinite(quoted) {
		text = quoted
	}
	if typ == tensor.Float32 {
		v, err := strconv.ParseFloat(text, 32)
		if err != nil || strings.ContainsAny(text, "_xX") {
			return 0, wrongWord(typ, text)
		}
		return tensor.F32(float32(v)), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	w := tensor.FloatWord(typ, v)
	if err != nil || strings.ContainsAny(text, "_xX") || math.IsInf(tensor.FloatOf(typ, w), 0) && !math.IsInf(v, 0) {
		return 0, wrongWord(typ, text)
	}
	return w, nil
}

func wrongWord(typ tensor.DType, text string) error {
	return fmt.Errorf("%.40s is no %v%s", text, typ, hint(text))
}

// truths are how people and programs write the elements of tensors of bool.
var truths = map[string]tensor.Word{"true": 1, "True": 1, "TRUE": 1, "1": 1, "false": 0, "False": 0, "FALSE": 0, "0": 0}

// notFinite reports whether a text is one for which JSON has no number.
func notFinite(s string) bool {
	v, err := strconv.ParseFloat(s, 64)
	return err == nil && (math.IsNaN(v) || math.IsInf(v, 0))
}

// hint says what to do about a text that is no number.
func hint(text string) string {
	switch {
	case strings.HasPrefix(text, `"`):
		return ": a string is no record; turn it into numbers first, as a tokenizer does"
	case text == "null", text == "":
		return ": every record has all values"
	}
	return ""
}
