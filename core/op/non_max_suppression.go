package op

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Which of the boxes that a detector found stay. How many do is part of the shape of
// the result, so that boxes and scores must be constant.

var _ = define(
	lower.Operator{Name: "NonMaxSuppression", Min: 2, Max: 5, Outputs: 1, Attrs: []graph.Attr{graph.Int("center_point_box", 0)}, Lower: lowerNonMaxSuppression},
)

// box is one by its lower and upper edges, of the first axis and the second.
type box struct{ lo, hi [2]float32 }

// lowerNonMaxSuppression takes, for each batch and class, the boxes of the
// highest scores, ties by position, but for those that overlap one taken
// already too much: batch, class and position of each.
func lowerNonMaxSuppression(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	boxes, err := c.Constant(0)
	if err != nil {
		return nil, err
	}
	scores, err := c.Constant(1)
	if err != nil {
		return nil, err
	}
	if s, b := scores.Shape, boxes.Shape; scores.Type != tensor.Float32 || boxes.Type != tensor.Float32 || len(s) != 3 || !b.Equal(tensor.Shape{s[0], s[2], 4}) {
		return nil, fmt.Errorf("boxes %v%v and scores %v%v should be float32 [batch count 4] and [batch classes count]", boxes.Type, b, scores.Type, s)
	}
	most := 0
	if c.Has(2) {
		if most, err = scalarInput(c, 2); err != nil {
			return nil, err
		}
	}
	limit := [2]float32{} // of overlaps, and of scores
	for i := range limit {
		if c.Has(3 + i) {
			v, err := floatsInput(c, 3+i)
			if err != nil {
				return nil, err
			}
			if len(v) != 1 {
				return nil, fmt.Errorf("input %q has %d elements, but should have one", c.Inputs[3+i], len(v))
			}
			limit[i] = float32(v[0])
		}
	}
	var found [][3]int
	count, classes := scores.Shape[2], scores.Shape[1]
	if err := c.Account.Charge(scores.Shape[0] * classes); err != nil { // there may be rows of nothing
		return nil, err
	}
	for row := range scores.Shape[0] * classes {
		list, err := candidates(c, tensor.Of[float32](scores)[row*count:][:count], limit[1])
		if err != nil {
			return nil, err
		}
		batch := row / classes
		taken, err := disjoint(c, tensor.Of[float32](boxes)[batch*count*4:][:count*4], list, most, limit[0])
		if err != nil {
			return nil, err
		}
		for _, i := range taken {
			found = append(found, [3]int{batch, row % classes, i})
		}
	}
	t, err := intTable(c, tensor.Shape{len(found), 3}, func(i int) int { return found[i/3][i%3] })
	if err != nil {
		return nil, err
	}
	return []lower.View{e.Const(t)}, nil
}

// candidates returns the positions of the scores above the limit, if there is
// one, the highest first.
func candidates(c *lower.Call, scores []float32, limit float32) (list []int, err error) {
	if err := c.Account.Charge(len(scores)); err != nil {
		return nil, err
	}
	for i, s := range scores {
		if !c.Has(4) || s > limit {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	return list, nil
}

// disjoint takes at most so many of the boxes, none of which overlaps one before.
func disjoint(c *lower.Call, boxes []float32, list []int, most int, limit float32) (taken []int, err error) {
	var kept []box
	for _, i := range list {
		if len(kept) >= most {
			break
		}
		if err := c.Account.Charge(1 + len(kept)); err != nil {
			return nil, err
		}
		if err := c.Account.Afford(64); err != nil {
			return nil, err
		}
		b := readBox(c, boxes[4*i:][:4])
		if !slices.ContainsFunc(kept, func(k box) bool { return overlap(b, k) > limit }) {
			kept, taken = append(kept, b), append(taken, i)
		}
	}
	return taken, nil
}

// readBox reads two corners, or the centre (second axis first) and the sizes.
func readBox(c *lower.Call, v []float32) (b box) {
	for a := range b.lo {
		p, q := v[a], v[2+a]
		if c.Flag("center_point_box") {
			mid, half := v[1-a], v[3-a]/2
			p, q = mid-half, mid+half
		}
		b.lo[a], b.hi[a] = min(p, q), max(p, q)
	}
	return b
}

func (b box) area() float32 { return float32((b.hi[0] - b.lo[0]) * (b.hi[1] - b.lo[1])) }

// overlap is the part of two boxes' union that both share, 0 if one has no area.
func overlap(x, y box) float32 {
	both := box{}
	for a := range both.lo {
		both.lo[a], both.hi[a] = max(x.lo[a], y.lo[a]), min(x.hi[a], y.hi[a])
		if !(both.lo[a] < both.hi[a]) {
			return 0
		}
	}
	shared := both.area()
	union := x.area() + y.area() - shared
	if !(x.area() > 0 && y.area() > 0 && union > 0) {
		return 0
	}
	return shared / union
}
