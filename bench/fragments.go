package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
)

// keeping measures what custodians keep of a checkpoint, whole and in fragments, and what it
// takes to show a tile of a fragment, or that one is wrong.
func keeping(_ context.Context, o Options) ([]Row, error) {
	_, in, err := gptStep()
	if err != nil {
		return nil, err
	}
	s := in.States[0]
	var rows []Row
	for _, custodians := range []int{4, 8, 16} {
		order := job.Order{Problem: job.Problem{Steps: 1, Interval: 1, StateBytes: 2}, Conditions: job.Conditions{Custodians: custodians, CodedBytes: 1}}
		c := order.Fragments()
		o.Tell("a checkpoint among %d custodians, of whom %d have it all", c.Fragments, c.Needed)
		more, err := fragments(fmt.Sprintf("keeping, %d custodians: ", custodians), c, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func fragments(name string, c erasure.Code, s *graph.State) ([]Row, error) {
	whole := canon.Encode(s.Encode)
	var held []erasure.Held
	kept := 0
	begun := time.Now()
	for i := range c.Fragments {
		p, err := c.Fragment(s, i)
		if err != nil {
			return nil, err
		}
		kept += len(canon.Encode(p.Encode))
		held = append(held, erasure.Held{Number: i, Fragment: p})
	}
	cut := time.Since(begun) / time.Duration(c.Fragments)
	last := held[c.Fragments-c.Needed:]
	begun = time.Now()
	again, err := c.Rebuild(s.Slots, last)
	if err != nil {
		return nil, err
	}
	rebuilt := time.Since(begun)
	if !bytes.Equal(canon.Encode(again.Encode), whole) {
		return nil, errors.New("the fragments made up something else")
	}
	answer, wrong, err := shown(c, s, last[c.Needed-1])
	if err != nil {
		return nil, err
	}
	mb := float64(len(whole)) / 1e6
	return []Row{
		row(name+"copies, if each keeps all", "", float64(c.Fragments)),
		row(name+"copies, in fragments", "", float64(kept)/float64(len(whole))),
		row(name+"answer to a question", "KiB", float64(answer)/1024).atMost(16),
		row(name+"what shows a wrong fragment", "KiB", float64(wrong)/1024).atMost(64),
		row(name+"making a fragment", "MB/s", mb/cut.Seconds()),
		row(name+"rebuilding", "MB/s", mb/rebuilt.Seconds()),
	}, nil
}

// shown returns the bytes of what shows a tile of the largest tensor of a fragment, and of
// what shows that it is wrong.
func shown(c erasure.Code, s *graph.State, h erasure.Held) (answer, wrong int, err error) {
	largest := 0
	for i, t := range s.Tensors {
		if len(t.Bytes()) > len(s.Tensors[largest].Bytes()) {
			largest = i
		}
	}
	bad := &graph.State{Slots: h.Fragment.Slots, Tensors: append([]*tensor.Tensor{}, h.Fragment.Tensors...)}
	bad.Tensors[largest] = bad.Tensors[largest].Clone()
	bad.Tensors[largest].Bytes()[0] ^= 1
	roots := make([]canon.Hash, job.MaxSegments)
	if roots[0], err = bad.Root(); err != nil {
		return 0, 0, err
	}
	w, err := proof.FindWrongFragment(c, h.Number, 1, s, bad, roots)
	if err != nil {
		return 0, 0, err
	}
	return len(canon.Marshal(&w.Fragment)), len(canon.Marshal(w)), nil
}
