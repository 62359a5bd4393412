package consume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/consume/dataset"
	"github.com/tally-network/tally/node/consume/proved"
	"github.com/tally-network/tally/node/consume/tokens"
	"github.com/tally-network/tally/node/replay"
)

// Origin is what training starts from: a model, or where an earlier order ended.
type Origin struct {
	Model   *graph.Graph
	Teacher string                 // output of the model that it learns from; "": none
	Own     map[string]graph.Value // as of a dataset.Dataset

	Parent *replay.Parent    // the earlier order; or nil
	Tokens *tokens.Tokenizer // how texts become tokens; nil: by their characters
	Base   *dataset.Base     // what the earlier order learnt of its data; nil without one
}

// student returns the model without its teacher.
func (o *Origin) student() *graph.Graph {
	g := *o.Model
	g.Outputs = slices.DeleteFunc(slices.Clone(g.Outputs), func(v graph.Value) bool { return v.Name == o.Teacher && o.Teacher != "" })
	return &g
}

// sized returns problem.dims as YAML, with sizes added for symbols: the batch for "batch",
// else 64.
func (p *SpecProblem) sized(symbols []string) string {
	all := maps.Clone(p.Dims)
	if all == nil {
		all = map[string]int{}
	}
	for _, symbol := range symbols {
		all[symbol] = 64
		if symbol == "batch" {
			all[symbol] = p.Batch
		}
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		texts = append(texts, fmt.Sprintf("%q: %d", name, all[name])) // of any letters
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// readOrigin reads the model that a spec names, or the bundle that it continues.
func (s *Spec) readOrigin(ctx context.Context, exec engine.Executor) (Origin, error) {
	p := &s.Problem
	if p.Continue == "" {
		g, err := s.readModel()
		var sizeless *onnx.SymbolError
		if errors.As(err, &sizeless) {
			err = fmt.Errorf("model %s: its dimensions %q have no size: write problem.dims: %s, with the sizes that you want", p.Model, sizeless.Symbols, p.sized(sizeless.Symbols))
		}
		return Origin{Model: g}, err
	}
	f, size, err := s.open("problem.continue", p.Continue)
	if err != nil {
		return Origin{}, err
	}
	o, err := proved.Read(ctx, f, size, exec)
	if err == nil {
		err = o.Suits(p.Data != nil)
	}
	if err != nil {
		err = fmt.Errorf("problem.continue %s: %w", p.Continue, err)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return Origin{}, err
	}
	return originOf(o), nil
}

// originOf returns what goes on from an order.
func originOf(p proved.Order) Origin {
	o := Origin{Model: p.Model, Teacher: p.Teacher, Parent: &p.Parent, Tokens: p.Tokens}
	o.Base = &dataset.Base{Model: o.student(), Schema: p.Schema, Loss: p.Loss, Output: p.Output, Tokenizer: p.Tokenizer}
	return o
}
