package plan

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// placeHead gives the producer of a task a range: that of an aliased output of its fusion,
// if that may overwrite it.
func (pl *Plan) placeHead(arena *mem.Planner, k *Task, over func(o int) []int) {
	head := k.Outs[len(k.Outs)-1]
	for o, i := range k.Outs[:len(k.Outs)-1] {
		if pl.aliased[i] && pl.size(i) == pl.size(head) && len(over(o)) > 0 {
			pl.offset[head], pl.aliased[head] = pl.offset[i], true
			return
		}
	}
	pl.offset[head] = arena.Allocate(pl.size(head))
}

// Place returns where the output of a node lies in the arena, None for what is not there,
// and its bytes.
func (pl *Plan) Place(i int) (offset, bytes int) { return pl.offset[i], pl.size(i) }

// size returns the bytes of a node's output.
func (pl *Plan) size(i int) int {
	n := &pl.Program.Nodes[i]
	return n.Shape.Elements() * n.Type.Size()
}

// placeOutputs gives the outputs of task t ranges of the arena, and frees those of what it
// reads last. over returns the operands that an output may overwrite, nil if there are
// none: then the output takes the range of one that dies.
func (pl *Plan) placeOutputs(arena *mem.Planner, k *Task, t int, last []int, over func(o int) []int) {
	dies := func(r graph.Ref) bool {
		return r.Kind == graph.RefNode && last[r.Index] == t && pl.offset[r.Index] != None && !pl.aliased[r.Index]
	}
	inherited := map[int]bool{}
	made := map[int]bool{} // before, and read by this task itself
	for o, i := range k.Outs {
		if pl.Slot[i] != None || pl.offset[i] != None {
			made[i] = true
			continue
		}
		if over != nil {
			for _, a := range over(o) {
				if r := k.Args[a]; dies(r) && !inherited[r.Index] && pl.size(r.Index) == pl.size(i) {
					inherited[r.Index] = true
					pl.offset[i] = pl.offset[r.Index]
					break
				}
			}
		}
		if pl.offset[i] == None {
			pl.offset[i] = arena.Allocate(pl.size(i))
		}
	}
	done := map[int]bool{}
	for _, r := range k.Args {
		if dies(r) && !inherited[r.Index] && !done[r.Index] {
			done[r.Index] = true
			arena.Free(pl.offset[r.Index])
		}
	}
	for _, i := range k.Outs {
		if pl.offset[i] != None && last[i] <= t && !made[i] { // nobody reads it
			arena.Free(pl.offset[i])
		}
	}
}

// Allocate returns the arena of one run: a tensor for each node that has a place in it,
// nil for others.
func (pl *Plan) Allocate() ([]*tensor.Tensor, error) {
	arena, err := tensor.New(tensor.Uint8, tensor.Shape{pl.arenaBytes})
	if err != nil {
		return nil, fmt.Errorf("memory for a program: %w", err)
	}
	mem.HugePages(arena.Bytes())
	out := make([]*tensor.Tensor, len(pl.offset))
	for i, at := range pl.offset {
		if at != None {
			n := &pl.Program.Nodes[i]
			if out[i], err = arena.Part(at, n.Type, n.Shape); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
