package plan

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/reduce"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// fusible reports whether a node can be a stage of a fusion: an elementwise map, a copy, or
// a fold of rows that had not better run along columns.
func fusible(set *asm.KernelSet, p *tensor.Primitive) bool {
	if p.Band != nil {
		return false
	}
	switch p.Fn.Kind() {
	case tensor.KindMap:
		t := p.Args[len(p.Args)-1].Type
		if eltwise.Widens(p, t) {
			t = tensor.Float32
		}
		return eltwise.Map(set, p.Fn, t, eltwise.ComputeType(p)) != nil
	case tensor.KindIndex:
		return true
	case tensor.KindFold:
		t := p.Args[0].Type
		if t.Half() {
			t = tensor.Float32
		}
		if p.Fn.Scatters() || eltwise.FoldRows(set, p.Fn, t) == nil || p.Terms() > tuning.MaxRowElements {
			return false
		}
		times, ok := affine.Repetition(p, 0)
		return ok && times == 1 || !reduce.ByColumns(p)
	}
	return false
}
