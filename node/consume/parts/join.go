package parts

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// Join puts the results of parts one after the other, along the first axis of each output.
func Join(all []map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	if len(all) == 0 {
		return nil, errors.New("there are no results to join")
	}
	out := map[string]*tensor.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(all[0])) {
		first, rows := all[0][name], 0
		for i, part := range all {
			t := part[name]
			if len(part) != len(all[0]) || t == nil || len(t.Shape) == 0 || t.Type != first.Type || !t.Shape[1:].Equal(first.Shape[1:]) {
				return nil, fmt.Errorf("the results of part %d are not of the form of those of part 1: output %q differs", i+1, name)
			}
			rows += t.Shape[0]
		}
		joined, err := tensor.New(first.Type, append(tensor.Shape{rows}, first.Shape[1:]...))
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", name, err)
		}
		at := 0
		for _, part := range all {
			at += copy(joined.Bytes()[at:], part[name].Bytes())
		}
		out[name] = joined
	}
	return out, nil
}
