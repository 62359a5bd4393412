package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/table"
)

// Base is an earlier order whose training goes on with other records. What its data taught is part of its model and its
// schema, and stays as it is: means and deviations, the texts of categories, classes, the tokenizer.
type Base struct {
	Model     *graph.Graph   // reads fields of records
	Schema    *schema.Schema // nil of a text
	Loss      string         // the loss of an order that names none
	Output    string         // of the model, that the loss reads
	Tokenizer []byte         // tokenizer.json; nil if it has none
}

// GoOn is [Options.Make] for data with which the training of an earlier order goes on. It does not change the model.
func (o *Options) GoOn(t *table.Table, e *Encoder, b *Base, objective Objective) (*Dataset, error) {
	if o.Normalize != "" {
		return nil, errors.New("data.normalize: how numbers enter is part of the model that goes on: leave it out")
	}
	objective.Name, objective.Output = cmp.Or(objective.Name, b.Loss), cmp.Or(objective.Output, b.Output)
	m := o.newMaker(t, b.Model, objective)
	defer runtime.KeepAlive(m) // its memory may not be Go's
	m.base, m.Normalize = b, None
	d, err := m.make(e)
	if err == nil && d.Model != b.Model {
		err = errors.New("the records have other types or shapes than those of the earlier order: bring such as it had, or begin a new order by problem.model")
	}
	if err != nil {
		return nil, fmt.Errorf("data %s: %w", o.Source, err)
	}
	return d, nil
}

// OpenEncoder is [Options.OpenEncoder] for data with which an earlier order goes on: its tokenizer stays.
func (b *Base) OpenEncoder(o *Options, folders []string) (*Encoder, error) {
	if b.Tokenizer != nil && o.Text.Tokenizer == "" {
		return o.opened(o.Text.finish(folders, &Encoder{File: b.Tokenizer}, nil))
	}
	e, err := o.OpenEncoder(folders)
	if err == nil && e != nil && !bytes.Equal(e.File, b.Tokenizer) {
		err = errors.New("data.text.tokenizer is another than that of the earlier order, which goes on with its own: leave it out, or name the same")
	}
	return e, err
}

// knownInputs gives each input what the base's did read.
func (m *maker) knownInputs() error {
	s := m.base.Schema
	if s == nil {
		return errors.New("the earlier order trained on a text, and not on columns: bring texts or chats, or a text in problem.text")
	}
	for i := range s.Inputs {
		of := &s.Inputs[i]
		at := slices.IndexFunc(m.out.Model.Inputs, func(v graph.Value) bool { return v.Name == of.Name })
		if at < 0 || len(of.Columns) == 0 {
			return fmt.Errorf("the earlier order's schema has an input %q, which its model does not read", of.Name)
		}
		for _, c := range of.Columns {
			m.used[c.Name] = true
		}
		if err := m.knownInput(m.out.Model.Inputs[at], of.Columns); err != nil {
			return err
		}
	}
	m.out.Schema.Inputs = s.Inputs
	if more := m.left(); len(more) > 0 {
		var names []string
		for _, c := range more {
			names = append(names, c.Name)
		}
		return fmt.Errorf("the earlier order did not read the columns %s: name them in data.ignore, or begin a new order by problem.model, whose model reads them", listed(names))
	}
	return nil
}

// knownColumn returns a column that the base did read.
func knownColumn(t *table.Table, name string) (*table.Column, error) {
	c, err := t.Column(name)
	if err != nil {
		err = fmt.Errorf("the earlier order read a column %q: %w: the source needs one of this name", name, err)
	}
	return c, err
}

func (m *maker) knownInput(in graph.Value, columns []schema.Column) error {
	first, err := knownColumn(m.table, columns[0].Name)
	if err != nil {
		return err
	}
	alone := len(columns) == 1 && columns[0].Category == nil
	if alone && (len(in.Shape) != 2 || in.Shape[1] != 1 || first.Kind == table.Array) {
		if first.Kind == table.Category && len(in.Shape) < 2 {
			return fmt.Errorf("column %q holds texts, and the earlier order does not say which number each had: write numbers in its place", first.Name)
		}
		return m.column(in, first)
	}
	x := &matrix{records: m.table.Records, alloc: m.Allocator}
	for len(columns) > 0 {
		same := 1
		for same < len(columns) && columns[same].Name == columns[0].Name {
			same++
		}
		c, err := knownColumn(m.table, columns[0].Name)
		if err != nil {
			return err
		}
		if c, _, err = m.whole(c); err != nil {
			return err
		}
		if columns[0].Category != nil {
			var texts []string
			for _, of := range columns[:same] {
				texts = append(texts, *cmp.Or(of.Category, new(string)))
			}
			c, err = among(c, texts)
		} else if c.Kind == table.Category || c.Kind == table.Text {
			err = fmt.Errorf("column %q holds texts, and numbers in the earlier order: write numbers in its place", c.Name)
		}
		if err != nil {
			return err
		}
		if err := x.add(c, ""); err != nil {
			return err
		}
		columns = columns[same:]
	}
	if len(in.Shape) != 2 || in.Shape[1] != x.width() {
		return fmt.Errorf("input %q of the earlier order's model is %v%v, but its schema names %d numbers", in.Name, in.Type, in.Shape, x.width())
	}
	v, err := x.tensor()
	if err == nil {
		m.field(in.Name, v)
	}
	return err
}

// among returns a column as a category of the texts that are known.
func among(c *table.Column, known []string) (*table.Column, error) {
	at := map[string]int{}
	for i, text := range known {
		at[text] = i
	}
	v, err := c.Allocator.New(tensor.Int32, tensor.Shape{c.Len()})
	if err != nil {
		return nil, err
	}
	for i, all := 0, tensor.Of[int32](v); i < c.Len(); i++ {
		k, ok := at[c.Value(i)]
		if !ok {
			return nil, fmt.Errorf("column %q says %.40q in record %d, which the earlier order did not know; it knew %s: leave such records out, or begin a new order by problem.model", c.Name, c.Value(i), i+1, listed(known))
		}
		all[i] = int32(k)
	}
	return &table.Column{Name: c.Name, Kind: table.Category, Values: v, Categories: known, Allocator: c.Allocator}, nil
}

// target returns the target that the base tells, nil if it tells none.
func (b *Base) target() *schema.Target {
	if b == nil || b.Schema == nil {
		return nil
	}
	return b.Schema.Target
}

// inClasses returns a target in the classes that are known, if there are some. What is between truths stays a number.
func inClasses(c *table.Column, classes []string, loss string) (*table.Column, error) {
	between := loss == ofTruths && (c.Kind == table.Integer || c.Kind == table.Real)
	if len(classes) == 0 || c.Kind == table.Array || between {
		return c, nil
	}
	return among(c, classes)
}
