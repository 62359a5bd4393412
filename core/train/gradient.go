package train

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Gradients appends to b the gradients of a value without axes with respect to
// some others, and returns their names by those of the values; one that has no
// influence is missing. b must hold the graph that calls are the nodes of.
//
// It walks the nodes backwards. Where a value is read more than once, its
// gradients are added in that order: those from later nodes first, those of one
// node by its inputs. Constants and integers have none.
//
// The values that it reads are computed again in all but the last of so many
// parts of the graph, so that they need not be kept; with fewer than two, none
// is. That changes no bit of a gradient.
func Gradients(b *graph.Builder, calls []*lower.Call, of string, with []string, parts int) (map[string]string, error) {
	again := recompute(b, calls, parts)
	matters := map[string]bool{}
	for _, name := range with {
		matters[name] = true
	}
	for _, c := range calls {
		if !slices.ContainsFunc(c.Inputs, func(in string) bool { return matters[in] }) {
			continue
		}
		for i, out := range c.Outputs {
			if t, _ := c.Type(i); t == tensor.Float32 && out != "" {
				matters[out] = true
			}
		}
	}
	grads := map[string]string{}
	if matters[of] {
		grads[of] = b.Scalar(1)
	}
	for i, c := range slices.Backward(calls) {
		dy := make([]string, len(c.Outputs))
		reached := false
		for i, out := range c.Outputs {
			dy[i] = grads[out]
			reached = reached || dy[i] != ""
		}
		if !reached || !slices.ContainsFunc(c.Inputs, func(in string) bool { return matters[in] }) {
			continue
		}
		dx, err := again.call(i, grads).Gradient(b, dy)
		if err != nil {
			return nil, err
		}
		for i, in := range c.Inputs {
			if dx[i] == "" || !matters[in] {
				continue
			}
			if sum, ok := grads[in]; ok {
				grads[in] = b.Op("Add", sum, dx[i])
			} else {
				grads[in] = dx[i]
			}
		}
	}
	out := map[string]string{}
	for _, name := range with {
		if g, ok := grads[name]; ok {
			out[name] = g
		}
	}
	return out, nil
}
