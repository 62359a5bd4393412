package consume

import (
	"bytes"
	"context"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/format/peft"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/node/consume/models"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
)

// Result is a trained model, checked against the root on chain.
type Result struct {
	State             *graph.State
	Model             *graph.Graph // with the trained weights
	ONNX, Safetensors []byte
	Adapter           map[string][]byte // files of the folder with its adapters; nil: there are none
}

// fetchState gets the state of a lease that has a root, and writes it in the formats that other
// programs read.
func fetchState(ctx context.Context, env *role.Env, l *job.Lease, root canon.Hash) (*Result, error) {
	j, err := env.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	s, err := env.States.Get(ctx, l, root)
	if err != nil {
		return nil, err
	}
	return NewResult(s, root, j, l)
}

// NewResult writes a state of an order's model, and its root, in the formats that other programs read.
func NewResult(s *graph.State, root canon.Hash, j *replay.Job, l *job.Lease) (*Result, error) {
	g, err := train.Export(s, j.Model, j.Recipe)
	if err != nil {
		return nil, err
	}
	r := &Result{State: s, Model: g}
	if r.ONNX, err = models.WriteTrained(g); err != nil {
		return nil, err
	}
	weights := map[string]*tensor.Tensor{}
	for _, c := range g.Consts {
		weights[c.Name] = c.Tensor
	}
	var buf bytes.Buffer
	meta := map[string]string{"format": "pt", "tally.order": l.Order.ID().String(), "tally.state_root": root.String()}
	if err := safetensors.Write(&buf, weights, meta); err != nil {
		return nil, err
	}
	r.Safetensors = buf.Bytes()
	r.Adapter, err = peft.Of(g, &j.Recipe.Adapters)
	return r, err
}
