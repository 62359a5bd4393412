package cpu

import "math"

// panels are packed blocks of one operand: for each run of width rows (or
// columns), terms one after the other, width values each.
type panels struct {
	values []float64
	floors []floor
	own    []int // position of each row
	terms  []int // and what each term adds
	coords []coords
	absent bool // some value lay outside the operand
	wild   bool // some value is infinite or not a number
}

// coords are the coordinates of one bound: of each row, and what a term adds.
type coords struct{ own, terms []int }

// place computes where the rows of a block lie. The last row stands in for
// those that a panel lacks.
func (p *panels) place(s *side, k *dot, g *grid, batch, from, n, width int) {
	pad := func(t []int) {
		for i := n; i < len(t); i++ {
			t[i] = t[n-1]
		}
	}
	whole := roundUp(n, width)
	p.own = grow(p.own, whole)
	g.table(p.own[:n], k.batch.at(s.base, s.batch, batch), s.own, from)
	pad(p.own)
	p.coords = grow(p.coords, len(s.bounds))
	for i := range s.bounds {
		b, c := &s.bounds[i], &p.coords[i]
		c.own = grow(c.own, whole)
		g.table(c.own[:n], k.batch.at(b.offset, b.batch, batch), b.own, from)
		pad(c.own)
	}
	p.floors = grow(p.floors, whole/width)
}

// pack fills the panels with terms from … from+deep−1.
func (p *panels) pack(s *side, k *dot, src []float32, width, from, deep int) {
	p.values = grow(p.values, len(p.own)*deep)
	p.terms = grow(p.terms, deep)
	k.terms.table(p.terms, 0, s.terms, from)
	for i := range s.bounds {
		c := &p.coords[i]
		c.terms = grow(c.terms, deep)
		k.terms.table(c.terms, 0, s.bounds[i].terms, from)
	}
	for i := range p.floors {
		dst, own := p.values[i*width*deep:][:width*deep], p.own[i*width:][:width]
		switch {
		case k.bounded:
			p.floors[i] = p.packBounded(dst, src, s, i*width, width)
		case width == tileRows:
			p.floors[i] = pack2(dst, src, own, p.terms)
		default:
			p.floors[i] = pack4(dst, src, own, p.terms)
		}
	}
}

func pack2(dst []float64, src []float32, own, terms []int) floor {
	least := uint32(math.MaxUint32)
	r0, r1 := own[0], own[1]
	for _, t := range terms {
		x0, x1 := src[r0+t], src[r1+t]
		d := (*[2]float64)(dst)
		d[0], d[1] = float64(x0), float64(x1)
		dst = dst[2:]
		least = min(least, magnitude(x0), magnitude(x1))
	}
	return floorOf(least)
}

func pack4(dst []float64, src []float32, own, terms []int) floor {
	least := uint32(math.MaxUint32)
	r0, r1, r2, r3 := own[0], own[1], own[2], own[3]
	for _, t := range terms {
		x0, x1, x2, x3 := src[r0+t], src[r1+t], src[r2+t], src[r3+t]
		d := (*[4]float64)(dst)
		d[0], d[1], d[2], d[3] = float64(x0), float64(x1), float64(x2), float64(x3)
		dst = dst[4:]
		least = min(least, magnitude(x0), magnitude(x1), magnitude(x2), magnitude(x3))
	}
	return floorOf(least)
}

// packBounded packs a panel of a contraction that may read outside an operand.
func (p *panels) packBounded(dst []float64, src []float32, s *side, first, width int) floor {
	least := uint32(math.MaxUint32)
	for t, add := range p.terms {
		for r := range width {
			x := float32(0)
			if p.has(s, first+r, t) {
				x = src[p.own[first+r]+add]
				least = min(least, magnitude(x))
				p.wild = p.wild || x-x != 0
			} else {
				p.absent = true
			}
			dst[t*width+r] = float64(x)
		}
	}
	return floorOf(least)
}

// has reports whether a term of a row lies inside the operand.
func (p *panels) has(s *side, row, term int) bool {
	for i := range s.bounds {
		if c := p.coords[i].own[row] + p.coords[i].terms[term]; c < 0 || c >= s.bounds[i].extent {
			return false
		}
	}
	return true
}
