package jsonlines

import (
	"errors"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

// column gathers the values of a name. Elements are in ints as long as all are whole, then in
// floats; truth values in bools.
type column struct {
	name     string
	alloc    tensor.Allocator
	textKind table.Kind // Category, Text or JSON, if that was given
	seen     int        // records, up to the last that has the name
	kind     table.Kind // 0: no value yet; Integer, Real, Boolean, Text, JSON
	shape    tensor.Shape
	list     bool
	ints     []int64
	floats   []float64
	bools    []uint8
	texts    *table.TextBuilder
	n        int     // records, those with no value counted
	missing  []int32 // records
}

// pad adds records without a value until there are n.
func (c *column) pad(n int) error {
	for ; c.n < n; c.n++ {
		if c.texts != nil {
			if err := c.texts.AppendMissing(); err != nil {
				return err
			}
			continue
		}
		switch {
		case c.list:
			return errors.New("a record has no list: nothing stands for one, so take the record out")
		case c.n == math.MaxInt32:
			return errors.New("too many records: split the file")
		}
		c.missing = append(c.missing, int32(c.n))
		c.put(0, math.NaN())
	}
	return nil
}

// put adds an element to the values of the column's kind.
func (c *column) put(whole int64, x float64) {
	switch c.kind {
	case table.Integer:
		c.ints = append(c.ints, whole)
	case table.Real:
		c.floats = append(c.floats, x)
	case table.Boolean:
		c.bools = append(c.bools, uint8(whole))
	}
}

// value reads the value of a record.
func (c *column) value(s *scanner, record int) error {
	if err := c.pad(record); err != nil {
		return err
	}
	if s.word("null") {
		return c.pad(record + 1)
	}
	switch next := s.next(); {
	case c.kind == table.JSON, c.kind == 0 && (c.textKind == table.JSON || s.objects()):
		return c.raw(s)
	case next == '{':
		return errors.New("an object stands where records before have another value")
	case next == '"':
		return c.text(s)
	case next == '[' != c.list && c.kind != 0, c.kind == table.Text:
		return fmt.Errorf("%s is of another kind than the values before: all of a column are of one", s.rest())
	case next == '[':
		if c.kind == 0 {
			if err := c.begin(s); err != nil {
				return err
			}
		}
		c.n++
		return c.elements(s, c.shape)
	}
	c.n++
	return c.element(s)
}

// raw keeps a value as its text.
func (c *column) raw(s *scanner) error {
	text, err := s.value()
	if err != nil {
		return err
	}
	return c.keep(text, table.JSON, table.Text)
}

// keep adds a text. The first one makes the column one of texts: its kind, and what the builder is told of it.
func (c *column) keep(text []byte, kind, as table.Kind) error {
	if c.texts == nil {
		c.kind, c.texts = kind, table.NewTextBuilder(as, 0, 0, c.alloc)
		for range c.n {
			if err := c.texts.AppendMissing(); err != nil {
				return err
			}
		}
	}
	c.n++
	return c.texts.Append(text)
}

// begin takes the shape of the first list as that of all.
func (c *column) begin(s *scanner) error {
	start := s.at
	shape, err := s.shape(0)
	if err != nil {
		return err
	}
	s.at = start
	c.list, c.shape = true, shape
	if len(c.missing) > 0 {
		return errors.New("a record before has no list: nothing stands for one, so take the record out")
	}
	return c.shape.Check()
}

// shape passes a value, and returns the extents that its first parts show.
func (s *scanner) shape(depth int) (tensor.Shape, error) {
	if !s.skip('[') {
		if s.next() == '"' {
			_, err := s.quoted()
			return nil, err
		}
		for s.at < len(s.text) && s.text[s.at] != ',' && s.text[s.at] != ']' && s.text[s.at] != '\n' {
			s.at++
		}
		return nil, nil
	}
	if depth+1 >= tensor.MaxRank {
		return nil, fmt.Errorf("lists are nested more than %d deep", tensor.MaxRank-1)
	}
	if s.skip(']') {
		return nil, errors.New("a list is empty")
	}
	inner, err := s.shape(depth + 1)
	n := 1
	for err == nil && s.skip(',') {
		_, err = s.shape(depth + 1)
		n++
	}
	if err == nil && !s.skip(']') {
		err = errors.New("a list does not end")
	}
	return append(tensor.Shape{n}, inner...), err
}

// elements reads a list of a shape.
func (c *column) elements(s *scanner, shape tensor.Shape) error {
	if len(shape) == 0 {
		if s.next() == '[' {
			return errors.New("a list stands where the first record has a number")
		}
		return c.element(s)
	}
	if !s.skip('[') {
		return fmt.Errorf("%s stands where the first record has a list", s.rest())
	}
	for i := range shape[0] {
		if i > 0 && !s.skip(',') {
			return fmt.Errorf("a list has not the %d members of the first record: all records have one shape; pad them", shape[0])
		}
		if err := c.elements(s, shape[1:]); err != nil {
			return err
		}
	}
	if !s.skip(']') {
		return fmt.Errorf("a list has more than the %d members of the first record: all records have one shape; pad them", shape[0])
	}
	return nil
}

// element reads a number, a truth value, or a text that stands for a number.
func (c *column) element(s *scanner) error {
	truth, whole := s.word("true"), int64(1)
	if !truth && s.word("false") {
		truth, whole = true, 0
	}
	if truth != (c.kind == table.Boolean) && c.kind != 0 {
		return errors.New("a column has truth values or numbers, not both")
	}
	if truth {
		c.become(table.Boolean)
		c.put(whole, 0)
		return nil
	}
	if s.next() == '"' {
		text, err := s.quoted()
		if err != nil {
			return err
		}
		x, ok := special(text)
		if !ok {
			return fmt.Errorf("%.20q is no number: turn it into numbers first, as a tokenizer does", text)
		}
		c.become(table.Real)
		c.put(0, x)
		return nil
	}
	if s.next() == '{' || s.word("null") {
		return errors.New("a list holds a null or an object: every record has all numbers")
	}
	n, text, err := s.number()
	if err != nil {
		return err
	}
	whole, ok := n.Int64()
	if ok && c.kind != table.Real {
		c.become(table.Integer)
		c.put(whole, 0)
		return nil
	}
	x, ok := n.Float64(text)
	if !ok {
		return fmt.Errorf("%.40s lies beyond float64", text)
	}
	c.become(table.Real)
	c.put(0, x)
	return nil
}

// become makes a column one of numbers or truth values: of its first value, or of reals after integers.
func (c *column) become(kind table.Kind) {
	if c.kind == kind {
		return
	}
	empty := c.kind == 0
	if c.kind = kind; empty {
		for range c.missing {
			c.put(0, math.NaN())
		}
		return
	}
	for _, v := range c.ints {
		c.floats = append(c.floats, float64(v))
	}
	for _, i := range c.missing {
		c.floats[i] = math.NaN()
	}
	c.ints = nil
}

// special returns the number that a text stands for which JSON has none for.
func special(text []byte) (float64, bool) {
	switch string(text) {
	case "NaN":
		return math.NaN(), true
	case "Infinity", "+Inf", "Inf":
		return math.Inf(1), true
	case "-Infinity", "-Inf":
		return math.Inf(-1), true
	}
	return 0, false
}

// text reads a text. Where it is the first value, it stands for a number if it can.
func (c *column) text(s *scanner) error {
	start := s.at
	text, err := s.quoted()
	if err != nil {
		return err
	}
	_, number := special(text)
	switch {
	case c.list || c.kind == table.Boolean:
		return fmt.Errorf("%.20q stands where records before have a list or a truth value", text)
	case c.kind == table.Integer || c.kind == table.Real || c.kind == 0 && number && c.textKind == 0:
		s.at = start
		c.n++
		return c.element(s)
	}
	return c.keep(text, table.Text, c.textKind)
}

// table returns the column of n records.
func (c *column) table(n int) (*table.Column, error) {
	if err := c.pad(n); err != nil {
		return nil, err
	}
	if c.texts != nil {
		out, err := c.texts.Column(c.name)
		if err != nil || c.kind != table.JSON {
			return out, err
		}
		return out.As(table.JSON)
	}
	if c.kind == 0 { // no record has a value
		c.become(table.Real)
	}
	var t *tensor.Tensor
	var err error
	shape := append(tensor.Shape{n}, c.shape...)
	switch c.kind {
	case table.Integer:
		if t, err = c.alloc.New(tensor.Int64, shape); err == nil {
			copy(tensor.Of[int64](t), c.ints)
		}
	case table.Real:
		if t, err = c.alloc.New(tensor.Float64, shape); err == nil {
			copy(tensor.Of[float64](t), c.floats)
		}
	default:
		if t, err = c.alloc.New(tensor.Bool, shape); err == nil {
			copy(t.Bytes(), c.bools)
		}
	}
	if err != nil {
		return nil, err
	}
	out, err := table.Of(c.name, t)
	if err == nil && c.kind != table.Real && len(c.missing) > 0 {
		out.Missing = make([]bool, n)
		for _, i := range c.missing {
			out.Missing[i] = true
		}
	}
	return out, err
}
