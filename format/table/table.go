// Package table is what every source of training data gives: named columns, one value a record.
//
// A [Column] has a kind, and values: a tensor whose first axis counts records, or texts. A
// category is a tensor too, of numbers that stand for its texts. Readers of files make a [Table]
// by [New]; those who train look at it with [Table.Describe], replace what is missing with
// [Column.Learn] and [Column.Fill], choose records with [Table.Take], and get elements of the
// type that a model wants from [Column.Tensor].
//
// Invariants: all columns of a table have the same number of records, at least one. Categories
// ascend by their bytes, so that their numbers do not depend on the order of records. A value that
// is missing is 0 in an integer or boolean column, NaN in a real one, −1 in a category and "" in
// a text, and [Column.Missing] tells it from others.
//
// Source: docs/spec/tables.md.
package table

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// Limits on a table.
const (
	MaxColumns    = 1 << 12
	MaxRecords    = 1<<31 - 1
	MaxCategories = 1 << 16 // texts of a category
	MaxName       = 1 << 10 // bytes of a column's name
)

// Kind is what the values of a column are.
type Kind uint8

// The kinds.
const (
	Integer  Kind = iota + 1 // a whole number: any integer type, [n]
	Real                     // a number: any float type, [n]
	Boolean                  // bool, [n]
	Category                 // one of some texts: int32 [n], an index of Categories
	Text                     // any text
	Array                    // numbers of one shape, of any type: [n, …]
	Image                    // pixels: uint8 [n, height, width, channels]
	JSON                     // objects, or lists of them, as their text
)

// kinds are the names of kinds.
var kinds = [...]string{Integer: "integer", Real: "real", Boolean: "boolean", Category: "category", Text: "text", Array: "array", Image: "image", JSON: "json"}

// String returns the kind's name.
func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k] != "" {
		return kinds[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind returns the kind of a name.
func ParseKind(name string) (Kind, error) {
	if k := slices.Index(kinds[1:], name); k >= 0 {
		return Kind(k + 1), nil
	}
	return 0, fmt.Errorf("%.40q is no kind of column: take one of %q", name, kinds[1:])
}

// Table is named columns of one length.
type Table struct {
	Records int
	Columns []*Column // in the order of their source
}

// Column is one value of each record.
type Column struct {
	Name       string
	Kind       Kind
	Values     *tensor.Tensor   // the first axis counts records; of texts and JSON, nil
	Texts      Strings          // of those
	Categories []string         // of a category
	Missing    []bool           // by record; nil where every record has a value
	Allocator  tensor.Allocator // in which lies what is made of it; nil: Go's
}

// New returns a table of columns.
func New(columns ...*Column) (*Table, error) {
	if len(columns) == 0 || len(columns) > MaxColumns {
		return nil, fmt.Errorf("%d columns: a table has 1 to %d", len(columns), MaxColumns)
	}
	named := make(map[string]bool, len(columns))
	for _, c := range columns {
		switch {
		case c.Name == "" || len(c.Name) > MaxName:
			return nil, fmt.Errorf("column %.40q: a name has 1 to %d bytes", c.Name, MaxName)
		case named[c.Name]:
			return nil, fmt.Errorf("two columns are called %.40q: rename one of them", c.Name)
		case c.Len() != columns[0].Len():
			return nil, fmt.Errorf("column %.40q has %d records, column %.40q %d: all have the same number", c.Name, c.Len(), columns[0].Name, columns[0].Len())
		case c.Values != nil && c.Shape().Elements() == 0: // a file of no length could claim any number
			return nil, fmt.Errorf("column %.40q has no value in a record, as its shape %v says: take it out", c.Name, c.Values.Shape)
		}
		named[c.Name] = true
	}
	if n := columns[0].Len(); n == 0 {
		return nil, fmt.Errorf("there are no records")
	} else if n > MaxRecords {
		return nil, fmt.Errorf("there are %d records: a table has %d at most", n, MaxRecords)
	}
	return &Table{columns[0].Len(), columns}, nil
}

// Join returns a table of the columns of several, which hold the same records.
func Join(tables ...*Table) (*Table, error) {
	var all []*Column
	for _, t := range tables {
		all = append(all, t.Columns...)
	}
	return New(all...)
}

// Of returns a column of a tensor: its kind follows from type and shape. A NaN among reals is a
// missing value.
func Of(name string, t *tensor.Tensor) (*Column, error) {
	c := &Column{Name: name, Values: t}
	switch {
	case len(t.Shape) == 0:
		return nil, fmt.Errorf("column %.40q is a single number: its first axis counts records", name)
	case len(t.Shape) > 1:
		c.Kind = Array
	case t.Type == tensor.Bool:
		c.Kind = Boolean
	case t.Type.Integer():
		c.Kind = Integer
	default:
		c.Kind, c.Missing = Real, lacking(t)
	}
	return c, nil
}

// lacking returns which reals are NaN; nil: none.
func lacking(t *tensor.Tensor) (bits []bool) {
	switch t.Type {
	case tensor.Float64:
		return notNumbers(tensor.Of[float64](t))
	case tensor.Float32:
		return notNumbers(tensor.Of[float32](t))
	}
	for i := range t.Len() {
		if x := tensor.FloatOf(t.Type, t.At(i)); x != x {
			bits = marked(bits, t.Len(), i)
		}
	}
	return bits
}

func notNumbers[T float32 | float64](all []T) (bits []bool) {
	for i, x := range all {
		if x != x {
			bits = marked(bits, len(all), i)
		}
	}
	return bits
}

// marked sets flag i of n; it makes the flags when they are nil.
func marked(bits []bool, n, i int) []bool {
	if bits == nil {
		bits = make([]bool, n)
	}
	bits[i] = true
	return bits
}

// shownNames is how many names an error lists.
const shownNames = 12

// Column returns the column of a name.
func (t *Table) Column(name string) (*Column, error) {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if names[i] = c.Name; c.Name == name {
			return c, nil
		}
	}
	more := ""
	if n := len(names) - shownNames; n > 0 {
		more = fmt.Sprintf(" and %d others", n)
	}
	return nil, fmt.Errorf("no column is called %.40q, but %.80q%s", name, names[:min(len(names), shownNames)], more)
}

// written reports whether the column holds texts.
func (c *Column) written() bool { return c.Kind == Text || c.Kind == JSON }

// Len returns the number of records.
func (c *Column) Len() int {
	if c.written() {
		return c.Texts.Len()
	}
	return c.Values.Shape[0]
}

// Shape returns the shape of one record: none of an array has an axis.
func (c *Column) Shape() tensor.Shape {
	if c.written() {
		return nil
	}
	return c.Values.Shape[1:].Clone()
}

// Lacks reports whether record i has no value.
func (c *Column) Lacks(i int) bool { return c.Missing != nil && c.Missing[i] }

// CountMissing returns how many records have no value.
func (c *Column) CountMissing() (n int) {
	for _, m := range c.Missing {
		if m {
			n++
		}
	}
	return n
}

// Take returns a table of the given records, in that order. One may be there twice.
func (t *Table) Take(records []int) (*Table, error) {
	out := &Table{Records: len(records)}
	for _, c := range t.Columns {
		taken, err := c.Take(records)
		if err != nil {
			return nil, err
		}
		out.Columns = append(out.Columns, taken)
	}
	return out, nil
}

// Take returns a column of the given records.
func (c *Column) Take(records []int) (*Column, error) {
	for _, i := range records {
		if i < 0 || i >= c.Len() {
			return nil, fmt.Errorf("column %.40q has %d records, and so none of number %d", c.Name, c.Len(), i)
		}
	}
	out := &Column{Name: c.Name, Kind: c.Kind, Categories: c.Categories, Texts: Strings{alloc: c.Allocator}, Allocator: c.Allocator}
	for at, i := range records {
		if c.Lacks(i) {
			out.Missing = marked(out.Missing, len(records), at)
		}
	}
	if c.written() {
		for _, i := range records {
			if err := out.Texts.Append(c.Texts.bytes(i)); err != nil {
				return nil, fmt.Errorf("column %.40q: %w", c.Name, err)
			}
		}
		return out, nil
	}
	t, err := c.Allocator.New(c.Values.Type, append(tensor.Shape{len(records)}, c.Shape()...))
	if err != nil {
		return nil, fmt.Errorf("column %.40q: %w", c.Name, err)
	}
	each := len(c.Values.Bytes()) / c.Len()
	for at, i := range records {
		copy(t.Bytes()[at*each:][:each], c.Values.Bytes()[i*each:])
	}
	out.Values = t
	return out, nil
}

// Value returns record i as text: a number in its shortest digits, "" for what is missing.
func (c *Column) Value(i int) string {
	switch {
	case c.Lacks(i):
		return ""
	case c.written():
		return c.Texts.At(i)
	case c.Kind == Category:
		return c.Categories[tensor.Of[int32](c.Values)[i]]
	case c.Kind == Array || c.Kind == Image:
		return fmt.Sprintf("%v%v", c.Values.Type, c.Values.Shape[1:])
	}
	return number(c.Values.Type, c.Values.At(i))
}
