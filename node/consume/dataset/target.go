package dataset

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/table"
)

// targetNames are columns that are predicted unless another is named.
var targetNames = []string{"label", "labels", "target", "y"}

// targetField is the name of the field that a loss compares with.
const targetField = "target"

// Losses, by what they compare.
var (
	ofClasses = []string{"cross-entropy", "masked-token-cross-entropy"}
	ofNothing = []string{"output", "contrastive", "preference"}
	ofNumbers = []string{"squared-error", "absolute-error", "huber"}
)

const ofTruths = "binary-cross-entropy"

// target returns the column that the model is to tell, as the loss wants it: classes as a category, or as whole numbers
// from 0 on. It is nil if the loss compares nothing.
func (m *maker) target() (*table.Column, error) {
	loss := &m.out.Objective.Name
	if slices.Contains(ofNothing, *loss) {
		return nil, nil
	}
	if known := m.base.target(); known != nil && m.Target == "" {
		m.Target = known.Name
	}
	if m.Target == "" {
		for _, name := range targetNames {
			if _, err := m.table.Column(name); err == nil {
				m.Target = name
				break
			}
		}
		if m.Target == "" {
			return nil, errTarget
		}
	}
	c, err := m.table.Column(m.Target)
	if err != nil {
		return nil, fmt.Errorf("data.target: %w", err)
	}
	if n := c.CountMissing(); n > 0 {
		return nil, fmt.Errorf("target %q has no value in %d records: leave them out of the source", c.Name, n)
	}
	if *loss == "" {
		*loss = m.fitting(c)
	}
	if slices.Contains(ofClasses, *loss) && c.Kind != table.Array && !numbered(c) {
		return c.As(table.Category)
	}
	return c, nil
}

// fitting returns the loss that fits a target and the model.
func (m *maker) fitting(c *table.Column) string {
	outputs := 0
	if o := m.out.Model.Outputs; len(o) > 0 && len(o[0].Shape) > 1 {
		outputs = o[0].Shape[1]
	}
	switch {
	case c.Kind == table.Real, c.Kind == table.Array, c.Kind == table.Integer && outputs <= 1:
		return "squared-error"
	case c.Kind == table.Boolean && outputs <= 1:
		return ofTruths
	}
	return ofClasses[0]
}

// numbered reports whether a column counts classes from 0 on.
func numbered(c *table.Column) bool {
	if c.Kind != table.Integer {
		return false
	}
	for i := range c.Len() {
		if v := int64(c.Values.At(i)); v < 0 || v >= table.MaxCategories {
			return false
		}
	}
	return true
}

// compare adds the target as a field.
func (m *maker) compare(c *table.Column) (err error) {
	said := schema.Target{Name: c.Name}
	if known := m.base.target(); known != nil {
		said = *known
		if c, err = inClasses(c, known.Classes, m.out.Objective.Name); err != nil {
			return err
		}
	}
	m.out.Schema.Target = &said
	switch loss := m.out.Objective.Name; {
	case slices.Contains(ofClasses, loss):
		v, err := c.Tensor(tensor.Int32)
		if err != nil {
			return err
		}
		said.Classes = c.Categories
		if c.Kind == table.Integer {
			for i := range int(slices.Max(tensor.Of[int32](v))) + 1 {
				said.Classes = append(said.Classes, strconv.Itoa(i))
			}
		}
		if err := m.classes(v, len(said.Classes), c.Kind == table.Array); err != nil {
			return err
		}
		m.field(targetField, v)
	case loss == ofTruths:
		if c.Kind == table.Category && len(c.Categories) == 2 {
			said.Classes = c.Categories
		} else if c.Kind == table.Boolean {
			said.Classes = []string{"false", "true"}
		}
		v, err := c.Tensor(tensor.Float32)
		if err != nil {
			return err
		}
		for _, x := range tensor.Of[float32](v) {
			if !(x >= 0 && x <= 1) {
				return fmt.Errorf("target %q says %v: %s takes truths, or numbers from 0 to 1", c.Name, x, ofTruths)
			}
		}
		m.field(targetField, v)
	default:
		v, err := c.Tensor(tensor.Float32)
		if err != nil {
			return err
		}
		if slices.Contains(ofNumbers, loss) && m.Normalize != None {
			m.rescale(v)
		}
		m.field(targetField, v)
	}
	return nil
}

// classes checks that the model tells as many classes apart as there are, and weighs them if they are to count alike.
func (m *maker) classes(labels *tensor.Tensor, n int, arrays bool) error {
	axis := 1
	if m.out.Objective.Name != ofClasses[0] {
		axis = -1
	}
	for _, o := range m.out.Model.Outputs {
		if len(o.Shape) < 2 || m.out.Objective.Output != "" && o.Name != m.out.Objective.Output {
			continue
		}
		if axis < 0 {
			axis = len(o.Shape) - 1
		}
		if told := o.Shape[axis]; told < n {
			return fmt.Errorf("target %q has %d classes, but the model's output %q tells %d apart: make a model for them, such as\n  tally model new mlp --set classes=%d", m.Target, n, o.Name, told, n)
		}
		if !m.out.Objective.Balanced {
			return nil
		}
		counts := make([]float64, o.Shape[axis])
		each := labels.Shape[1:].Elements()
		for _, r := range m.training {
			for _, k := range tensor.Of[int32](labels)[r*each : (r+1)*each] {
				if k >= 0 && int(k) < len(counts) {
					counts[k]++
				}
			}
		}
		m.out.Objective.Weights = make([]float32, len(counts))
		for k, count := range counts {
			if count > 0 {
				m.out.Objective.Weights[k] = float32(float64(len(m.training)*each) / (float64(n) * count))
			}
		}
		return nil
	}
	return nil
}

// rescale has the model tell numbers of mean 0 and deviation 1, which constants behind it make those of the target.
func (m *maker) rescale(v *tensor.Tensor) {
	outputs := m.out.Model.Outputs
	at := slices.IndexFunc(outputs, func(o graph.Value) bool { return o.Name == m.out.Objective.Output })
	if at < 0 {
		if at = 0; len(outputs) != 1 {
			return
		}
	}
	if outputs[at].Type != tensor.Float32 {
		return
	}
	mean, deviation := moments(v, m.training, v.Shape[1:].Elements(), 1)
	m.out.Model = behind(m.out.Model, at, func(b *graph.Builder, x string) string {
		x = b.Op("Mul", x, constant(b, tensor.Float32, deviation, tensor.Shape{1}))
		return b.Op("Add", x, constant(b, tensor.Float32, mean, tensor.Shape{1}))
	})
}
