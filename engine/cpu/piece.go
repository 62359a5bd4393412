package cpu

import "github.com/tally-network/tally/core/tensor"

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

// place sets the piece that begins at a row and a column of a batch.
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
	harmless := !negativeZero && !p.a.wild && !p.b.wild
	return harmless || !p.a.absent && !p.b.absent
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

// outputs returns where the rows and the columns lie in the output; an element
// lies at the sum. It takes the place of where the operands' lay.
func (p *piece) outputs(k *dot) (rows, cols []int) {
	rows, cols = p.a.own[:p.high], p.b.own[:p.wide]
	k.rows.table(rows, k.batch.at(0, k.out.batch, p.batch), k.out.rows, p.row)
	k.cols.table(cols, 0, k.out.cols, p.col)
	return rows, cols
}

// store writes the chains to the output.
func (p *piece) store(k *dot, out []float32) {
	rows, cols := p.outputs(k)
	for i, r := range rows {
		line := p.acc[i/tileRows*p.beside*tileSize+i%tileRows*tileCols:]
		for j, c := range cols {
			out[r+c] = canonical(float32(line[j/tileCols*tileSize+j%tileCols]))
		}
	}
}

// evaluate computes the piece element by element instead.
func (p *piece) evaluate(k *dot, out *tensor.Tensor, args []*tensor.Tensor) error {
	cell := newCell(k.p, args)
	rows, cols := p.outputs(k)
	for _, r := range rows {
		for _, c := range cols {
			if err := evaluate(cell, out, r+c); err != nil {
				return err
			}
		}
	}
	return nil
}
