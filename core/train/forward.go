package train

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
)

// model is a consumer's graph on its way into a step graph.
type model struct {
	*graph.Graph
	LossOptions
	b       *graph.Builder
	params  map[string]string // names in b of the initializers that may be trained
	fields  record.Fields     // of a record
	values  map[string]string // names in b of the fields of a batch, [rows …]
	rows    int
	stats   map[string]bool // initializers that are running statistics, and may follow the batches
	running []stat          // what these become
	seed    uint64
	step    string   // name in b of the number of steps done; "" if nothing reads it
	scored  bool     // rather than trained
	copies  int      // of graphs that are in b
	teacher *teacher // nil if none counts
}

// field returns a field and its value. With no name it is the one that no input of the model is named
// for and that is no mask.
func (m *model) field(name, what string) (record.Field, string, error) {
	if name == "" {
		var left []string
		for _, f := range m.fields {
			read := slices.ContainsFunc(m.Inputs, func(v graph.Value) bool { return v.Name == f.Name })
			if !read && f.Name != m.Mask {
				left = append(left, f.Name)
			}
		}
		if len(left) != 1 {
			return record.Field{}, "", fmt.Errorf("name the field that is the %s: records have %q", what, m.fields.Names())
		}
		name = left[0]
	}
	f, ok := m.fields.Find(name)
	if !ok {
		return f, "", fmt.Errorf("records have no field %q, which is the %s, but %q", name, what, m.fields.Names())
	}
	return f, m.values[name], nil
}

// use puts the model into the step graph and returns its outputs under their names there. An input
// reads what over says, else the field of its name, else the only field that is left for the only
// input that is.
func (m *model) use(over map[string]string, not ...string) ([]graph.Value, error) {
	bound := maps.Clone(over)
	if bound == nil {
		bound = map[string]string{}
	}
	var unbound []int
	for i, in := range m.Inputs {
		if bound[in.Name] != "" {
			continue
		}
		f, ok := m.fields.Find(in.Name)
		if !ok {
			unbound = append(unbound, i)
			continue
		}
		v, err := m.input(in, f)
		if err != nil {
			return nil, err
		}
		bound[in.Name] = v
	}
	if len(unbound) > 0 {
		in := m.Inputs[unbound[0]]
		var left []record.Field
		for _, f := range m.fields {
			taken := slices.ContainsFunc(m.Inputs, func(v graph.Value) bool { return v.Name == f.Name })
			if !taken && f.Name != m.Mask && !slices.Contains(not, f.Name) {
				left = append(left, f)
			}
		}
		if len(unbound) > 1 || len(left) != 1 {
			return nil, fmt.Errorf("records have no field for input %q of the model: they have %q, name one like it", in.Name, m.fields.Names())
		}
		v, err := m.input(in, left[0])
		if err != nil {
			return nil, err
		}
		bound[in.Name] = v
	}
	outputs, err := m.put(m.Graph, bound, m.params)
	if err != nil || m.teacher == nil {
		return outputs, err
	}
	if m.teacher.says, err = m.put(m.teacher.graph, bound, nil); err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	return outputs, nil
}

// input returns a field as an input wants it.
func (m *model) input(in graph.Value, f record.Field) (string, error) {
	if len(in.Shape) == 0 || !in.Shape[1:].Equal(f.Shape) {
		return "", fmt.Errorf("input %q of the model is %v%v, but field %q has the shape %v in each record", in.Name, in.Type, in.Shape, f.Name, f.Shape)
	}
	if f.Type.Float() && !in.Type.Float() || in.Type == tensor.Bool && f.Type != tensor.Bool {
		return "", fmt.Errorf("input %q of the model is %v, but field %q is %v", in.Name, in.Type, f.Name, f.Type)
	}
	return m.as(m.values[f.Name], f.Type, in.Type), nil
}

// as casts a value of one type to another, if they differ.
func (m *model) as(v string, from, to tensor.DType) string {
	if from == to {
		return v
	}
	return m.b.Cast(v, to)
}

// put writes a copy of a graph whose inputs and some initializers are bound, and returns its
// outputs under their names in the step graph. It is as it is applied if no initializer is bound.
func (m *model) put(of *graph.Graph, inputs, params map[string]string) ([]graph.Value, error) {
	g := *of
	g.Inputs = slices.Clone(g.Inputs)
	for i := range g.Inputs {
		in := &g.Inputs[i]
		if len(in.Shape) == 0 {
			return nil, fmt.Errorf("input %q of the model has no axis that counts records", in.Name)
		}
		in.Shape = append(tensor.Shape{m.rows}, in.Shape[1:]...)
	}
	bound := maps.Clone(inputs)
	maps.Copy(bound, params)
	now, err := m.inMode(&g, !m.scored && params != nil)
	if err != nil {
		return nil, err
	}
	if now.step != "" {
		bound[now.step] = m.stepsDone()
	}
	t, err := op.Infer(now.Graph, lower.FP32)
	if err != nil {
		return nil, fmt.Errorf("model with batches of %d: %w", m.rows, err)
	}
	prefix := "model/"
	if m.copies++; m.copies > 1 {
		prefix = fmt.Sprintf("model%d/", m.copies)
	}
	names := m.b.Import(prefix, t.Graph, bound)
	if m.running == nil {
		for _, c := range g.Consts {
			if r, ok := now.running[c.Name]; ok {
				r.name, r.start, r.batch = statPrefix+c.Name, c.Tensor, names[r.batch]
				m.running = append(m.running, r)
			}
		}
	}
	out := slices.Clone(t.Outputs)
	for i := range out {
		out[i].Name = names[out[i].Name]
	}
	return out, nil
}

// stepsDone returns the number of steps done, which draws follow from.
func (m *model) stepsDone() string {
	if m.step == "" {
		m.step = m.b.Init(stepSlot, tensor.Scalar(int64(0)))
	}
	return m.step
}

// one returns the output that a loss is of: the only one, or the one that is named.
func (m *model) one(outputs []graph.Value) (graph.Value, error) {
	for i, o := range m.Outputs {
		if o.Name == m.Output || m.Output == "" && len(outputs) == 1 {
			if outputs[i].Type != tensor.Float32 {
				return graph.Value{}, fmt.Errorf("output %q of the model is %v: a loss is of float32", o.Name, outputs[i].Type)
			}
			return outputs[i], nil
		}
	}
	return graph.Value{}, fmt.Errorf("name the output that the loss is of: the model has %q", names(m.Outputs))
}

func names(vs []graph.Value) (out []string) {
	for _, v := range vs {
		out = append(out, v.Name)
	}
	return out
}
