package cpu

import (
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// piece is a block of a contraction's output in the making, and the memory for
// it. Chains are kept tile by tile.
type piece struct {
	batch, row, col int // where it begins
	high, wide      int
	down, beside    int // tiles
	a, b            panels
	acc             []float64
	done            [][]float64 // sums of finished K-blocks, as in a binary counter
}

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

func (p *piece) place(k *dot, batch, row, col int) {
	p.batch, p.row, p.col = batch, row, col
	p.high, p.wide = min(k.high, k.rows.n-row), min(k.wide, k.cols.n-col)
	p.down, p.beside = ceilDiv(p.high, tileRows), ceilDiv(p.wide, tileCols)
	p.acc = grow(p.acc, p.down*p.beside*tileSize)
	p.a.place(&k.a, k, &k.rows, batch, row, p.high, tileRows)
	p.b.place(&k.b, k, &k.cols, batch, col, p.wide, tileCols)
}

// grow returns n elements, in the memory of s if there is room.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// compute runs all chains. It returns false if the way in which it leaves out
// absent terms may have changed a bit.
func (p *piece) compute(k *dot, args []*tensor.Tensor) bool {
	a, b := tensor.Of[float32](args[k.a.arg]), tensor.Of[float32](args[k.b.arg])
	p.done = p.done[:0]
	clear(p.acc)
	p.a.absent, p.a.wild, p.b.absent, p.b.wild = false, false, false, false
	quickly, negativeZero := safe, false
	if k.bounded {
		quickly = keepsZero
	}
	for t := 0; t < k.terms.n; t += maxDeep {
		if t > 0 && t%tensor.KBlock == 0 {
			p.endChain(t / tensor.KBlock)
		}
		deep := min(maxDeep, k.terms.n-t)
		p.a.pack(&k.a, k, a, tileRows, t, deep)
		p.b.pack(&k.b, k, b, tileCols, t, deep)
		negativeZero = p.multiply(deep, quickly) || negativeZero
	}
	for i := len(p.done) - 1; i >= 0; i-- {
		addRounded(p.acc, p.done[i])
	}
	// An absent term is packed as 0. Times a number, that adds nothing to a
	// chain, unless the chain is −0.
	return !(p.a.absent || p.b.absent) || !(negativeZero || p.a.wild || p.b.wild)
}

// endChain puts the chains of the nth K-block away and starts new ones.
func (p *piece) endChain(n int) {
	for ; n%2 == 0; n /= 2 {
		last := len(p.done) - 1
		addRounded(p.acc, p.done[last])
		p.done = p.done[:last]
	}
	if len(p.done) < cap(p.done) {
		p.done = p.done[:len(p.done)+1]
	} else {
		p.done = append(p.done, nil)
	}
	top := &p.done[len(p.done)-1]
	*top = grow(*top, len(p.acc))
	copy(*top, p.acc)
	clear(p.acc)
}

// addRounded adds x to acc as float32. One rounding to float64 before does no
// harm: it keeps more than twice the digits.
func addRounded(acc, x []float64) {
	for i := range acc {
		acc[i] = float64(float32(x[i] + acc[i]))
	}
}

// multiply advances every tile by the packed terms.
func (p *piece) multiply(deep int, quickly func(a, b floor) bool) (negativeZero bool) {
	for i := range p.down {
		a := p.a.values[i*tileRows*deep:][:tileRows*deep]
		for j := range p.beside {
			b := p.b.values[j*tileCols*deep:][:tileCols*deep]
			acc := (*[tileSize]float64)(p.acc[(i*p.beside+j)*tileSize:])
			if quickly(p.a.floors[i], p.b.floors[j]) {
				quick(acc, a, b)
			} else {
				negativeZero = careful(acc, a, b) || negativeZero
			}
		}
	}
	return negativeZero
}

// store writes the chains to the output.
func (p *piece) store(k *dot, out []float32) {
	base := k.batch.at(0, k.out.batch, p.batch)
	rows, cols := p.a.own[:p.high], p.b.own[:p.wide]
	k.rows.table(rows, base, k.out.rows, p.row)
	k.cols.table(cols, 0, k.out.cols, p.col)
	for i, r := range rows {
		line := p.acc[i/tileRows*p.beside*tileSize+i%tileRows*tileCols:]
		for j, c := range cols {
			out[r+c] = canonical(float32(line[j/tileCols*tileSize+j%tileCols]))
		}
	}
}

// evaluate computes the piece element by element instead.
func (p *piece) evaluate(k *dot, out *tensor.Tensor, args []*tensor.Tensor) error {
	base := k.batch.at(0, k.out.batch, p.batch)
	rows, cols := p.a.own[:p.high], p.b.own[:p.wide]
	k.rows.table(rows, base, k.out.rows, p.row)
	k.cols.table(cols, 0, k.out.cols, p.col)
	c := tensor.NewCell(k.p, func(arg, i int) (tensor.Word, error) { return args[arg].At(i), nil })
	for _, r := range rows {
		for _, col := range cols {
			if err := evaluate(c, out, r+col); err != nil {
				return err
			}
		}
	}
	return nil
}

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
