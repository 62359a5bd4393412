package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
)

// Scores are how well a state does on records, by metric, in units of 1/[train.ScoreUnit]. Whoever
// computes them has the same.
type Scores map[string]int64

// Of returns a metric: 0 for one that there is not, NaN for one that is no number.
func (s Scores) Of(metric string) float64 {
	if s[metric] == train.NoScore {
		return math.NaN()
	}
	return float64(s[metric]) / train.ScoreUnit
}

// Loss returns the mean loss.
func (s Scores) Loss() float32 { return float32(s.Of("loss")) }

// String returns all metrics, by name.
func (s Scores) String() string {
	var out []string
	for _, metric := range slices.Sorted(maps.Keys(s)) {
		out = append(out, fmt.Sprintf("%s %.6g", strings.ReplaceAll(metric, "_", " "), s.Of(metric)))
	}
	return strings.Join(out, ", ")
}

// MarshalJSON implements json.Marshaler. What is no number is null.
func (s Scores) MarshalJSON() ([]byte, error) {
	out := map[string]*float64{}
	for metric, score := range s {
		if out[metric] = nil; score != train.NoScore {
			v := s.Of(metric)
			out[metric] = &v
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Scores) UnmarshalJSON(b []byte) error {
	var in map[string]*float64
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*s = Scores{}
	for metric, v := range in {
		if (*s)[metric] = train.NoScore; v != nil {
			(*s)[metric] = int64(math.Round(*v * train.ScoreUnit))
		}
	}
	return nil
}

var errMany = errors.New("there are too many held-out records")

// Unscored reports whether an error of scoring is that it takes too much, here.
func Unscored(err error) bool {
	var large *engine.LargeError
	return errors.Is(err, errMany) || errors.As(err, &large)
}

// Best returns which round is the best by its scores, counted from 0, and whether no more are wanted.
func Best(by train.Best, all []Scores) (round int, enough bool) {
	var scores []int64
	for _, s := range all {
		score, ok := s[by.Metric]
		if !ok {
			score = train.NoScore
		}
		scores = append(scores, score)
	}
	return by.Of(scores)
}

// Enough says by which scores no more rounds were wanted, once they were not; "" if they always were.
func Enough(by train.Best, all []Scores) string {
	for n := range all {
		if best, enough := Best(by, all[:n+1]); enough {
			return fmt.Sprintf("its %s of %.6g after round %d was the best, and the next %d had none better", strings.ReplaceAll(by.Metric, "_", " "), all[best].Of(by.Metric), best+1, by.Patience)
		}
	}
	return ""
}

// Scores returns how well a state does on records.
func (j *Job) Scores(ctx context.Context, s *graph.State, records *tensor.Tensor, exec engine.Executor) (Scores, error) {
	x, err := j.Scorer(records, exec)
	if err != nil {
		return nil, err
	}
	return x.Scores(ctx, s)
}

// Scorer scores states on the same records.
type Scorer struct {
	of          *train.Evaluation
	records     *tensor.Tensor
	batch, rest engine.Runner // nil where there is none
	add, score  engine.Runner
	full, each  int // batches, and records in each
}

// maxSteps bounds the steps of one scoring.
const maxSteps = 1 << 16

// Scorer returns what scores states on records. Where they are too many, or take more memory than an executor may, the
// error is no fault of theirs: see [Unscored].
func (j *Job) Scorer(records *tensor.Tensor, exec engine.Executor) (*Scorer, error) {
	e, err := j.Training.Evaluate(records.Shape)
	if err != nil {
		return nil, err
	}
	n, each := records.Shape[0], j.Recipe.Batch
	if n/each > maxSteps {
		return nil, fmt.Errorf("%w: %d steps, the limit is %d", errMany, n/each, maxSteps)
	}
	x := &Scorer{of: e, records: records, full: n / each, each: each}
	for _, p := range []struct {
		program *graph.Program
		to      *engine.Runner
	}{{e.Batch, &x.batch}, {e.Rest, &x.rest}, {e.Add, &x.add}, {e.Score, &x.score}} {
		if p.program == nil {
			continue
		}
		if *p.to, err = exec.Prepare(p.program); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Scores returns how well a state does.
func (x *Scorer) Scores(ctx context.Context, s *graph.State) (Scores, error) {
	var sums *graph.State
	for i := range x.full + 1 {
		of, rows := x.batch, make([]int64, x.each)
		if i == x.full {
			of = x.rest
		}
		if of == nil {
			continue
		}
		for k := range rows {
			rows[k] = int64(min(i*x.each+k, x.records.Shape[0]-1)) // behind the rest the last one, which does not count
		}
		out, err := of.Run(ctx, graph.Inputs{States: []*graph.State{s}, Data: x.records, Rows: rows}, nil)
		if err != nil {
			return nil, err
		}
		if sums == nil {
			sums = out
		} else if sums, err = x.add.Run(ctx, graph.Inputs{States: []*graph.State{sums, out}}, nil); err != nil {
			return nil, err
		}
	}
	end, err := x.score.Run(ctx, graph.Inputs{States: []*graph.State{sums}}, nil)
	if err != nil {
		return nil, err
	}
	out := Scores{}
	for _, metric := range x.of.Metrics {
		out[metric] = tensor.Of[int64](end.Find(metric))[0]
	}
	return out, nil
}
