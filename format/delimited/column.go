package delimited

import (
	"bytes"
	"fmt"
	"math"
	"runtime"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// column is what a column has been found to hold so far.
type column struct {
	name    string
	kind    table.Kind // 0: no value yet
	given   bool       // the kind may not change
	failed  bool       // a text came after numbers: all is read again as texts
	done    bool       // and this one is not
	room    int        // records that there may be
	bytes   int        // of text that may be allocated at once
	alloc   tensor.Allocator
	n       int // records read
	values  *tensor.Tensor
	ints    []int64
	floats  []float64
	bools   []uint8
	missing []bool
	texts   *table.TextBuilder
}

var elementTypes = map[table.Kind]tensor.DType{table.Integer: tensor.Int64, table.Real: tensor.Float64, table.Boolean: tensor.Bool}

// become makes a column one of a kind; what was read before has no value, or is an integer that becomes real.
func (c *column) become(kind table.Kind) error {
	if kind == table.Category || kind == table.Text || kind == 0 {
		if !c.given {
			kind = 0 // found out at the end
		}
		c.texts = table.NewTextBuilder(kind, c.room, c.bytes, c.alloc)
		for range c.n {
			if err := c.texts.AppendMissing(); err != nil {
				return err
			}
		}
		c.kind = table.Text
		return nil
	}
	t, err := c.alloc.New(elementTypes[kind], tensor.Shape{c.room})
	if err != nil {
		return fmt.Errorf("%w: split the file", err)
	}
	before, owner := c.ints, c.values
	defer runtime.KeepAlive(owner) // their memory may not be Go's
	c.kind, c.values, c.ints, c.floats, c.bools = kind, t, nil, nil, nil
	switch kind {
	case table.Integer:
		c.ints = tensor.Of[int64](t)
	case table.Boolean:
		c.bools = tensor.Of[uint8](t)
	default:
		c.floats = tensor.Of[float64](t)
		for i := range c.n {
			if c.floats[i] = math.NaN(); before != nil && !c.lacks(i) {
				c.floats[i] = float64(before[i])
			}
		}
	}
	return nil
}

func (c *column) lacks(i int) bool { return c.missing != nil && c.missing[i] }

// quick reads the next cell as most are, a short one of the column's kind that a byte ends, and passes that byte. What
// else there may be it leaves to value: then it returns at.
func (c *column) quick(text []byte, at int, end, separator byte) (next int) {
	switch {
	case c.done:
	case c.ints != nil:
		var v int64
		if v, next = table.QuickInt64(text, at, end); next > at {
			c.ints[c.n] = v
			c.n++
			return next
		}
	case c.floats != nil:
		var x float64
		if x, next = table.QuickFloat64(text, at, end); next > at {
			c.floats[c.n] = x
			c.n++
			return next
		}
	case c.texts != nil && len(text)-at >= 16:
		e, n := short(text[at:], separator)
		if n == 0 || n == 16 || text[at+n] != end || text[at] == '"' || text[at+n-1] == '\r' || !c.texts.AppendKnown(e) {
			return at
		}
		c.n++
		return at + n + 1
	}
	return at
}

// value reads the next cell into a column.
func (r *reader) value(c *column) error {
	if c.ints != nil || c.floats != nil {
		if n, end := table.ScanNumber(r.text, r.at); end > r.at && r.ends(end) {
			if done, err := r.number(c, n, r.text[r.at:end]); done || err != nil {
				r.at = end
				return err
			}
		}
	}
	cell, err := r.cell()
	if err != nil || c.done || c.failed {
		return err
	}
	if c.texts == nil && c.given && c.values == nil {
		if err := c.become(c.kind); err != nil {
			return err
		}
	}
	if r.missing(cell) {
		return r.absent(c)
	}
	if c.texts != nil {
		c.n++
		return c.texts.Append(cell)
	}
	return r.infer(c, cell)
}

// number adds a number, if it is one of the column's kind or can make it real.
func (r *reader) number(c *column, n table.Number, text []byte) (bool, error) {
	if c.done || c.failed {
		return true, nil
	}
	if c.ints != nil {
		if v, ok := n.Int64(); ok {
			c.ints[c.n] = v
			c.n++
			return true, nil
		}
		if c.given {
			return false, nil
		}
		if _, ok := n.Float64(text); !ok {
			return false, nil
		}
		if err := c.become(table.Real); err != nil {
			return false, err
		}
	}
	x, ok := n.Float64(text)
	if ok {
		c.floats[c.n] = x
		c.n++
	}
	return ok, nil
}

// absent adds a record without a value.
func (r *reader) absent(c *column) error {
	if c.texts != nil {
		c.n++
		return c.texts.AppendMissing()
	}
	if c.missing == nil {
		c.missing = make([]bool, c.room)
	}
	c.missing[c.n] = true
	if c.floats != nil {
		c.floats[c.n] = math.NaN()
	}
	c.n++
	return nil
}

// infer adds a value to a column of numbers or truth values, or of no kind yet.
func (r *reader) infer(c *column, cell []byte) error {
	trimmed := bytes.TrimSpace(cell)
	n, end := table.ScanNumber(trimmed, 0)
	isNumber := end > 0 && end == len(trimmed)
	if isNumber && c.kind != table.Boolean {
		if c.kind == 0 {
			kind := table.Integer
			if _, whole := n.Int64(); !whole {
				if _, real := n.Float64(trimmed); real {
					kind = table.Real
				}
			}
			if err := c.become(kind); err != nil {
				return err
			}
		}
		if done, err := r.number(c, n, trimmed); done || err != nil {
			return err
		}
	}
	if infinite(trimmed) && (c.kind == table.Real || !c.given && c.kind != table.Boolean) {
		if c.kind != table.Real {
			if err := c.become(table.Real); err != nil {
				return err
			}
		}
		c.floats[c.n] = math.Inf(1)
		if trimmed[0] == '-' {
			c.floats[c.n] = math.Inf(-1)
		}
		c.n++
		return nil
	}
	if v, ok := truth(trimmed, c.given); ok && (c.kind == table.Boolean || c.kind == 0) {
		if c.kind == 0 {
			if err := c.become(table.Boolean); err != nil {
				return err
			}
		}
		if v {
			c.bools[c.n] = 1
		}
		c.n++
		return nil
	}
	switch {
	case c.given:
		return fmt.Errorf("%.20q is no %v: correct it, or read the column as another kind", cell, c.kind)
	case c.kind == 0:
		if err := c.become(table.Text); err != nil {
			return err
		}
		c.n++
		return c.texts.Append(cell)
	}
	c.failed = true
	c.values, c.ints, c.floats, c.bools, c.missing = nil, nil, nil, nil, nil
	return nil
}

// truth returns a truth value; where one is expected, 0 and 1 are some.
func truth(cell []byte, expected bool) (value, ok bool) {
	if expected && len(cell) == 1 && cell[0]|1 == '1' {
		return cell[0] == '1', true
	}
	return table.Truth(cell)
}

// column returns the column of n records.
func (c *column) column(n int) (*table.Column, error) {
	if c.texts != nil {
		return c.texts.Column(c.name)
	}
	if c.values == nil { // no record has a value
		if err := c.become(table.Real); err != nil {
			return nil, err
		}
	}
	values, err := c.values.Part(0, c.values.Type, tensor.Shape{n})
	if err != nil {
		return nil, err
	}
	out := &table.Column{Name: c.name, Kind: c.kind, Values: values}
	if c.missing != nil {
		out.Missing = c.missing[:n]
	}
	return out, nil
}
