package lm

import (
	"fmt"
	"maps"

	"github.com/tally-network/tally/core/tensor"
)

// Row returns row i, [Vocabulary], of logits that a step has given, [Logits, Vocabulary].
func Row(logits *tensor.Tensor, i int) (*tensor.Tensor, error) {
	if len(logits.Shape) != 2 || i < 0 || i >= logits.Shape[0] {
		return nil, fmt.Errorf("row %d of logits %v", i, logits.Shape)
	}
	return rowsOf(logits, i, 1)
}

// Fork returns what draws on from here apart: what it draws changes nothing for n. It draws the tokens that n would draw of the same logits.
func (n *ReplySampler) Fork() (*ReplySampler, error) {
	f, follows := *n, *n.follows
	f.in, f.follows = maps.Clone(n.in), &follows
	for _, name := range []string{"reply", "mask"} { // what draws write into
		x := n.in[name]
		if x == nil {
			continue
		}
		y, err := tensor.New(x.Type, x.Shape)
		if err != nil {
			return nil, err
		}
		copy(y.Bytes(), x.Bytes())
		f.in[name] = y
	}
	return &f, nil
}
