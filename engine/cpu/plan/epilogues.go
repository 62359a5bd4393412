package plan

import "github.com/tally-network/tally/engine/cpu/kernel"

// all returns the nodes of m, its producer's first.
func (m *fusionGroup) all() []int {
	if m.producer == nil {
		return m.Nodes
	}
	return append([]int{m.Head}, m.Nodes...)
}

// fuseEpilogues lets fusions follow the producers that they alone read, element by element,
// and returns the groups that are left.
func (p *program) fuseEpilogues(groups []*fusionGroup) []*fusionGroup {
	of := make([]*fusionGroup, len(p.nodes))
	readers := make([]int, len(p.nodes)) // groups that read each node
	for _, m := range groups {
		seen := map[int]bool{}
		for _, i := range m.Nodes {
			of[i] = m
			p.Producers(i, func(x int) {
				if !seen[x] {
					seen[x] = true
					readers[x]++
				}
			})
		}
	}
	taken := map[*fusionGroup]bool{}
	for _, m := range groups {
		if !m.isFusion || m.Rows > 0 {
			continue
		}
		for _, i := range m.Nodes {
			p.Producers(i, func(x int) {
				n := p.nodes[x].Primitive
				if fusible(p.set, n) || n.Shape.Elements() != m.Elements || readers[x] > 1 || p.isOutput[x] || x < m.Head {
					return
				}
				r := rematerializer{program: p, group: m}
				if k, ok := p.kernelOf(x).(kernel.Producer); ok && r.readsInOrder(x) && k.LongRuns() {
					m.Head, m.producer = x, k
				}
			})
		}
		if m.producer != nil {
			taken[of[m.Head]] = true
		}
	}
	var out []*fusionGroup
	for _, m := range groups {
		if !taken[m] {
			out = append(out, m)
		}
	}
	return out
}
