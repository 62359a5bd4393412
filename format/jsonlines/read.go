// Package jsonlines reads tables as lines of JSON, an object for each record.
//
// Call [Read] with the bytes of a file; [Append] writes numbers as it reads them. A value is a number, a truth value, a text, null for none, or
// a list of numbers or truth values, nested as deep as a tensor has axes. A name that a record does not have is
// a missing value. Numbers of a column that are all digits within int64 are integers, others real; lists
// make an array of int64 or float64. Texts are a category or text ([table.TextBuilder]). Objects, and lists that
// begin with one, are kept as their text. What
// JSON has no number for, "NaN", "Infinity" and "-Infinity", is a text among numbers; the first is a missing value.
//
// Invariants: all values of a column are of one kind, and all lists of one shape. Each number is
// rounded once, to nearest. Memory is in proportion to the text: there are no more cells, those
// that are missing counted too, than bytes.
//
// Sources: jsonlines.org, RFC 8259.
package jsonlines

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// Options are what the reader is told. Nothing of it needs to be.
type Options struct {
	Kinds     map[string]table.Kind // of columns by name
	Allocator tensor.Allocator      // of columns
}

// Read returns the table that a text holds.
func Read(text []byte, o Options) (*table.Table, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := table.CheckText(text); err != nil {
		return nil, err
	}
	r := &reader{scanner: scanner{text: text}, named: map[string]int{}, options: o}
	line := 0
	for len(r.text) > r.at {
		line++
		if r.space(); r.at == len(r.text) || r.text[r.at] == '\n' {
			r.at++
			continue
		}
		if err := r.record(); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if len(r.columns) > len(text)/max(r.records, 1) {
			return nil, fmt.Errorf("line %d: records lack more values than the file has bytes: give each record the names of all, or write several files", line)
		}
	}
	return r.table()
}

// reader reads a table.
type reader struct {
	scanner
	options Options
	columns []*column
	named   map[string]int
	records int
}

// record reads an object, and the end of its line.
func (r *reader) record() error {
	if !r.skip('{') {
		return errors.New("it is no object, such as {\"x\": [1, 2]}")
	}
	for place := 0; !r.skip('}'); place++ {
		if place > 0 && !r.skip(',') {
			return fmt.Errorf("a comma or } is wanted before %s", r.rest())
		}
		name, err := r.quoted()
		if err != nil {
			return err
		}
		c, err := r.column(name, place)
		if err != nil {
			return err
		}
		if !r.skip(':') {
			return fmt.Errorf("a colon is wanted before %s", r.rest())
		}
		if c.seen == r.records+1 {
			return fmt.Errorf("%.40q is there twice", name)
		}
		c.seen = r.records + 1
		if err := c.value(&r.scanner, r.records); err != nil {
			return fmt.Errorf("%.40q: %w", name, err)
		}
	}
	if r.space(); r.at < len(r.text) && r.text[r.at] != '\n' {
		return fmt.Errorf("%s follows the object: a record is a line", r.rest())
	}
	r.at++
	r.records++
	return nil
}

// column returns the column of a name, which is often at the place where it was in the first record.
func (r *reader) column(name []byte, place int) (*column, error) {
	if place < len(r.columns) && r.columns[place].name == string(name) {
		return r.columns[place], nil
	}
	if i, ok := r.named[string(name)]; ok {
		return r.columns[i], nil
	}
	if len(r.columns) == table.MaxColumns {
		return nil, fmt.Errorf("more than %d names: put numbers that belong together into a list", table.MaxColumns)
	}
	c := &column{name: string(name), alloc: r.options.Allocator}
	if k := r.options.Kinds[c.name]; k == table.Category || k == table.Text || k == table.JSON {
		c.textKind = k
	}
	r.named[c.name] = len(r.columns)
	r.columns = append(r.columns, c)
	return c, nil
}

// table returns what was read, of the kinds that are given.
func (r *reader) table() (*table.Table, error) {
	if r.records == 0 {
		return nil, errors.New("there are no records")
	}
	for _, name := range slices.Sorted(maps.Keys(r.options.Kinds)) {
		if _, ok := r.named[name]; !ok {
			return nil, fmt.Errorf("no column is called %.40q, for which a kind is given", name)
		}
	}
	var all []*table.Column
	for _, c := range r.columns {
		out, err := c.table(r.records)
		if kind := r.options.Kinds[c.name]; err == nil && kind != 0 {
			out, err = out.As(kind)
		}
		if err != nil {
			return nil, fmt.Errorf("column %.40q: %w", c.name, err)
		}
		all = append(all, out)
		*c = column{name: c.name, alloc: c.alloc} // its memory is free
	}
	return table.New(all...)
}
