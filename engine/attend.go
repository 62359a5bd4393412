package engine

import (
	"context"

	"github.com/tally-network/tally/core/tensor"
)

// Attender is an executor that lets tokens look at caches of any length without a program for each length.
type Attender interface {
	// Attend computes the operator CachedAttention for each of some sequences, bit for bit. It reports false, and does nothing, if only a
	// program can.
	Attend(ctx context.Context, a Attention, of []Attended) (served bool, err error)
}

// Attention is the operator CachedAttention, but for lengths: its attributes, and heads of queries, which share those of keys and
// values, of so many elements each.
type Attention struct {
	Heads, Shared, Size int
	Window              int     // left_window_size
	Scale, Softcap      float32 // 0 where the attribute is not there
}

// Attended is one sequence: queries of its last tokens [rows, Heads, Size], keys and values of all, [total, Shared, Size], and what the tokens
// see, Out, which is as large as the queries. All are float32.
type Attended struct {
	Queries, Keys, Values, Out *tensor.Tensor
}
