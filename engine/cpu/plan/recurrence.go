package plan

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/recurrent"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Recurrences: a recurrent net comes unrolled, as a period of groups that repeats. Groups
// that do the same of other tensors share one work, so that weights are packed once. Where
// a step is short, its repetitions are one task, a recurrent.Loop.

// shiftBytes is what tensor.Part asks of a shift.
const shiftBytes = 8

// outline is what a group computes, but for the tensors and places that it reads.
type outline struct {
	key     string
	outside []graph.Ref // that it reads, each once
	places  [][]int     // by those, the byte at which each access begins
}

// outline returns that of a group. Constants belong to the key, for they may be packed.
func (p *program) outline(m *fusionGroup, escapes []bool) outline {
	var o outline
	key := fmt.Append(nil, m.isFusion, m.producer != nil, m.Rows, m.Elements)
	inside := map[int]int{}
	for at, i := range m.all() {
		n := p.nodes[i].Primitive
		key = fmt.Append(key, "|", n.Fn, n.Type, n.Shape, n.Fold, n.Imm, escapes[i], m.recomputed[i], p.blocks[i].of)
		for j, ref := range p.sources(i) {
			key = append(fmt.Append(key, ";"), p.accessKey(n, j)...)
			base, _, fixed := affine.Linear(n, j)
			base *= n.Args[j].Type.Size()
			own, isOwn := inside[ref.Index]
			switch {
			case ref.Kind == graph.RefNode && isOwn:
				key = fmt.Append(key, "own", own, " ", base)
				continue
			case ref.Kind == graph.RefConst:
				key = fmt.Append(key, "const", ref.Index, " ", base)
				continue
			}
			q := slices.Index(o.outside, ref)
			if q < 0 {
				q = len(o.outside)
				o.outside, o.places = append(o.outside, ref), append(o.places, nil)
			}
			if !fixed {
				base = 0 // a place that is checked is part of the key
			}
			o.places[q] = append(o.places[q], base)
			key = fmt.Append(key, "outside", q, ref.Kind == graph.RefNode && p.elided[ref.Index])
		}
		inside[i] = at
	}
	o.key = string(key)
	return o
}

// accessKey tells an access of n, without where it begins unless that needs a check.
func (p *program) accessKey(n *tensor.Primitive, arg int) []byte {
	a := &n.Args[arg]
	_, _, fixed := affine.Linear(n, arg)
	key := fmt.Append(nil, a.Type, a.Shape, a.Flat)
	for d := range a.Dims {
		key = fmt.Append(key, a.Dims[d].Terms, a.Dims[d].Via)
		if !fixed {
			key = fmt.Append(key, a.Dims[d].Offset)
		}
	}
	return key
}

// recurrence is groups that repeat: steps times, with a period.
type recurrence struct{ at, period, steps int }

// replica says that a group is a step of a recurrence, of which another is the model.
type replica struct {
	model, own outline
	of         *fusionGroup
}

// findRecurrences finds the groups that repeat, and of each in a recurrence of what it is a
// replica: of the step whose operands begin first, so that others lie behind.
func (p *program) findRecurrences(groups []*fusionGroup, escapes []bool) (all []recurrence, replicas map[*fusionGroup]replica) {
	replicas = map[*fusionGroup]replica{}
	if len(groups) < tuning.MinSteps {
		return nil, replicas
	}
	outlines := make([]outline, len(groups))
	kinds, numbers := make([]int, len(groups)), map[string]int{}
	for t, m := range groups {
		outlines[t] = p.outline(m, escapes)
		kind, seen := numbers[outlines[t].key]
		if !seen {
			kind = len(numbers)
			numbers[outlines[t].key] = kind
		}
		kinds[t] = kind
	}
	for t := 0; t < len(groups); {
		switch r := longestRepetition(kinds, t); {
		case r.steps < tuning.MinSteps:
			t++
		case r.replicate(groups, outlines, replicas):
			all = append(all, r)
			t += r.period * r.steps
		default: // past most of it, so that no group is looked at again and again
			t += r.period * (r.steps - 1)
		}
	}
	return all, replicas
}

// longestRepetition returns the repetition from a group on that has most groups. Groups
// are repeated by those of the same kind.
func longestRepetition(kinds []int, at int) (best recurrence) {
	for period := 1; period <= tuning.MaxPeriod && at+tuning.MinSteps*period <= len(kinds); period++ {
		n := at
		for n+period < len(kinds) && kinds[n] == kinds[n+period] {
			n++
		}
		steps := (n-at)/period + 1
		if steps >= tuning.MinSteps && steps*period > best.steps*best.period {
			best = recurrence{at, period, steps}
		}
	}
	return best
}

// replicate enters the groups of a recurrence as replicas, all or none.
func (r recurrence) replicate(groups []*fusionGroup, outlines []outline, to map[*fusionGroup]replica) bool {
	found := map[*fusionGroup]replica{}
	for g := r.at; g < r.at+r.period; g++ {
		last := g + (r.steps-1)*r.period
		ok := false
		for _, model := range []int{g, last} {
			ok = ok || func() bool {
				for t := g; t <= last; t += r.period {
					c := replica{outlines[model], outlines[t], groups[model]}
					if !c.fits() {
						return false
					}
					found[groups[t]] = c
				}
				return true
			}()
		}
		if !ok {
			return false
		}
	}
	for m, c := range found {
		to[m] = c
	}
	return true
}

// fits reports whether all accesses of one tensor lie equally far behind those of the model.
func (c *replica) fits() bool {
	for q, places := range c.own.places {
		shift := c.shift(q)
		if shift < 0 || shift%shiftBytes != 0 {
			return false
		}
		for i, at := range places {
			if at-c.model.places[q][i] != shift {
				return false
			}
		}
	}
	return true
}

// shift returns how many bytes behind the model's the accesses of tensor q lie.
func (c *replica) shift(q int) int { return c.own.places[q][0] - c.model.places[q][0] }

// bind returns the task of the replica m: the model's, of its own tensors.
func (c *replica) bind(m *fusionGroup, model Task) Task {
	at := map[int]int{}
	for i, x := range c.of.all() {
		at[x] = i
	}
	nodes := m.all()
	k, shifts, moved := model, make([]int, len(model.Args)), false
	k.Args, k.Outs, k.Nodes = slices.Clone(model.Args), nil, nodes
	for i, ref := range model.Args {
		own, isOwn := at[ref.Index]
		switch q := slices.Index(c.model.outside, ref); {
		case q >= 0:
			k.Args[i], shifts[i] = c.own.outside[q], c.shift(q)
			moved = moved || shifts[i] != 0
		case ref.Kind == graph.RefNode && isOwn:
			k.Args[i].Index = nodes[own]
		}
	}
	for _, x := range model.Outs {
		k.Outs = append(k.Outs, nodes[at[x]])
	}
	if moved {
		k.shifts = shifts
	}
	return k
}

// roll makes one task, a loop, of every recurrence of short steps. Other tasks that read
// behind the beginning of an operand become works that do.
func (pl *Plan) roll(all []recurrence) {
	var out []Task
	next := 0
	for _, r := range all {
		end := r.at + r.period*r.steps
		ns := 0
		for i := range r.period {
			ns += estimate(pl.Program, pl.Tasks[r.at+i].Nodes)
		}
		if ns <= tuning.MaxStepNs {
			out = append(append(out, pl.Tasks[next:r.at]...), loop(pl.Tasks[r.at:end], r.period))
			next = end
		}
	}
	pl.Tasks = append(out, pl.Tasks[next:]...)
	for i := range pl.Tasks {
		k := &pl.Tasks[i]
		k.Work = recurrent.Shift(k.Work, k.shifts)
	}
}

// loop returns the tasks of some steps, of a period each, as one.
func loop(tasks []Task, period int) Task {
	l := &recurrent.Loop{}
	k := Task{Grain: 1}
	outs, args := map[int]int{}, map[graph.Ref]int{}
	for i := range tasks {
		t := &tasks[i]
		var o recurrent.Operands
		for _, ref := range t.Args {
			at, made := outs[ref.Index]
			if ref.Kind != graph.RefNode || !made {
				if _, known := args[ref]; !known {
					args[ref] = len(k.Args)
					k.Args = append(k.Args, ref)
				}
				at = args[ref]
			}
			o.Args = append(o.Args, at)
		}
		for _, x := range t.Outs {
			outs[x] = ^len(k.Outs)
			k.Outs = append(k.Outs, x)
			o.Outs = append(o.Outs, outs[x])
		}
		o.Shifts = t.shifts
		k.Nodes = append(k.Nodes, t.Nodes...)
		if i < period {
			l.Body = append(l.Body, t.Work)
		}
		if i%period == 0 {
			l.Steps = append(l.Steps, nil)
		}
		last := &l.Steps[i/period]
		*last = append(*last, o)
	}
	k.Work = l
	return k
}

// stepConstants returns the constants that steps of recurrences read.
func (p *program) stepConstants(replicas map[*fusionGroup]replica) map[graph.Ref]bool {
	out := map[graph.Ref]bool{}
	for m := range replicas {
		for _, i := range m.all() {
			for _, ref := range p.sources(i) {
				if ref.Kind == graph.RefConst {
					out[ref] = true
				}
			}
		}
	}
	return out
}

// stepProduct returns the kernel for a product of few rows and of weights that steps of a
// recurrence read; nil for others. A first or last step that is unlike the rest reads what
// those have packed.
func (b *builder) stepProduct(node int) kernel.Producer {
	for j, ref := range b.sources(node) {
		if !b.stepWeights[ref] {
			continue
		}
		if k := recurrent.NewProduct(b.nodes[node].Primitive, j, b.set); k != nil {
			return k
		}
	}
	return nil
}
