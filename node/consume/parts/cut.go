package parts

import (
	"errors"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/tensor"
)

// Range is a part's records: from First on, so many, which take so many runs.
type Range struct {
	First   int `json:"first"`
	Records int `json:"records"`
	Runs    int `json:"runs"`
}

// String says which records, for people.
func (r Range) String() string { return fmt.Sprintf("%d to %d", r.First, r.First+r.Records-1) }

// Cut cuts records, of which a run takes so many, into n contiguous parts of whole runs. Their runs differ by one at most.
func Cut(records, batch, n int) ([]Range, error) {
	switch {
	case batch < 1 || n < 1:
		return nil, fmt.Errorf("%d parts of runs of %d records: both are 1 or more", n, batch)
	case records < n:
		return nil, fmt.Errorf("conditions.split: %d records cannot make %d parts: write split: %d at most, or give more records", records, n, records)
	}
	runs := (records-1)/batch + 1
	if runs < n {
		return nil, fmt.Errorf("conditions.split: %d records make %d runs of %d, fewer than %d parts: write problem.batch: %d or less, if the model takes it, or a lower split", records, runs, batch, n, records/n)
	}
	out := make([]Range, n)
	for i, at := 0, 0; i < n; i++ {
		take := runs / n
		if i < runs%n {
			take++
		}
		out[i] = Range{at, min(take*batch, records-at), take}
		at += out[i].Records
	}
	return out, nil
}

// Of returns a part's records.
func (r Range) Of(all *graph.State) (*graph.State, error) {
	out := &graph.State{}
	for i, s := range all.Slots {
		if len(s.Shape) == 0 || r.First < 0 || r.Records < 1 || r.First+r.Records > s.Shape[0] {
			return nil, fmt.Errorf("records %q have shape %v, without records %d to %d", s.Name, s.Shape, r.First, r.First+r.Records-1)
		}
		shape := append(tensor.Shape{r.Records}, s.Shape[1:]...)
		t, err := tensor.New(s.Type, shape)
		if err != nil {
			return nil, err
		}
		each := t.Len() / r.Records * s.Type.Size()
		copy(t.Bytes(), all.Tensors[i].Bytes()[r.First*each:])
		out.Slots = append(out.Slots, graph.Slot{Name: s.Name, Type: s.Type, Shape: shape})
		out.Tensors = append(out.Tensors, t)
	}
	return out, nil
}

// Prices divides total (utally) by runs, as offers charge: a run that is not full costs as much. The shares add up to total
// exactly.
func Prices(total uint64, of []Range) ([]uint64, error) {
	all := runs(of)
	if all == 0 {
		return nil, errors.New("no runs divide a price")
	}
	out, done, spent := make([]uint64, len(of)), uint64(0), uint64(0)
	for i, r := range of {
		done += uint64(r.Runs)
		upTo := money.ScaleClamped(total, done, all) // done ≤ all, so it is total at most
		out[i], spent = upTo-spent, upTo
		if out[i] == 0 {
			return nil, fmt.Errorf("conditions.maxPrice: %d utally leave nothing for one of %d parts: write a higher one", total, len(of))
		}
	}
	return out, nil
}

// Enough returns a maximum price (utally) at which each part's share covers its price. A price lower by one utally a run does
// not suffice. It is at most 2⁶⁴ − 1.
func Enough(prices []uint64, of []Range) (total uint64) {
	all := runs(of)
	for i, r := range of {
		least := money.ScaleClamped(prices[i], all, uint64(r.Runs))
		if money.ScaleClamped(least, uint64(r.Runs), all) < prices[i] && least < math.MaxUint64 {
			least++
		}
		total = max(total, least)
	}
	return total
}

func runs(of []Range) (n uint64) {
	for _, r := range of {
		n += uint64(r.Runs)
	}
	return n
}
