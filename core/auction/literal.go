package auction

import "math/bits"

// The seed's densities as it prints them, squared, of values that are divided by the greatest.

// literalOne is what 1 is, for parts in literalTask: nine of its squares fit 64 bits.
const literalOne = 1 << 30

// literalTask is Σ C² + v². It grows with what a task demands.
func (b *Book) literalTask(t *Task) (density uint64) {
	for k, q := range t.Demand {
		x := part(q, b.demand[k], literalOne)
		density += x * x
	}
	v := part(t.Budget, b.budget, literalOne)
	return density + v*v
}

// literalProvider is Σ 1/s² + Ψ. It grows as capacities shrink; those of 0 are left out, for which the seed's is
// infinite.
func (b *Book) literalProvider(p *Provider) (density uint64) {
	const one = 1 << 14
	for k, q := range p.Capacity {
		if q > 0 {
			inverse := uint64(one*one) / max(part(q, b.capacity[k], one), 1)
			density += inverse * inverse
		}
	}
	return density + uint64(p.Ability)*one*one/bps
}

// part is ⌊one · x / most⌋ for x ≤ most, 0 if most is 0.
func part(x, most, one uint64) uint64 {
	if most == 0 {
		return 0
	}
	hi, lo := bits.Mul64(x, one)
	q, _ := bits.Div64(hi, lo, most) // x ≤ most, so that it is at most one
	return q
}
