package consume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/consume/choice"
	"github.com/tally-network/tally/node/consume/models"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
)

// Delivery is what a consumer gets of a settled order: files in one directory,
// and how good the model is. Losses of a text are in nats per token.
type Delivery struct {
	Safetensors string `json:"safetensors"`
	ONNX        string `json:"onnx"`
	Tokenizer   string `json:"tokenizer,omitempty"` // of a text
	Schema      string `json:"schema,omitempty"`    // of other data: what inputs read and outputs tell
	Adapter     string `json:"adapter,omitempty"`   // folder of the adapters that were trained, as PEFT writes it
	Curve       string `json:"curve,omitempty"`     // a picture of the losses
	Bundle      string `json:"bundle"`
	Trust       string `json:"trust_root"` // of the chain: what a verifier of the bundle needs to believe

	replay.Rating                 // the model is of the round that is wanted
	Losses          []replay.Loss `json:"losses"` // after each round, of its last step: the mean over its shards
	LossLast        replay.Loss   `json:"loss_last"`
	HeldOutLossLast replay.Loss   `json:"heldout_loss_last"`

	Result *Result `json:"-"`
}

func newDelivery(dir string) *Delivery {
	return &Delivery{
		Safetensors: filepath.Join(dir, "model.safetensors"), ONNX: filepath.Join(dir, "model.onnx"),
		Bundle: filepath.Join(dir, BundleName),
	}
}

// CanDeliver returns an error unless a model and its proof can be written to a directory, which may be missing. What is there
// already is only overwritten if replace says so.
func CanDeliver(dir string, replace bool) error {
	d := newDelivery(dir)
	for _, name := range []string{d.Safetensors, d.ONNX, filepath.Join(dir, tokenizerName), filepath.Join(dir, schemaName), filepath.Join(dir, models.AdapterFolder), d.Bundle} {
		if _, err := os.Lstat(name); err == nil && !replace {
			return fmt.Errorf("%s is there already: name another directory with --out, or give --force to overwrite it", name)
		}
	}
	return writable(dir)
}

// Deliver fetches the model of a settled lease and the proof of it, and writes
// them to a directory. progress sees how much of the proof is there; it may be
// nil.
func Deliver(ctx context.Context, env *role.Env, l *job.Lease, dir string, progress func(done, all int)) (*Delivery, error) {
	d := newDelivery(dir)
	var err error
	if l.Round == 0 {
		return nil, fmt.Errorf("no round was merged: %s", l.Reason)
	}
	if err = d.measure(ctx, env, l); err != nil {
		return nil, err
	}
	root := l.Merges[d.Round-1].Root
	if d.Result, err = fetchState(ctx, env, l, root); err != nil {
		return nil, err
	}
	d.LossLast = replay.Loss(replay.LossOf(d.Result.State))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := d.explain(ctx, env, l, dir); err != nil {
		return nil, err
	}
	d.Adapter, err = models.WriteAdapter(dir, d.Result.Adapter)
	if err := errors.Join(err, replace.File(d.Safetensors, d.Result.Safetensors), replace.File(d.ONNX, d.Result.ONNX)); err != nil {
		return nil, err
	}
	trust, err := evidence.Collect(ctx, env, l, d.Bundle, progress)
	if err != nil {
		return nil, err
	}
	d.Trust = trust.String()
	return d, evidence.WriteTrust(dir, l.Order.Chain, trust)
}

// Names of the files that say what a model's inputs and outputs mean.
const (
	tokenizerName = "tokenizer.json"
	schemaName    = "schema.json"
)

// explain writes what says what the model's inputs and outputs mean.
func (d *Delivery) explain(ctx context.Context, env *role.Env, l *job.Lease, dir string) error {
	for _, x := range []struct {
		role, name string
		to         *string
	}{{replay.RoleTokenizer, tokenizerName, &d.Tokenizer}, {replay.RoleSchema, schemaName, &d.Schema}} {
		file, ok := l.Order.Problem.File(x.role)
		if !ok {
			continue
		}
		b, err := env.Blobs.Read(ctx, l, file, blobs.Holders(l)...)
		if err != nil {
			return err
		}
		*x.to = filepath.Join(dir, x.name)
		if err := replace.File(*x.to, b); err != nil {
			return err
		}
	}
	return nil
}

// measure scores the trained model: of the round that the order says is the best.
func (d *Delivery) measure(ctx context.Context, env *role.Env, l *job.Lease) error {
	d.Round = l.Round
	state := func(round int) (*graph.State, error) { return env.States.Get(ctx, l, l.Merges[round].Root) }
	for round := range l.Round {
		s, err := state(round)
		if err != nil {
			return err
		}
		d.Losses = append(d.Losses, replay.Loss(replay.LossOf(s)))
	}
	j, err := env.Jobs.Get(ctx, l)
	if err != nil {
		return err
	}
	if d.Diverged, err = j.FindDivergence(l.Round, state); err != nil {
		return err
	}
	rounds, err := choice.New(ctx, env, l)
	if err == nil {
		err = rounds.See(ctx, l)
	}
	switch {
	case err == nil:
		rounds.Rate(&d.Rating, l.Reason != "")
	case !replay.Unscored(err): // else the model is delivered all the same, of the last round
		return err
	}
	d.HeldOutLossLast = replay.Loss(d.Metrics.Loss())
	return nil
}

// Kept says which round the model is of, "" if it is the last one.
func (d *Delivery) Kept() string {
	if d.Round == len(d.Losses) {
		return ""
	}
	return fmt.Sprintf(", after round %d of %d, which is the best", d.Round, len(d.Losses))
}
