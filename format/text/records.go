package text

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// MaxContext bounds the tokens of a record that are inputs.
const MaxContext = 1 << 16

// Records cuts tokens into the int32 tensor [records, context+1]. A record's
// first context tokens are inputs, its last context tokens the targets; the
// next record starts with its last token, so that every token but the first is
// a target once. Tokens at the end that do not fill a record are dropped.
func Records(ids []int32, context int) (*tensor.Tensor, error) {
	if context < 1 || context > MaxContext {
		return nil, fmt.Errorf("cut records: context %d, take 1 to %d", context, MaxContext)
	}
	n := (len(ids) - 1) / context
	if len(ids) == 0 || n < 1 {
		return nil, fmt.Errorf("cut records: %d tokens, a record of context %d takes %d: give more text or a shorter context", len(ids), context, context+1)
	}
	t, err := tensor.New(tensor.Int32, tensor.Shape{n, context + 1})
	if err != nil {
		return nil, fmt.Errorf("cut records: %w", err)
	}
	rows := tensor.Of[int32](t)
	for i := range n {
		copy(rows[i*(context+1):(i+1)*(context+1)], ids[i*context:])
	}
	return t, nil
}
