package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// reads says what a node's value follows from, constants aside.
type reads struct {
	steps   bool // how many are done, from which chance follows
	records bool
	weights bool // parameters and running statistics
	moments bool
}

// join adds what another value follows from.
func (r *reads) join(o reads) {
	r.steps, r.records, r.weights, r.moments = r.steps || o.steps, r.records || o.records, r.weights || o.weights, r.moments || o.moments
}

// slotReads is what a slot of training holds.
func slotReads(name string) reads {
	kind, _, _ := strings.Cut(name, "/")
	return reads{steps: name == "step", weights: kind == "p" || kind == "r", moments: kind == "m" || kind == "v" || kind == "power"}
}

// flow returns what each node's value follows from.
func (s *Subject) flow() []reads {
	out := make([]reads, len(s.Nodes))
	for i := range s.Nodes {
		for _, ref := range s.Nodes[i].From {
			switch ref.Kind {
			case graph.RefNode:
				out[i].join(out[ref.Index])
			case graph.RefSlot:
				out[i].join(slotReads(s.Slots[ref.Index].Name))
			case graph.RefData, graph.RefRows:
				out[i].join(reads{records: true})
			}
		}
	}
	return out
}

// draws reports whether a value is of chance alone.
func (r reads) draws(n *graph.Opcode) bool { return r == reads{steps: true} && n.Shape.Elements() > 1 }

// Part returns the nodes of a part of a step, which follows from what they read and what reads them.
func (s *Subject) Part(name string) ([]int, error) {
	flow := s.flow()
	from := func(i int, is func(j int) bool) bool { // whether node i reads such a node
		return slices.ContainsFunc(s.Nodes[i].From, func(r graph.Ref) bool { return r.Kind == graph.RefNode && is(r.Index) })
	}
	read := func(i int, is func(j int) bool) bool { // whether such a node reads node i
		for j := range s.Nodes {
			if is(j) && from(j, func(k int) bool { return k == i }) {
				return true
			}
		}
		return false
	}
	gives := func(i int, slots ...string) bool {
		for q, r := range s.Outputs {
			if r.Kind == graph.RefNode && r.Index == i && slices.ContainsFunc(slots, func(p string) bool { return strings.HasPrefix(s.Gives()[q].Name, p) }) {
				return true
			}
		}
		return false
	}
	draws := func(i int) bool { return flow[i].draws(&s.Nodes[i]) }
	augmented := func(i int) bool { return flow[i] == reads{steps: true, records: true} }
	dropped := func(i int) bool { return flow[i].weights && !flow[i].moments && from(i, draws) }
	runs := func(i int) bool { return gives(i, "r/") }
	is, known := map[string]func(i int) bool{
		"teacher":           func(i int) bool { return flow[i] == reads{records: true} && s.Nodes[i].Fn == tensor.Dot },
		"augmentation draw": func(i int) bool { return draws(i) && read(i, augmented) },
		"augmentation":      augmented,
		"dropout mask":      func(i int) bool { return draws(i) && read(i, dropped) },
		"dropout":           dropped,
		"product":           func(i int) bool { return s.Nodes[i].Fn == tensor.Dot && s.Nodes[i].Blocks() > 1 },
		"running statistic": runs,
		"batch statistic":   func(i int) bool { return flow[i].records && read(i, runs) },
		"loss":              func(i int) bool { return gives(i, "loss") },
		"gradient": func(i int) bool {
			return flow[i].records && !flow[i].moments && read(i, func(j int) bool { return flow[j].moments })
		},
		"moment":    func(i int) bool { return gives(i, "m/", "v/") },
		"parameter": func(i int) bool { return gives(i, "p/") },
		"result":    func(i int) bool { return gives(i, "") },
	}[name]
	if !known {
		return nil, fmt.Errorf("%q is no part of a step", name)
	}
	var out []int
	for i := range s.Nodes {
		if is(i) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no node of the step is of its %s", name)
	}
	return out, nil
}
