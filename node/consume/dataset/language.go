package dataset

import (
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/node/consume/dataset/sequences"
)

// Losses of language models.
const (
	nextToken  = "next-token-cross-entropy"
	preference = "preference"
)

// lossMaskField is the name of the field that says which tokens are learnt.
const lossMaskField = "loss_mask"

// auxiliary are inputs of a model that reads tokens, by the names that exporters give them.
var auxiliary = map[string]func(*sequences.Rows) *tensor.Tensor{
	"attention_mask": func(r *sequences.Rows) *tensor.Tensor { return r.AttentionMask },
	"position_ids":   func(r *sequences.Rows) *tensor.Tensor { return r.Positions },
	"segment_ids":    func(r *sequences.Rows) *tensor.Tensor { return r.Segments },
	"token_type_ids": nil, // all 0
}

// tokensInput returns the input of a model that reads tokens: integers [batch tokens] that are named for nothing else.
func tokensInput(g *graph.Graph) (graph.Value, bool) {
	for _, in := range g.Inputs {
		if _, beside := auxiliary[in.Name]; !beside && in.Type.Integer() && len(in.Shape) == 2 {
			return in, true
		}
	}
	return graph.Value{}, false
}

// languageInput returns the tokens of a language model, which gives logits for each of them.
func (m *maker) languageInput() (in graph.Value, vocabulary int, ok bool) {
	loss := m.out.Objective.Name
	if loss != "" && loss != nextToken && loss != preference || loss == "" && m.Target != "" && textColumn(m.table, m.Target) == nil {
		return in, 0, false
	}
	in, ok = tokensInput(m.out.Model)
	if !ok || len(m.out.Model.Outputs) == 0 {
		return in, 0, false
	}
	out := m.out.Model.Outputs[0]
	if len(out.Shape) != 3 || out.Shape[1] != in.Shape[1] || !out.Type.Float() {
		return in, 0, false
	}
	return in, out.Shape[2], true
}

// language makes records of tokens.
func (m *maker) language(in graph.Value, vocabulary int) (err error) {
	if m.out.Objective.Name == "" {
		m.out.Objective.Name = nextToken
	}
	if m.out.Objective.Mask != "" {
		return fmt.Errorf("loss.mask is %q: of texts, what is learnt follows from the data section; leave it out", m.out.Objective.Mask)
	}
	if err := m.refuseAuxiliary(); err != nil {
		return err
	}
	if m.training, m.heldOut, err = m.holdOut(m.table, nil); err != nil {
		return err
	}
	forms, err := m.forms(in.Name)
	if err != nil {
		return err
	}
	layout := sequences.Layout{Length: in.Shape[1] + 1, Long: m.Text.Long, Pack: m.Text.Pack, OnePerText: len(forms) > 1, Allocator: m.Allocator}
	layout.Pad = m.encoder.pad()
	var parts [2]map[string]*tensor.Tensor
	defer runtime.KeepAlive(&parts)
	for i, records := range [][]int{m.training, m.heldOut} {
		if parts[i], err = m.lay(forms, records, layout, vocabulary); err != nil {
			return err
		}
	}
	if len(forms) == 1 && learntAll(parts[0][lossMaskField]) && learntAll(parts[1][lossMaskField]) {
		delete(parts[0], lossMaskField)
	}
	m.castAuxiliary(parts[0])
	for _, name := range slices.Sorted(maps.Keys(parts[0])) {
		m.field(name, parts[0][name])
	}
	if len(forms) == 1 {
		m.out.Objective.Target, m.out.Objective.Mask = in.Name, ""
		if parts[0][lossMaskField] != nil {
			m.out.Objective.Mask = lossMaskField
		}
	}
	if m.out.Training, err = m.out.Fields.PackIn(m.Allocator, parts[0], nil); err != nil {
		return err
	}
	m.out.HeldOut, err = m.out.Fields.PackIn(m.Allocator, parts[1], nil)
	return err
}

// learntAll reports whether every token but the first of each record is learnt.
func learntAll(t *tensor.Tensor) bool {
	for i, learnt := range t.Bytes() {
		if learnt == 0 && i%t.Shape[1] != 0 {
			return false
		}
	}
	return true
}

// tokenField is a field of tokens, and the mask that says which of them are learnt.
type tokenField struct {
	field, learnt string
	read          reading
}

// lay makes the fields of some records.
func (m *maker) lay(forms []tokenField, records []int, layout sequences.Layout, vocabulary int) (map[string]*tensor.Tensor, error) {
	out := map[string]*tensor.Tensor{}
	for _, f := range forms {
		var all []sequences.Example
		arena := sequences.TokenArena{Allocator: m.Allocator}
		tokens := 0
		for _, record := range records {
			s, err := f.read(record)
			if err != nil {
				return nil, fmt.Errorf("record %d: %w", record+1, err)
			}
			for i := range s {
				if top := len(s[i].Tokens); top > 0 && int(slices.Max(s[i].Tokens)) >= vocabulary {
					return nil, fmt.Errorf("record %d has token %d, but the model tells %d apart: make a model for them, such as\n  tally model new gpt --set vocabulary=%d", record+1, slices.Max(s[i].Tokens), vocabulary, max(m.encoder.size(), int(slices.Max(s[i].Tokens))+1))
				}
			}
			for i := range s {
				if layout.Long == sequences.Truncate { // what is cut off later takes no memory until then
					s[i] = s[i].Head(layout.Length + 1)
				}
				if tokens += len(s[i].Tokens); tokens > sequences.MaxTokens {
					return nil, fmt.Errorf("texts have more than %d tokens up to record %d: bring fewer", sequences.MaxTokens, record+1)
				}
			}
			for i := range s {
				if s[i], err = arena.Add(s[i]); err != nil {
					return nil, err
				}
			}
			all = append(all, s...)
		}
		rows, err := sequences.Lay(all, layout)
		if runtime.KeepAlive(arena); err != nil {
			return nil, err
		}
		m.out.Texts += len(all)
		m.out.Truncated += rows.Truncated
		m.out.Dropped += rows.Dropped
		out[f.field], out[f.learnt] = rows.Tokens, rows.LossMask
		if err := m.addAuxiliary(out, rows); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// castAuxiliary has the model read auxiliary inputs in the types of the fields.
func (m *maker) castAuxiliary(values map[string]*tensor.Tensor) {
	for _, in := range slices.Clone(m.out.Model.Inputs) {
		v := values[in.Name]
		if _, known := auxiliary[in.Name]; !known || v == nil || v.Type == in.Type {
			continue
		}
		m.before(in, graph.Value{Name: in.Name, Type: v.Type, Shape: in.Shape}, func(b *graph.Builder, x string) string {
			return cast(b, x, v.Type, in.Type)
		})
	}
}

// addAuxiliary adds what a model reads besides the tokens of some rows.
func (m *maker) addAuxiliary(to map[string]*tensor.Tensor, rows *sequences.Rows) (err error) {
	for _, in := range m.out.Model.Inputs {
		of, known := auxiliary[in.Name]
		if !known {
			continue
		}
		if to[in.Name] != nil {
			return fmt.Errorf("the model's input %q has one value, but the loss reads pairs of texts: export the model without it", in.Name)
		}
		if to[in.Name], err = auxiliaryOf(m.Allocator, of, rows, in); err != nil {
			return err
		}
	}
	return nil
}

// refuseAuxiliary returns an error if columns are named for what follows from the texts.
func (m *maker) refuseAuxiliary() error {
	for _, in := range m.out.Model.Inputs {
		if _, known := auxiliary[in.Name]; known && m.named(in.Name) != nil {
			return fmt.Errorf("column %q is not read, for the model's input %q follows from the texts: name it in data.ignore", m.named(in.Name).Name, in.Name)
		}
	}
	return nil
}

// auxiliaryOf returns what an auxiliary input reads of some rows, [rows tokens].
func auxiliaryOf(alloc tensor.Allocator, of func(*sequences.Rows) *tensor.Tensor, rows *sequences.Rows, in graph.Value) (*tensor.Tensor, error) {
	n := rows.Tokens.Shape[0]
	if len(in.Shape) != 2 || in.Shape[1] > rows.Tokens.Shape[1] {
		return nil, fmt.Errorf("input %q of the model is %v%v, but should have as many places as there are tokens", in.Name, in.Type, in.Shape)
	}
	from := rows.AttentionMask
	if of != nil {
		from = of(rows)
	}
	out, err := alloc.New(from.Type, tensor.Shape{n, in.Shape[1]})
	if err != nil || of == nil {
		return out, err
	}
	size := from.Type.Size()
	for i := range n {
		copy(out.Bytes()[i*in.Shape[1]*size:(i+1)*in.Shape[1]*size], from.Bytes()[i*from.Shape[1]*size:])
	}
	return out, nil
}

// forms finds what is read of the table as text.
func (m *maker) forms(input string) ([]tokenField, error) {
	if m.out.Objective.Name == preference {
		var out []tokenField
		for _, name := range []string{"chosen", "rejected"} {
			read, err := m.corpus().replies(name)
			if err != nil {
				return nil, err
			}
			out = append(out, tokenField{name, name + "_mask", read})
		}
		return out, nil
	}
	c := m.corpus()
	read, err := c.find(input)
	if err != nil {
		return nil, err
	}
	m.out.Schema.Inputs = append(m.out.Schema.Inputs, schema.Input{Name: input, Columns: []schema.Column{{Name: c.column}}})
	return []tokenField{{input, lossMaskField, read}}, nil
}

// text gives an input the tokens of a column of texts.
func (m *maker) text(in graph.Value, c *table.Column) (err error) {
	switch {
	case m.encoder == nil:
		return errNoTokenizer
	case m.Text.Pack:
		return fmt.Errorf("data.text.pack: column %q is read beside others, a text in each record: leave it out", c.Name)
	}
	if c, _, err = m.whole(c); err != nil {
		return err
	}
	all, arena := make([]sequences.Example, c.Len()), sequences.TokenArena{Allocator: m.Allocator}
	defer runtime.KeepAlive(&arena)
	for i := range all {
		tokens, err := m.encoder.tokenizer.Encode(c.Texts.At(i), true)
		if err == nil {
			all[i], err = arena.Add(sequences.Example{Tokens: tokens})
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
	}
	rows, err := sequences.Lay(all, sequences.Layout{Length: in.Shape[1], Long: m.Text.Long, OnePerText: true, Pad: m.encoder.pad(), Allocator: m.Allocator})
	if err != nil {
		return fmt.Errorf("column %q: %w", c.Name, err)
	}
	m.out.Texts, m.out.Truncated = m.out.Texts+len(all), m.out.Truncated+rows.Truncated
	values := map[string]*tensor.Tensor{in.Name: rows.Tokens}
	if err := m.addAuxiliary(values, rows); err != nil {
		return err
	}
	m.out.Schema.Inputs = append(m.out.Schema.Inputs, schema.Input{Name: in.Name, Columns: []schema.Column{{Name: c.Name}}})
	if in.Type != tensor.Int32 {
		m.before(in, graph.Value{Name: in.Name, Type: tensor.Int32, Shape: in.Shape}, func(b *graph.Builder, x string) string {
			return cast(b, x, tensor.Int32, in.Type)
		})
	}
	m.castAuxiliary(values)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		m.field(name, values[name])
	}
	return nil
}
