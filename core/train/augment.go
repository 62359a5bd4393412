package train

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
)

// Augment changes fields of the records that a step reads, by chance: each record in its own way, and in another
// way in each step. Scores are of records as they are.
type Augment struct {
	Kind   string   // flip, shift or noise
	Fields []string // that change alike, such as an image and its mask
	Axis   int      // of flip and shift, within a record; counted from the last, which is 1
	Amount float32  // flip: its odds; shift: so many places at most, either way; noise: its standard deviation
}

const (
	maxAugments = 1 << 4
	maxAlike    = 1 << 4 // fields of one
	maxShift    = 1 << 12
)

// augmentation is a kind of change.
type augmentation struct {
	most   float32                                                                     // of the amount
	along  bool                                                                        // an axis
	change func(m *model, a *Augment, f record.Field, draws draws) (v string, e error) // of a field
}

var augmentations = map[string]augmentation{
	"flip":  {1, true, flipped},
	"shift": {maxShift, true, shifted},
	"noise": {1e6, false, noisy},
}

func (a *Augment) check() error {
	kind, ok := augmentations[a.Kind]
	switch {
	case !ok:
		return fmt.Errorf("augmentation %q is not supported; use %s", a.Kind, choices(augmentations))
	case !(a.Amount > 0 && a.Amount <= kind.most):
		return fmt.Errorf("%s of %v is not above 0 and at most %v", a.Kind, a.Amount, kind.most)
	case a.Kind == "shift" && a.Amount != float32(int(a.Amount)):
		return fmt.Errorf("shift by %v places is no whole number", a.Amount)
	case len(a.Fields) == 0 || len(a.Fields) > maxAlike:
		return fmt.Errorf("%s of %d fields is not of 1 to %d", a.Kind, len(a.Fields), maxAlike)
	case kind.along != (a.Axis > 0) || a.Axis < 0 || a.Axis > tensor.MaxRank:
		return fmt.Errorf("%s along axis %d: flip and shift take one from 1, which is the last, to %d, and noise none", a.Kind, a.Axis, tensor.MaxRank)
	}
	return nil
}

func (a *Augment) code(c *canon.Codec) {
	c.String(&a.Kind, 64)
	canon.Seq(c, &a.Fields, maxAlike, 1, func(c *canon.Codec, s *string) { c.String(s, record.MaxFieldName) })
	c.Int(&a.Axis, tensor.MaxRank)
	codeFloat(c, &a.Amount)
}

// draws writes random words for places of a batch. Two of one name are the same.
type draws func(name, places string) string

// augment changes the fields that the model and its loss read.
func (m *model) augment(all []Augment) error {
	for i := range all {
		a := &all[i]
		draws := func(name, places string) string {
			return drawn(m.b, m.stepsDone(), places, m.key(fmt.Sprintf("augment/%d/%s", i, name)))
		}
		for k, name := range a.Fields {
			if slices.Contains(a.Fields[:k], name) {
				return fmt.Errorf("%s: field %q stands there twice", a.Kind, name)
			}
			f, ok := m.fields.Find(name)
			if !ok {
				return fmt.Errorf("%s: records have no field %q, but %q", a.Kind, name, m.fields.Names())
			}
			if len(f.Shape) < a.Axis {
				return fmt.Errorf("%s: field %q has the shape %v in each record, and no axis %d from the last", a.Kind, name, f.Shape, a.Axis)
			}
			v, err := augmentations[a.Kind].change(m, a, f, draws)
			if err != nil {
				return fmt.Errorf("%s: field %q: %w", a.Kind, name, err)
			}
			m.values[name] = v
		}
	}
	return nil
}

// flipped turns the axis of some records round.
func flipped(m *model, a *Augment, f record.Field, draws draws) (string, error) {
	b, v := m.b, m.values[f.Name]
	axis := 1 + len(f.Shape) - a.Axis
	hit := hits(b, draws("record", m.records()), a.Amount)
	hit = b.Op("Reshape", hit, b.Ints(m.within(f, 0)...))
	round := b.Op("Slice", v, b.Ints(-1), b.Ints(-1-f.Shape[axis-1]), b.Ints(axis), b.Ints(-1))
	return b.Op("Where", hit, round, v), nil
}

// shifted moves each record along the axis: element i becomes the one at i − d, for d from −amount to amount, and
// zero where there is none. So it is padding by the amount, and cropping at a place of chance.
func shifted(m *model, a *Augment, f record.Field, draws draws) (string, error) {
	b, v := m.b, m.values[f.Name]
	axis, most := 1+len(f.Shape)-a.Axis, int(a.Amount)
	size := f.Shape[axis-1]
	if size > 1<<24 {
		return "", fmt.Errorf("its axis has %d places, the limit is 2^24", size)
	}
	half := func(x string) string {
		return b.With(graph.String("direction", "RIGHT")).Op("BitShift", x, b.Const(tensor.Scalar[uint32](16)))
	}
	d := half(b.Op("Mul", half(draws("record", m.records())), b.Const(tensor.Scalar(uint32(2*most+1)))))
	d = b.Op("Reshape", b.Cast(d, tensor.Int32), b.Ints(m.rows, 1))
	word := func(n int) string { return b.Const(tensor.Scalar(int32(n))) }
	places := b.Op("Reshape", b.Op("Range", word(most), word(most+size), word(1)), b.Ints(1, size))
	from := b.Op("Sub", places, d) // [rows, size]
	there := b.Op("And", b.Op("GreaterOrEqual", from, word(0)), b.Op("Less", from, word(size)))
	from = b.Op("Where", there, from, word(0))
	along := b.Ints(m.within(f, axis)...)
	whole := b.Ints(append([]int{m.rows}, f.Shape...)...)
	from = b.Op("Expand", b.Op("Reshape", from, along), whole)
	moved := b.With(graph.Int("axis", axis)).Op("GatherElements", v, from)
	return b.Op("Where", b.Op("Reshape", there, along), moved, b.Cast(b.Scalar(0), f.Type)), nil
}

// noisy adds normal noise. Bytes are rounded, and stay from 0 to 255.
func noisy(m *model, a *Augment, f record.Field, draws draws) (string, error) {
	b, v := m.b, m.values[f.Name]
	if !f.Type.Float() && f.Type != tensor.Uint8 {
		return "", fmt.Errorf("it is %v: noise is added to floats and to uint8", f.Type)
	}
	n := b.Op("Size", v)
	noise := op.Normal(b, draws(f.Name+"/radius", n), draws(f.Name+"/turn", n))
	noise = b.Op("Reshape", b.Op("Mul", noise, b.Scalar(a.Amount)), b.Op("Shape", v))
	if f.Type.Float() {
		return b.Op("Add", v, m.as(noise, tensor.Float32, f.Type)), nil
	}
	v = b.Op("Round", b.Op("Add", b.Cast(v, tensor.Float32), noise))
	return b.Cast(b.Op("Clip", v, b.Scalar(0), b.Scalar(255)), f.Type), nil
}

// records writes how many records a batch has.
func (m *model) records() string { return m.b.Const(tensor.Scalar(int64(m.rows))) }

// within is the shape of what each record has one of, or one for each place along an axis of the field.
func (m *model) within(f record.Field, axis int) []int {
	out := []int{m.rows}
	for i, n := range f.Shape {
		if i+1 != axis {
			n = 1
		}
		out = append(out, n)
	}
	return out
}
