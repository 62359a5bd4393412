package table

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// Concat returns a table of the records of several, one behind another: those of files that are parts of one table. All
// have the columns of the first, in any order. Whole numbers become reals where other parts have reals, and
// categories texts where there are too many, as if one file had been read.
func Concat(tables ...*Table) (*Table, error) {
	if len(tables) == 0 {
		return nil, fmt.Errorf("there are no tables to put together")
	}
	first := tables[0]
	if len(tables) == 1 {
		return first, nil
	}
	var all []*Column
	for _, c := range first.Columns {
		var parts []*Column
		for i, t := range tables {
			part, err := t.Column(c.Name)
			if err != nil {
				return nil, fmt.Errorf("part %d of %d: %w", i+1, len(tables), err)
			}
			if len(t.Columns) != len(first.Columns) {
				return nil, fmt.Errorf("part %d of %d has %d columns, the first %d: all parts of a table have the same", i+1, len(tables), len(t.Columns), len(first.Columns))
			}
			parts = append(parts, part)
		}
		joined, err := concat(parts)
		if err != nil {
			return nil, fmt.Errorf("column %.40q: %w", c.Name, err)
		}
		all = append(all, joined)
	}
	return New(all...)
}

// concat puts the parts of a column together.
func concat(parts []*Column) (*Column, error) {
	kind, records, err := kindOf(parts)
	if err != nil {
		return nil, err
	}
	if kind == Category || kind == Text {
		return concatTexts(parts, records)
	}
	if err := align(parts, kind); err != nil {
		return nil, err
	}
	out := &Column{Name: parts[0].Name, Kind: kind, Texts: Strings{alloc: parts[0].Allocator}, Allocator: parts[0].Allocator}
	at := 0
	for _, c := range parts {
		for i := range c.Len() {
			if c.Lacks(i) {
				out.Missing = marked(out.Missing, records, at+i)
			}
			if kind == JSON {
				if err := out.Texts.Append(c.Texts.bytes(i)); err != nil {
					return nil, err
				}
			}
		}
		at += c.Len()
	}
	if kind != JSON {
		out.Values, err = concatTensors(parts, records)
	}
	return out, err
}

// isVacant reports whether a part has no value, and so is real whatever others are.
func (c *Column) isVacant() bool { return c.Kind == Real && c.CountMissing() == c.Len() }

// kindOf returns the kind of a column of parts, and how many records it has.
func kindOf(parts []*Column) (kind Kind, records int, err error) {
	for i, c := range parts {
		records += c.Len()
		switch k := c.Kind; {
		case c.isVacant():
		case kind == 0 || k == kind:
			kind = k
		case (k == Category || k == Text) && (kind == Category || kind == Text):
			kind = Text
		case (k == Integer || k == Real) && (kind == Integer || kind == Real):
			kind = Real
		default:
			return 0, 0, fmt.Errorf("it is %v, and %v in part %d of %d: name its kind, as in kinds: {%.40s: text}", kind, k, i+1, len(parts), c.Name)
		}
	}
	if kind == 0 {
		kind = Real
	}
	return kind, records, nil
}

// align makes parts that have no values, or whole numbers among reals, columns of a kind.
func align(parts []*Column, kind Kind) error {
	typ := tensor.Float64
	for _, c := range parts {
		if c.Kind == kind && kind != JSON {
			typ = c.Values.Type
		}
	}
	for i, c := range parts {
		var err error
		switch {
		case c.Kind == kind:
			continue
		case kind == Real:
			parts[i], err = c.As(Real)
		case kind == JSON:
			parts[i] = &Column{Name: c.Name, Kind: JSON, Missing: c.Missing}
			for range c.Len() {
				err = parts[i].Texts.Append(nil)
			}
		case kind == Array || kind == Image:
			err = fmt.Errorf("part %d of %d has no values, and nothing stands for a missing %v: take it out", i+1, len(parts), kind)
		default:
			parts[i] = &Column{Name: c.Name, Kind: kind, Missing: c.Missing}
			parts[i].Values, err = tensor.New(typ, tensor.Shape{c.Len()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func concatTexts(parts []*Column, records int) (*Column, error) {
	b := NewTextBuilder(0, records, 0, parts[0].Allocator)
	for _, c := range parts {
		for i := range c.Len() {
			var err error
			switch {
			case c.Lacks(i):
				err = b.AppendMissing()
			case c.Kind == Text:
				err = b.Append(c.Texts.bytes(i))
			default:
				err = b.Append([]byte(c.Value(i)))
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return b.Column(parts[0].Name)
}

func concatTensors(parts []*Column, records int) (*tensor.Tensor, error) {
	typ, shape := parts[0].Values.Type, parts[0].Shape()
	for i, c := range parts {
		if c.Kind == Real && c.Values.Type != typ {
			typ = tensor.Float64
		} else if c.Values.Type != typ || !c.Shape().Equal(shape) {
			return nil, fmt.Errorf("it is %v%v, and %v%v in part %d of %d: all parts have one type and shape", typ, shape, c.Values.Type, c.Shape(), i+1, len(parts))
		}
	}
	out, err := parts[0].Allocator.New(typ, append(tensor.Shape{records}, shape...))
	if err != nil {
		return nil, err
	}
	at := 0
	for _, c := range parts {
		if c.Values.Type == typ {
			at += copy(out.Bytes()[at:], c.Values.Bytes())
			continue
		}
		for i, to := 0, at/typ.Size(); i < c.Len(); i++ { // a real of another width
			w, _ := convert(c.Values.Type, typ, c.Values.At(i))
			out.Set(to+i, w)
		}
		at += c.Len() * typ.Size()
	}
	return out, nil
}
