package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// Mix returns p, which reads one state, as a program that reads so many: of says in which of them each slot stands, and by what
// name. A state may have other slots besides. Nodes are the same, so p computes what the other is committed to.
func (p *Program) Mix(groups int, of func(slot string) (group int, name string)) (*Program, error) {
	if p.Groups != 1 || p.Mixed {
		return nil, fmt.Errorf("program reads %d states already", p.Groups)
	}
	m := *p
	m.Groups, m.Mixed, m.Slots, m.Results = groups, true, nil, p.Gives()
	refs := make([]Ref, len(p.Slots))
	for i, s := range p.Slots {
		refs[i].Group, s.Name = of(s.Name)
		m.Slots = append(m.Slots, s)
	}
	names := slices.Clone(m.Slots)
	slices.SortFunc(m.Slots, func(a, b Slot) int { return cmp.Compare(a.Name, b.Name) })
	m.Slots = slices.CompactFunc(m.Slots, func(a, b Slot) bool { return a.Name == b.Name && a.Type == b.Type && a.Shape.Equal(b.Shape) })
	for i, s := range names {
		refs[i].Kind = RefSlot
		refs[i].Index, _ = slices.BinarySearchFunc(m.Slots, s.Name, func(a Slot, name string) int { return cmp.Compare(a.Name, name) })
	}
	turn := func(from []Ref) []Ref {
		from = slices.Clone(from)
		for i, r := range from {
			if r.Kind == RefSlot {
				from[i] = refs[r.Index]
			}
		}
		return from
	}
	m.Nodes = slices.Clone(p.Nodes)
	for i := range m.Nodes {
		m.Nodes[i].From = turn(m.Nodes[i].From)
	}
	m.Outputs = turn(p.Outputs)
	return &m, m.Check() // which refuses two slots of one name
}
