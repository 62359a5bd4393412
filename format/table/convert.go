package table

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// Tensor returns a column's values as elements of a type. Every value is the same number
// there, but that floats are rounded once, to nearest. The numbers of a category are those of
// its texts. A column that has records without a value, or texts, has no tensor.
func (c *Column) Tensor(to tensor.DType) (*tensor.Tensor, error) {
	if c.written() {
		return nil, fmt.Errorf("column %.40q is text, and no number: read it as a category, or turn it into numbers first, as a tokenizer does", c.Name)
	}
	if n := c.CountMissing(); n > 0 {
		return nil, fmt.Errorf("column %.40q has no value in %d of %d records: fill them, or take the records out", c.Name, n, c.Len())
	}
	from := c.Values
	if from.Type == to {
		return from, nil
	}
	out, err := c.Allocator.New(to, from.Shape)
	if err != nil {
		return nil, fmt.Errorf("column %.40q: %w", c.Name, err)
	}
	for i := range from.Len() {
		w, ok := convert(from.Type, to, from.At(i))
		if !ok {
			return nil, fmt.Errorf("column %.40q, record %d: %s is no %v", c.Name, i/max(1, from.Shape[1:].Elements()), number(from.Type, from.At(i)), to)
		}
		out.Set(i, w)
	}
	return out, nil
}

// Tensor returns all columns of one value a record side by side, [n, columns], as elements of a type.
func (t *Table) Tensor(to tensor.DType) (*tensor.Tensor, error) {
	out, err := tensor.New(to, tensor.Shape{t.Records, len(t.Columns)})
	if err != nil {
		return nil, err
	}
	for i, c := range t.Columns {
		x, err := c.Tensor(to)
		if err != nil {
			return nil, err
		}
		if len(x.Shape) != 1 {
			return nil, fmt.Errorf("column %.40q is %v, and no single value a record: take it out", c.Name, c.Kind)
		}
		for record := range t.Records {
			out.Set(record*len(t.Columns)+i, x.At(record))
		}
	}
	return out, nil
}

// convert returns a word of another type, and whether it stands for the same number.
func convert(from, to tensor.DType, w tensor.Word) (tensor.Word, bool) {
	if !from.Float() {
		return ofInteger(from.Signed() && int64(w) < 0, to, w)
	}
	x := tensor.FloatOf(from, w)
	if to.Float() {
		w = tensor.FloatWord(to, x)
		return w, math.IsInf(x, 0) || !math.IsInf(tensor.FloatOf(to, w), 0)
	}
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 { // beyond it, who knows what was rounded
		return 0, false
	}
	if x < 0 {
		return ofInteger(true, to, tensor.Word(int64(x)))
	}
	return ofInteger(false, to, uint64(x))
}

// ofInteger returns a word of a type for an integer of 64 bits, and whether the type holds it.
func ofInteger(negative bool, to tensor.DType, w tensor.Word) (tensor.Word, bool) {
	switch {
	case to == tensor.Float32 && negative:
		return tensor.F32(float32(int64(w))), true
	case to == tensor.Float32:
		return tensor.F32(float32(w)), true
	case to.Float():
		x := float64(w)
		if negative {
			x = float64(int64(w))
		}
		return tensor.FloatWord(to, x), !math.IsInf(tensor.FloatOf(to, tensor.FloatWord(to, x)), 0)
	case to == tensor.Bool:
		return w, !negative && w <= 1
	}
	bits := uint(8 * to.Size())
	if to.Unsigned() {
		return w, !negative && (bits == 64 || w>>bits == 0)
	}
	high := int64(w) >> (bits - 1)
	return w, negative && high == -1 || !negative && high == 0 && w <= math.MaxInt64
}

// As returns the column as one of another kind: a number or truth value as a real or a category,
// a category as text, a text as a category or JSON, an array of bytes [n, height, width] or [n, height,
// width, channels] as an image.
func (c *Column) As(kind Kind) (*Column, error) {
	out := *c
	out.Kind = kind
	scalar := c.Kind == Integer || c.Kind == Real || c.Kind == Boolean
	switch {
	case kind == c.Kind:
		return c, nil
	case (kind == Text || kind == JSON) && c.written():
		return &out, nil
	case kind == Real && scalar:
		values, err := c.Allocator.New(tensor.Float64, c.Values.Shape)
		if err != nil {
			return nil, err
		}
		for i, all := 0, tensor.Of[float64](values); i < c.Len(); i++ {
			w, _ := convert(c.Values.Type, tensor.Float64, c.Values.At(i))
			if all[i] = tensor.FloatOf(tensor.Float64, w); c.Lacks(i) {
				all[i] = math.NaN()
			}
		}
		out.Values = values
		return &out, nil
	case kind == Category && (scalar || c.Kind == Text), kind == Text && (scalar || c.Kind == Category):
		b := NewTextBuilder(kind, c.Len(), 0, c.Allocator)
		for i := range c.Len() {
			var err error
			if c.Lacks(i) {
				err = b.AppendMissing()
			} else {
				err = b.Append([]byte(c.Value(i)))
			}
			if err != nil {
				return nil, fmt.Errorf("column %.40q: %w", c.Name, err)
			}
		}
		return b.Column(c.Name)
	case kind == Image && c.Kind == Array && c.Values.Type == tensor.Uint8 && len(c.Values.Shape) == 3:
		t, err := c.Values.Part(0, tensor.Uint8, append(c.Values.Shape.Clone(), 1))
		out.Values = t
		return &out, err
	case kind == Image && c.Kind == Array && c.Values.Type == tensor.Uint8 && len(c.Values.Shape) == 4 && c.Values.Shape[3] <= 4:
		return &out, nil
	}
	return nil, fmt.Errorf("column %.40q: %v is not read as %v", c.Name, c.Kind, kind)
}
