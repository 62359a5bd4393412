package dataset

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/table"
)

// maker makes a dataset.
type maker struct {
	Options
	table             *table.Table
	encoder           *Encoder // nil if none is named
	base              *Base    // nil of an order that begins anew
	training, heldOut []int    // records
	out               *Dataset
	values            map[string]*tensor.Tensor // of fields, all records
	used              map[string]bool           // columns
}

// Make makes what an order trains on of a table and a model. The encoder is nil if there is none.
func (o *Options) Make(t *table.Table, e *Encoder, g *graph.Graph, objective Objective) (*Dataset, error) {
	m := o.newMaker(t, g, objective)
	defer runtime.KeepAlive(m) // its memory may not be Go's
	d, err := m.make(e)
	if err != nil {
		return nil, fmt.Errorf("data %s: %w", o.Source, err)
	}
	return d, nil
}

// newMaker begins with a table, of which some columns are for no input.
func (o *Options) newMaker(t *table.Table, g *graph.Graph, objective Objective) *maker {
	m := &maker{Options: *o, table: t, out: &Dataset{Model: g, Own: map[string]graph.Value{}, Objective: objective}, values: map[string]*tensor.Tensor{}, used: map[string]bool{}}
	for _, name := range append([]string{o.HeldOut.Column, o.HeldOut.Group}, o.Ignore...) {
		m.used[name] = true
	}
	return m
}

func (m *maker) make(e *Encoder) (*Dataset, error) {
	if m.encoder = e; e != nil {
		m.out.Tokenizer = e.File
	}
	for _, name := range append(slices.Clone(m.Ignore), m.Features...) {
		if _, err := m.table.Column(name); err != nil {
			return nil, err
		}
	}
	if in, vocabulary, ok := m.languageInput(); ok {
		if len(m.Augment) > 0 {
			return nil, errors.New("data.augment changes images and numbers, not texts: leave it out")
		}
		return m.out, m.language(in, vocabulary)
	}
	target, err := m.target()
	if err != nil {
		return nil, err
	}
	if m.training, m.heldOut, err = m.holdOut(m.table, target); err != nil {
		return nil, err
	}
	if err := m.inputs(); err != nil {
		return nil, err
	}
	if target != nil {
		if err := m.compare(target); err != nil {
			return nil, err
		}
	}
	if m.out.Augment, err = m.augmented(m.out.Fields); err != nil {
		return nil, err
	}
	return m.out, m.pack()
}

// pack makes records of the values of all fields.
func (m *maker) pack() error {
	m.out.Objective.Target = ""
	if m.out.Schema.Target != nil {
		m.out.Objective.Target = targetField
	}
	for _, x := range []struct {
		records []int
		to      **tensor.Tensor
	}{{m.training, &m.out.Training}, {m.heldOut, &m.out.HeldOut}} {
		var err error
		if *x.to, err = m.out.Fields.PackIn(m.Allocator, m.values, x.records); err != nil {
			return err
		}
	}
	return nil
}

// field adds a field with its values, [records …].
func (m *maker) field(name string, v *tensor.Tensor) {
	m.values[name] = v
	m.out.Fields = append(m.out.Fields, record.Field{Name: name, Type: v.Type, Shape: v.Shape[1:]})
}

// whole returns a column without missing values, and what replaces them, "" if nothing does. That is learnt from the training records.
func (m *maker) whole(c *table.Column) (full *table.Column, learnt string, err error) {
	missing := c.CountMissing()
	if missing == 0 && c.Kind != table.Integer && c.Kind != table.Real && c.Kind != table.Boolean && c.Kind != table.Category {
		return c, "", nil // images, for one, are not copied to be learnt from
	}
	for _, rule := range m.rules() {
		if learnt, err = c.Learn(rule, m.training); err == nil {
			break
		}
	}
	switch {
	case missing == 0:
		return c, learnt, nil
	case err != nil:
		return nil, "", err
	case learnt == "":
		return nil, "", fmt.Errorf("column %q has no value in %d records: write data.missing: mean, median or mode to replace them, or name it in data.ignore", c.Name, missing)
	}
	full, err = c.Fill(learnt)
	return full, learnt, err
}

// rules returns what replaces missing values, in order: what is no number has neither mean nor median.
func (o *Options) rules() []table.Rule {
	switch rule := table.Rule(o.Missing); rule {
	case table.Mean, table.Median:
		return []table.Rule{rule, table.Mode}
	case table.Mode:
		return []table.Rule{rule}
	case "refuse":
		return []table.Rule{}
	}
	return nil
}

// inputs finds what each input of the model reads: a column that is named for it, else the features.
func (m *maker) inputs() error {
	if m.base != nil {
		return m.knownInputs()
	}
	var rest []graph.Value
	for _, in := range m.out.Model.Inputs {
		c := m.named(in.Name)
		if _, beside := auxiliary[in.Name]; c == nil && beside && m.encoder != nil {
			continue // what reads a text fills it
		}
		if c == nil {
			rest = append(rest, in)
			continue
		}
		m.used[c.Name] = true
		if err := m.column(in, c); err != nil {
			return err
		}
	}
	switch len(rest) {
	case 0:
		return nil
	case 1:
		return m.features(rest[0])
	}
	return fmt.Errorf("no columns are named for the inputs %q and %q of the model: rename columns, or the inputs", rest[0].Name, rest[1].Name)
}

// named returns the column that is named for an input, nil if none is.
func (m *maker) named(input string) *table.Column {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, sameName} {
		for _, c := range m.table.Columns {
			if !m.used[c.Name] && c.Name != m.Target && same(c.Name, input) {
				return c
			}
		}
	}
	return nil
}

// left returns the columns that are for no input of their name.
func (m *maker) left() (out []*table.Column) {
	for _, c := range m.table.Columns {
		if c.Name != m.Target && !m.used[c.Name] && (len(m.Features) == 0 || slices.Contains(m.Features, c.Name)) {
			out = append(out, c)
		}
	}
	return out
}

// features are the columns that are left, one behind another.
func (m *maker) features(in graph.Value) error {
	columns := m.left()
	if len(columns) == 0 {
		return fmt.Errorf("no column is left for the model's input %q", in.Name)
	}
	if len(columns) == 1 && (columns[0].Kind == table.Array || columns[0].Kind == table.Image) {
		return m.column(in, columns[0])
	}
	if c := m.onlyText(columns); c != nil && in.Type.Integer() && len(in.Shape) == 2 {
		return m.text(in, c)
	}
	x := &matrix{records: m.table.Records, alloc: m.Allocator}
	for _, c := range columns {
		c, learnt, err := m.whole(c)
		if err != nil {
			return err
		}
		if err := x.add(c, learnt); err != nil {
			return err
		}
	}
	if !in.Type.Float() || len(in.Shape) != 2 || in.Shape[1] != x.width() {
		return fmt.Errorf("input %q of the model is %v%v, but the features are %d numbers in each record, %s: make a model for them, such as\n  tally model new mlp --set inputs=%d", in.Name, in.Type, in.Shape, x.width(), x.listed(), x.width())
	}
	v, err := x.tensor()
	if err != nil {
		return err
	}
	replaces, normal := len(m.rules()) > 0, m.Normalize != None
	if replaces || normal {
		m.before(in, graph.Value{Name: in.Name, Type: v.Type, Shape: in.Shape}, func(b *graph.Builder, name string) string {
			s := tensor.Shape{1, x.width()}
			if replaces {
				name = filled(b, name, v.Type, x.fills(), s)
			}
			if name = cast(b, name, v.Type, in.Type); normal {
				mean, deviation := x.moments(m.training)
				name = scaled(b, name, in.Type, mean, deviation, s)
			}
			return name
		})
	}
	m.field(in.Name, v)
	m.out.Schema.Inputs = append(m.out.Schema.Inputs, schema.Input{Name: in.Name, Columns: x.names})
	return nil
}

// onlyText returns the one column of texts among some, nil if there is none, or more than one.
func (m *maker) onlyText(columns []*table.Column) (found *table.Column) {
	for _, c := range columns {
		if c = textColumn(m.table, c.Name); c == nil || c.Kind != table.Text {
			continue
		}
		if found != nil {
			return nil
		}
		found = c
	}
	return found
}

// column gives an input one column.
func (m *maker) column(in graph.Value, c *table.Column) error {
	if text := textColumn(m.table, c.Name); text != nil && in.Type.Integer() && len(in.Shape) == 2 && in.Shape[1] > 1 {
		return m.text(in, text)
	}
	c, learnt, err := m.whole(c)
	if err != nil {
		return err
	}
	m.out.Schema.Inputs = append(m.out.Schema.Inputs, schema.Input{Name: in.Name, Columns: []schema.Column{{Name: c.Name}}})
	switch {
	case len(in.Shape) == 0:
		return fmt.Errorf("input %q of the model has no axis that counts records", in.Name)
	case c.Kind == table.Text, c.Kind == table.JSON:
		return fmt.Errorf("column %q is %v, and input %q reads numbers", c.Name, c.Kind, in.Name)
	case c.Kind == table.Image:
		return m.image(in, c.Values)
	}
	to := tensor.Float32
	if m.base != nil {
		to = in.Type
	} else if in.Type.Integer() {
		to = tensor.Int32
	} else if c.Values.Type == tensor.Uint8 || in.Type == tensor.Bool {
		to = c.Values.Type
	}
	v, err := c.Tensor(to)
	if err != nil {
		return err
	}
	if v.Shape[1:].Elements() != in.Shape[1:].Elements() {
		return fmt.Errorf("input %q of the model is %v%v, but column %q has the shape %v in each record", in.Name, in.Type, in.Shape, c.Name, v.Shape[1:])
	}
	raw := graph.Value{Name: in.Name, Type: v.Type, Shape: append(tensor.Shape{in.Shape[0]}, v.Shape[1:]...)}
	normal := m.Normalize != None && in.Type.Float()
	var mean, deviation []float64
	if normal {
		mean, deviation = moments(v, m.training, v.Shape[1:].Elements(), 1)
	}
	fill := number(learnt)
	replaces := !math.IsNaN(fill) && v.Type.Float()
	if replaces || normal || !raw.Shape.Equal(in.Shape) || v.Type != in.Type {
		m.before(in, raw, func(b *graph.Builder, x string) string {
			if replaces {
				x = filled(b, x, v.Type, []float64{fill}, tensor.Shape{1})
			}
			if x = cast(b, x, v.Type, in.Type); normal {
				x = scaled(b, x, in.Type, mean, deviation, tensor.Shape{1})
			}
			return shaped(b, x, raw.Shape, in.Shape)
		})
	}
	m.field(in.Name, v)
	return nil
}

// image gives an input images, uint8 [n height width channels]: as they are, with the channels first, or as a row of
// pixels.
func (m *maker) image(in graph.Value, v *tensor.Tensor) error {
	if m.base != nil { // reads them as they are
		if !v.Shape[1:].Equal(in.Shape[1:]) {
			return fmt.Errorf("the images have the shape %v, those of the earlier order %v: set data.size, and bring images of as many colors", v.Shape[1:], in.Shape[1:])
		}
		m.field(in.Name, v)
		return nil
	}
	if !in.Type.Float() {
		return fmt.Errorf("input %q of the model is %v: images enter as floats", in.Name, in.Type)
	}
	s := v.Shape[1:]
	channels := s[2]
	first := tensor.Shape{channels, s[0], s[1]}
	if w := in.Shape[1:]; !w.Equal(s) && !w.Equal(first) && !(len(w) == 1 && w[0] == s.Elements()) && !(channels == 1 && w.Equal(s[:2])) {
		return fmt.Errorf("input %q of the model is %v%v, but the images have %d × %d pixels of %d channels: set data.size, or make a model for them, such as\n  tally model new lenet --set size=%d,channels=%d", in.Name, in.Type, in.Shape, s[0], s[1], channels, max(s[0], s[1]), channels)
	}
	mean, deviation := make([]float64, channels), make([]float64, channels)
	for c := range deviation {
		deviation[c] = 1
	}
	if m.Normalize != None {
		mean, deviation = moments(v, m.training, s.Elements(), channels)
	}
	raw := graph.Value{Name: in.Name, Type: v.Type, Shape: append(tensor.Shape{in.Shape[0]}, s...)}
	m.before(in, raw, func(b *graph.Builder, x string) string {
		x = scaled(b, cast(b, x, v.Type, in.Type), in.Type, mean, deviation, tensor.Shape{1, 1, 1, channels})
		if channels > 1 && in.Shape[1:].Equal(first) {
			return b.With(graph.Ints("perm", 0, 3, 1, 2)).Op("Transpose", x)
		}
		return shaped(b, x, raw.Shape, in.Shape)
	})
	m.field(in.Name, v)
	return nil
}

// ImageSize returns the size of the images that a model reads, zeros if it reads none. One that goes on reads them as
// they are, with the channels last.
func ImageSize(g *graph.Graph) (height, width int) {
	for _, in := range g.Inputs {
		if s := in.Shape; len(s) == 4 && in.Type == tensor.Uint8 {
			return s[1], s[2]
		}
		if s := in.Shape; len(s) == 4 && in.Type.Float() {
			if s[1] == 1 || s[1] == 3 {
				return s[2], s[3]
			}
			return s[1], s[2]
		}
	}
	return 0, 0
}

var errTarget = errors.New("data.target is missing: name the column to predict")
