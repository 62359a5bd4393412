package train_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/train"
)

func TestBestOfRounds(t *testing.T) {
	const none = train.NoScore
	for _, c := range []struct {
		best   train.Best
		scores []int64
		want   int
		enough bool
	}{
		{train.Best{}, []int64{3, 2, 1}, 2, false},
		{train.Best{Metric: "loss"}, nil, -1, false},
		{train.Best{Metric: "loss"}, []int64{5, 3, 4, 3}, 1, false},
		{train.Best{Metric: "perplexity", Patience: 2}, []int64{5, 3, 4}, 1, false},
		{train.Best{Metric: "mean_squared_error", Patience: 2}, []int64{5, 3, 4, 3}, 1, true},
		{train.Best{Metric: "accuracy"}, []int64{5, 3, 9, 9}, 2, false},
		{train.Best{Metric: "f1", Patience: 1}, []int64{5, 5}, 0, true},
		{train.Best{Metric: "loss"}, []int64{none, 7, none}, 1, false},
		{train.Best{Metric: "accuracy", Patience: 2}, []int64{none, none, none}, 0, true},
	} {
		if got, enough := c.best.Of(c.scores); got != c.want || enough != c.enough {
			t.Errorf("%+v of %v: %d, %v, want %d, %v", c.best, c.scores, got, enough, c.want, c.enough)
		}
	}
}

// Recipes that choose nothing keep their bytes; each other has one encoding.
func TestBestIsEncoded(t *testing.T) {
	plain := train.Recipe{Loss: "cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 1}, Batch: 1}
	chosen := plain
	chosen.Best = train.Best{Metric: "accuracy", Patience: 3}
	var back train.Recipe
	if err := canon.Unmarshal(canon.Marshal(&chosen), &back); err != nil || back.Best != chosen.Best {
		t.Fatalf("%+v, %v", back.Best, err)
	}
	b := canon.Marshal(&plain)
	for n := range 6 {
		if err := canon.Unmarshal(append(b[:len(b):len(b)], make([]byte, n+1)...), &train.Recipe{}); err == nil {
			t.Errorf("%d bytes of nothing are read", n+1)
		}
	}
	for _, bad := range []train.Best{{Metric: "beauty"}, {Patience: 1}, {Metric: "loss", Patience: -1}, {Metric: "loss", Patience: 1 << 20}} {
		if plain.Best = bad; plain.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	const all = `no metric "beauty": choose by loss, perplexity, accuracy, top_5, f1, auc, mean_absolute_error, mean_squared_error`
	if err := (train.Best{Metric: "beauty"}).Check(); err == nil || !strings.Contains(err.Error(), all) {
		t.Error(err)
	}
}
