package consume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/node/consume/outputs"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
)

// Results is what a consumer gets of a settled batch: files in one directory.
type Results struct {
	Records int               `json:"-"`
	Outputs map[string]string `json:"outputs"` // by output, the file that has it
	Bundle  string            `json:"bundle"`
	Trust   string            `json:"trust_root"` // as of a Delivery

	Tensors map[string]*tensor.Tensor `json:"-"`
}

// BundleName is the file of a proof, in the directory of a delivery.
const BundleName = "proof.bundle"

// CanDeliverResults returns an error unless results can be written to a directory, which may be missing. Files are named as the
// model's outputs are, so one that holds anything is refused unless force says otherwise.
func CanDeliverResults(dir string, force bool) error {
	there, err := os.ReadDir(dir)
	if err == nil && len(there) > 0 && !force {
		return fmt.Errorf("%s is not empty: name another directory with --out, or give --force to overwrite what has the name of a result", dir)
	}
	return writable(dir)
}

// writable returns an error unless files can be written to a directory. If it is missing it is made, and removed again.
func writable(dir string) error {
	_, err := os.Lstat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".tally-")
	if err != nil {
		return err
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	if made {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}

// DeliverResults fetches what a settled batch gave and the proof of it, and writes them to a
// directory, in one of outputs.Formats. progress is as of Deliver.
func DeliverResults(ctx context.Context, env *role.Env, l *job.Lease, dir, format string, progress func(done, all int)) (*Results, error) {
	r := &Results{Records: l.Order.Problem.Records, Bundle: filepath.Join(dir, BundleName)}
	var err error
	if r.Tensors, err = FetchResults(ctx, env, l); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if r.Outputs, err = outputs.Write(dir, format, r.Tensors, r.Records); err != nil {
		return nil, err
	}
	trust, err := evidence.Collect(ctx, env, l, r.Bundle, progress)
	if err != nil {
		return nil, err
	}
	r.Trust = trust.String()
	return r, evidence.WriteTrust(dir, l.Order.Chain, trust)
}

// FetchResults gets the outputs for all records of a batch. Each was checked against its root.
func FetchResults(ctx context.Context, env *role.Env, l *job.Lease) (map[string]*tensor.Tensor, error) {
	if l.Round == 0 {
		return nil, fmt.Errorf("not all units were accepted: %s", l.Reason)
	}
	j, err := env.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	if l, err = env.Leases.Fill(ctx, l, l.Everything()); err != nil {
		return nil, err
	}
	g, err := newGathering(j, &l.Order.Problem)
	if err != nil {
		return nil, err
	}
	for i := range l.Units {
		for _, root := range l.Units[i].Receipt.Checkpoints[1:] {
			if g.full() {
				break
			}
			s, err := env.States.Get(ctx, l, root)
			if err != nil {
				return nil, err
			}
			g.add(s)
		}
	}
	return g.out, nil
}

// gathering puts the results of runs together. An output has a first axis of records; if the
// model takes several and gives one output for all of them, of runs.
type gathering struct {
	slots   []graph.Slot
	out     map[string]*tensor.Tensor
	records int
	batch   int
	at      int // runs that are in
}

func newGathering(j *replay.Job, p *job.Problem) (*gathering, error) {
	all, err := resultSlots(j, p)
	if err != nil {
		return nil, err
	}
	g := &gathering{slots: j.Step.Gives(), out: map[string]*tensor.Tensor{}, records: p.Records, batch: p.Batch}
	for _, s := range all {
		if g.out[s.Name], err = tensor.New(s.Type, s.Shape); err != nil {
			return nil, fmt.Errorf("output %q: %w", s.Name, err)
		}
	}
	return g, nil
}

// maxResults bounds what a batch gives, in bytes: it is put together in memory.
const maxResults = 8 << 30

// resultSlots returns the outputs of a batch for all records, or an error if nobody could put
// them together.
func resultSlots(j *replay.Job, p *job.Problem) (all []graph.Slot, err error) {
	left, runs := int64(maxResults), int64((p.Records-1)/p.Batch+1)
	axis := j.TakesAxis()
	for _, s := range j.Step.Gives() {
		each := int64(s.Shape.Elements()) * int64(s.Type.Size())
		if each > left/runs {
			return nil, fmt.Errorf("%d records give more than %d GiB, with output %q: order fewer at a time, or have the model give less", p.Records, maxResults>>30, s.Name)
		}
		left -= each * runs
		shape := append(tensor.Shape{int(runs)}, s.Shape...)
		if axis && len(s.Shape) > 0 && s.Shape[0] == p.Batch {
			shape = append(tensor.Shape{p.Records}, s.Shape[1:]...)
		}
		all = append(all, graph.Slot{Name: s.Name, Type: s.Type, Shape: shape})
	}
	return all, nil
}

// full reports whether all records have their results: what is left repeats the last one.
func (g *gathering) full() bool { return g.at*g.batch >= g.records }

func (g *gathering) add(s *graph.State) {
	for i, slot := range g.slots {
		to, from := g.out[slot.Name].Bytes(), s.Tensors[i].Bytes()
		at := g.at * len(from)
		copy(to[min(at, len(to)):], from)
	}
	g.at++
}
