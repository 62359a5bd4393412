package replay_test

import (
	"testing"

	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/node/replay"
)

func TestRoundsAreComparedByTheirMetric(t *testing.T) {
	all := []replay.Scores{{"loss": 9, "accuracy": 5}, {"loss": 4, "accuracy": 8}, nil, {"loss": 6, "accuracy": 9}}
	for _, c := range []struct {
		best   train.Best
		rounds int
		want   int
		enough bool
	}{
		{train.Best{}, 4, 3, false},
		{train.Best{}, 0, -1, false},
		{train.Best{Metric: "loss"}, 4, 1, false},
		{train.Best{Metric: "loss", Patience: 1}, 3, 1, true}, // of which none has a score
		{train.Best{Metric: "accuracy", Patience: 2}, 4, 3, false},
	} {
		if got, enough := replay.Best(c.best, all[:c.rounds]); got != c.want || enough != c.enough {
			t.Errorf("%+v of %d rounds: %d, %v, want %d, %v", c.best, c.rounds, got, enough, c.want, c.enough)
		}
	}
}

func TestWhyNoMoreRoundsAreWanted(t *testing.T) {
	const unit = train.ScoreUnit
	all := []replay.Scores{{"accuracy": unit / 2}, {"accuracy": unit / 4}, {"accuracy": unit / 8}, {"accuracy": unit}} // the last was under way
	for patience, want := range map[int]string{0: "", 2: "its accuracy of 0.5 after round 1 was the best, and the next 2 had none better", 4: ""} {
		if got := replay.Enough(train.Best{Metric: "accuracy", Patience: patience}, all); got != want {
			t.Errorf("patience %d: %q, want %q", patience, got, want)
		}
	}
}
