package consume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/consume/tokens"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/replay"
)

// Origin is what training starts from: a model, or where an earlier order ended.
type Origin struct {
	Model   *graph.Graph
	Teacher string                 // output of the model that it learns from; "": none
	Own     map[string]graph.Value // as of a dataset.Dataset

	Parent *replay.Parent    // the earlier order; or nil
	Tokens *tokens.Tokenizer // how texts become tokens; nil: by their characters
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
	f, size, err := s.open("continue", p.Continue)
	if err != nil {
		return Origin{}, err
	}
	o, err := readParent(ctx, f, size, exec)
	if err != nil {
		err = fmt.Errorf("continue %s: %w", p.Continue, err)
	}
	return o, errors.Join(err, f.Close())
}

// readParent reads the proof of a settled order, which has size bytes. Nobody needs to be
// believed for it. The chain takes the new order only if it knows the parent by its id, which
// binds all files. It must have settled the parent in the state that the new order goes on from.
func readParent(ctx context.Context, f io.ReaderAt, size int64, exec engine.Executor) (o Origin, err error) {
	p, err := evidence.Check(ctx, f, size, evidence.Anybody, exec)
	if err != nil {
		return o, err
	}
	problem := &p.Lease.Order.Problem
	file, ok := problem.File(replay.RoleTokenizer)
	if !ok {
		return o, errors.New("its order trained on other data than a text: only training on problem.text goes on")
	}
	b, err := p.File(file)
	if err != nil {
		return o, err
	}
	if o.Tokens, err = tokens.Read(b); err != nil {
		return o, err
	}
	o.Model, o.Teacher, o.Parent = p.Job.Model, p.Job.Recipe.Teacher, &replay.Parent{Order: &p.Lease.Order}
	o.Parent.Final, err = p.Final()
	return o, err
}
