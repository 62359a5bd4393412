package replay_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/node/replay"
)

// stateOf returns a state of a weight, a mask, a moment and a loss.
func stateOf(w, mask, moment, loss float64) *graph.State {
	s := &graph.State{}
	for _, x := range []struct {
		name string
		of   float64
	}{{"p/w", w}, {"p/mask", mask}, {"m/w", moment}, {"loss", loss}} {
		s.Slots = append(s.Slots, graph.Slot{Name: x.name, Type: tensor.Float32})
		s.Tensors = append(s.Tensors, tensor.Scalar(float32(x.of)))
	}
	return s
}

// Which round came first to what is no number is told, and of what. What was infinite at the start may be so.
func TestTrainingThatCameToNoNumber(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	fine := stateOf(1, inf, 0, 2)
	j := replay.Job{}
	j.Start = stateOf(1, inf, 0, 0)
	for want, rounds := range map[string][]*graph.State{
		"":                                  {fine, fine},
		"after round 1 its loss":            {stateOf(1, inf, 0, nan), stateOf(nan, inf, 0, nan)},
		`after round 2 its weight "w"`:      {fine, stateOf(nan, inf, 0, 3), stateOf(nan, nan, nan, nan)},
		`what its optimizer keeps as "m/w"`: {stateOf(1, inf, math.Inf(1), 2)},
	} {
		b, err := j.FindDivergence(len(rounds), func(i int) (*graph.State, error) { return rounds[i], nil })
		if err != nil || (b == nil) != (want == "") || b != nil && !strings.Contains(b.String(), want) {
			t.Errorf("%v %v, want %q", b, err, want)
		}
	}
	if b, err := j.FindDivergence(0, nil); b != nil || err != nil {
		t.Errorf("of no rounds: %v %v", b, err)
	}
	gone := errors.New("gone")
	if _, err := j.FindDivergence(1, func(int) (*graph.State, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("a state that is gone: %v", err)
	}
}

func TestRatings(t *testing.T) {
	const unit = train.ScoreUnit
	all := []replay.Scores{{"accuracy": unit / 4}, {"accuracy": unit / 2}, {"accuracy": unit / 8}}
	var r replay.Rating
	r.Diverged = &replay.Divergence{Round: 3, What: "its loss"}
	r.Rate(train.Best{Metric: "accuracy", Patience: 1}, all, true)
	want := []string{
		"DIVERGED: after round 3 its loss is not a finite number, and what followed is of no use: lower problem.optimizer.learningRate, set clipNorm, or check the data. The model is of round 2, before that",
		"scores    accuracy of each round: 0.25, 0.5, 0.125; the best is 0.5, of round 2",
		"enough    its accuracy of 0.5 after round 2 was the best, and the next 1 had none better",
	}
	if got := r.Lines(); !slices.Equal(got, want) || r.ModelDiverged() {
		t.Errorf("%q", got)
	}
	last := replay.Rating{Diverged: &replay.Divergence{Round: 2, What: "its loss"}}
	last.Rate(train.Best{}, []replay.Scores{nil, nil, {"loss": train.NoScore}}, false)
	if got := last.Lines(); len(got) != 1 || !last.ModelDiverged() || last.Round != 3 || last.Scores != nil {
		t.Errorf("%+v %q", last, got)
	}
	long := replay.Rating{}
	long.Rate(train.Best{Metric: "loss"}, slices.Repeat([]replay.Scores{{"loss": unit}}, 100), true)
	if got := long.Lines(); len(got) != 1 || !strings.Contains(got[0], "round: …, 1, 1") || strings.Count(got[0], ", 1") != 24 {
		t.Errorf("%q", got)
	}
}
