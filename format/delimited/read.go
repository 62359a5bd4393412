// Package delimited reads tables as text: records of cells with a comma, a semicolon or a tab
// between them (CSV, TSV).
//
// Call [Read] with the bytes of a file. A record is a line; a cell that begins with a quote may
// hold separators, line ends and doubled quotes. What an [Options] leaves open is found out:
//
//   - The separator is the first of tab, semicolon and comma that stands in the first record, and
//     as often in each of the nine after it; a comma if none does.
//   - The first record names the columns if every cell of it may be a name: text that is no number,
//     no truth value, and no word for a missing value. An empty cell among names may be one, as
//     pandas writes for its index. Columns without a name are called column1, column2, ….
//   - A column whose cells are all whole numbers within int64 is an integer; if all are numbers, it
//     is real; if all are truth values, boolean; otherwise a category or text ([table.TextBuilder]).
//     Cells without a value, by the words of pandas ([table.MeansMissing]), do not count.
//
// Invariants: each number is rounded once, to nearest. No result depends on more than the bytes and
// options. A table takes at most twenty times the memory of its text, however short its cells are.
//
// Sources: RFC 4180; pandas' read_csv for words of missing values.
package delimited

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// Header says whether the first record names the columns.
type Header uint8

// What the first record is.
const (
	Guessed Header = iota // found out
	Names                 // names of the columns
	Values                // values like all others
)

// Options are what the reader is told. Nothing of it needs to be.
type Options struct {
	Separator byte                  // comma, semicolon or tab; 0: found out
	Header    Header                // whether the first record names the columns
	Kinds     map[string]table.Kind // of columns by name: Integer, Real, Boolean, Category or Text
	Missing   []string              // words that stand for no value, beside the usual
	Allocator tensor.Allocator      // of columns
}

// mark is what some programs begin a text in UTF-8 with.
var mark = []byte("\ufeff")

// Read returns the table that a text holds, without changing it.
func Read(text []byte, o Options) (*table.Table, error) {
	text = bytes.TrimPrefix(text, mark)
	if err := table.CheckText(text); err != nil {
		return nil, err
	}
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(text[:n:n], '\n') // every cell has an end
	}
	r := &reader{scanner: scanner{text: text, line: 1, separator: o.Separator}, options: o}
	if err := r.begin(); err != nil {
		return nil, err
	}
	start := r.scanner
	if err := r.pass(); err != nil {
		return nil, err
	}
	if r.again() {
		r.scanner = start
		if err := r.pass(); err != nil {
			return nil, err
		}
	}
	return r.table()
}

// reader reads a table.
type reader struct {
	scanner
	options Options
	columns []column
	records int
}

// begin finds the separator, the names of the columns and where records start.
func (r *reader) begin() error {
	switch r.separator {
	case 0:
		r.separator = guess(r.text)
	case ',', ';', '\t':
	default:
		return fmt.Errorf("separator %q: take a comma, a semicolon or a tab", r.separator)
	}
	r.blank()
	if r.at == len(r.text) {
		return errors.New("there are no records")
	}
	start := r.scanner
	cells, err := r.record()
	if err != nil {
		return err
	}
	named := r.options.Header == Names
	if r.options.Header == Guessed {
		if counts(cells) {
			return errors.New("the first line counts the columns, and so may be their names or a record: say which (header), or take the line out (in pandas: header=False)")
		}
		named = r.names(cells)
	}
	for i, c := range cells {
		name := "column" + strconv.Itoa(i+1)
		if trimmed := bytes.TrimSpace(c); named && len(trimmed) > 0 {
			name = string(trimmed)
		}
		r.columns = append(r.columns, column{name: name, kind: r.options.Kinds[name], alloc: r.options.Allocator})
	}
	if !named {
		r.scanner = start
	}
	return r.prepare()
}

// prepare gives columns room for the records that there may be.
func (r *reader) prepare() error {
	known := make(map[string]bool, len(r.columns))
	for _, c := range r.columns {
		if known[c.name] {
			return fmt.Errorf("line 1: two columns are called %.40q: rename one of them", c.name)
		}
		known[c.name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(r.options.Kinds)) {
		switch kind := r.options.Kinds[name]; {
		case !known[name]:
			return fmt.Errorf("no column is called %.40q, for which a kind is given", name)
		case kind < table.Integer || kind > table.Text:
			return fmt.Errorf("column %.40q: a cell of text is no %v: take integer, real, boolean, category or text", name, kind)
		}
	}
	left := r.text[r.at:]
	room := min(bytes.Count(left, []byte{'\n'}), len(left)/len(r.columns)+1) // a record has a byte for each column at least, but for one that is refused
	for i := range r.columns {
		r.columns[i].room, r.columns[i].given = room, r.columns[i].kind != 0
		r.columns[i].bytes = 2 * len(left) / len(r.columns)
	}
	return nil
}

// names reports whether cells may name columns.
func (r *reader) names(cells [][]byte) bool {
	some := false
	for _, c := range cells {
		c = bytes.TrimSpace(c)
		if len(c) == 0 {
			continue
		}
		_, end := table.ScanNumber(c, 0)
		_, truth := table.Truth(c)
		if end == len(c) || truth || infinite(c) || r.missing(c) {
			return false
		}
		some = true
	}
	return some
}

// counts reports whether cells are 0, 1, 2 and so on.
func counts(cells [][]byte) bool {
	for i, c := range cells {
		if string(c) != strconv.Itoa(i) {
			return false
		}
	}
	return len(cells) > 1
}

// missing reports whether a cell has no value.
func (r *reader) missing(cell []byte) bool {
	if table.MeansMissing(cell) {
		return true
	}
	for _, word := range r.options.Missing {
		if string(cell) == word {
			return true
		}
	}
	return false
}

// pass reads all records into the columns that want them.
func (r *reader) pass() error {
	r.records = 0
	last := len(r.columns) - 1
	for r.blank(); r.at < len(r.text); r.blank() {
		line := r.line
		for i := r.quick(0); i <= last; i = r.quick(i + 1) {
			if err := r.value(&r.columns[i]); err != nil {
				return fmt.Errorf("line %d, column %.40q: %w", line, r.columns[i].name, err)
			}
			switch end := r.text[r.at]; {
			case i < last && end != r.separator:
				return fmt.Errorf("line %d has %d cells, the first line %d: fill the record up, or take it out", line, i+1, last+1)
			case i == last && end == r.separator:
				return fmt.Errorf("line %d has more cells than the first line, %d: put a cell that holds a %q in quotes", line, last+1, r.separator)
			case i < last:
				r.at++
			}
		}
		r.endLine()
		r.records++
	}
	if r.records == 0 {
		return errors.New("there are no records, but names of columns alone")
	}
	return nil
}

// quick reads cells of a record from column i on, as long as they are read quickly, and returns the column of the next.
func (r *reader) quick(i int) int {
	at, last := r.at, len(r.columns)-1
	for ; i < last; i++ {
		next := r.columns[i].quick(r.text, at, r.separator, r.separator)
		if next == at {
			break
		}
		at = next
	}
	if r.at = at; i == last {
		if next := r.columns[i].quick(r.text, at, '\n', r.separator); next > at {
			r.at = next - 1 // the line ends there
			i++
		}
	}
	return i
}

// again prepares the columns that turned out to hold texts after numbers, and reports whether
// there are any.
func (r *reader) again() (some bool) {
	for i := range r.columns {
		c := &r.columns[i]
		if c.failed {
			*c = column{name: c.name, room: c.room, bytes: c.bytes, alloc: c.alloc, texts: table.NewTextBuilder(0, c.room, c.bytes, c.alloc)}
			some = true
		} else {
			c.done = true
		}
	}
	return some
}

// table returns what was read.
func (r *reader) table() (*table.Table, error) {
	var all []*table.Column
	for i := range r.columns {
		c, err := r.columns[i].column(r.records)
		if err != nil {
			return nil, fmt.Errorf("column %.40q: %w", r.columns[i].name, err)
		}
		all = append(all, c)
	}
	return table.New(all...)
}
