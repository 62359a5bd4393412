package demo

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/outputs"
	"github.com/tally-network/tally/node/replay"
)

// The batch that the demo orders beside the training: how well the untrained model foresees
// each character of the held-out text.
const (
	scoreBatch = 8 // records of a run, as many as a training step reads
	scoreSteps = 2 // runs of a unit

	ScoreSlot = "loss" // the output that has the losses
)

// Score is the outcome of the batch.
type Score struct {
	consume.Outcome
	*consume.Results
	Records int     `json:"records"`
	Loss    float32 `json:"loss"`             // mean, nats per character
	Project uint64  `json:"project"`          // whose task it was
	Drilled uint64  `json:"drilled_micro_ut"` // that its project has been credited with so far
}

// scoreRecords cuts records of text, int32 [n Context+1], into what a graph of Scorer takes. What does
// not fill a run is left out, as from the held-out loss.
func scoreRecords(text *tensor.Tensor) (*graph.State, error) {
	n, width := text.Shape[0]/scoreBatch*scoreBatch, text.Shape[1]-1
	s := &graph.State{}
	for first, name := range []string{"tokens", "next"} {
		t, err := tensor.New(tensor.Int32, tensor.Shape{n, width})
		if err != nil {
			return nil, err
		}
		for i := range n {
			copy(tensor.Of[int32](t)[i*width:][:width], tensor.Of[int32](text)[i*(width+1)+first:])
		}
		s.Slots = append([]graph.Slot{{Name: name, Type: t.Type, Shape: t.Shape}}, s.Slots...) // by name
		s.Tensors = append([]*tensor.Tensor{t}, s.Tensors...)
	}
	return s, nil
}

// draftScore makes the order for scores of held-out text.
func (d *demo) draftScore(ctx context.Context, heldOut *tensor.Tensor) (*consume.Draft, error) {
	forward, err := d.model.Training(scoreBatch, recordLength)
	if err != nil {
		return nil, err
	}
	records, err := scoreRecords(heldOut)
	if err != nil {
		return nil, err
	}
	s := consume.BatchSpec{Name: "score", Project: d.project, Problem: consume.BatchProblem{Steps: scoreSteps}, Conditions: d.spec.Conditions}
	s.Conditions.Credit = true // as a task must
	return consume.FromDataset(ctx, s, replay.Dataset{Model: Scorer(forward), Records: records, Batch: scoreBatch}, d.env.Jobs.Exec)
}

// finishScore fetches and writes what the batch gave.
func (d *demo) finishScore(ctx context.Context, l *job.Lease) (err error) {
	s := &Score{Records: l.Order.Problem.Records}
	if s.Outcome, err = consume.NewOutcome(ctx, d.env, l); err != nil {
		return err
	}
	s.Project = l.Order.Project
	if s.Drilled, err = d.drilled(ctx, s.Project); err != nil {
		return err
	}
	if s.Results, err = consume.DeliverResults(ctx, d.env, l, d.results(l), outputs.Formats[0], nil); err != nil {
		return err
	}
	losses := tensor.Of[float32](s.Tensors[ScoreSlot])
	if len(losses) == 0 {
		return fmt.Errorf("batch %s gave no losses", l.Order.ID().Short())
	}
	sum := 0.0
	for _, x := range losses {
		sum += float64(x)
	}
	s.Loss = float32(sum / float64(len(losses)))
	d.report.Batch = s
	return nil
}

// results is the directory of what came of an order.
func (d *demo) results(l *job.Lease) string {
	return filepath.Join(d.o.Dir, ResultsDir, l.Order.ID().Short())
}

// drilled returns what a project has been credited with, in millionths of a ut.
func (d *demo) drilled(ctx context.Context, project uint64) (uint64, error) {
	r, err := drillingv1.NewQueryClient(d.env.Chain.Conn).Project(ctx, &drillingv1.QueryProjectRequest{Project: project})
	if err != nil {
		return 0, fmt.Errorf("project %d: %w", project, err)
	}
	return r.Project.Drilled, nil
}
