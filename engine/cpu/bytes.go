package cpu

import (
	"crypto/subtle"
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Contractions of integers of 8 bits share everything with those of floats but
// what a word of a panel holds: a group of terms, in the form that the kernels
// want. Quads take operand b as signed bytes and a as the kernels say; an operand of
// the other kind is shifted by 128, which turns its highest bit, and the sums
// are put right by those of the other operand. Sums wrap, so that it does not
// matter when. An absent term is a 0 like any other.
type bytes struct {
	asm.Bytes
	biasA, biasB int32 // 128, up or down: what is added to the values of a, and taken from those of b
}

// newBytes returns what to do with the operands of p, of which a is number x and
// b number y.
func newBytes(p *tensor.Primitive, set *asm.Set, x, y int) *bytes {
	k := &bytes{Bytes: set.Bytes}
	if k.Group < 4 {
		return k
	}
	switch a := p.Args[x].Type; {
	case a.Signed() && !k.SignedA:
		k.biasA = 128
	case a.Unsigned() && k.SignedA:
		k.biasA = -128
	}
	if p.Args[y].Type.Unsigned() {
		k.biasB = 128
	}
	return k
}

// packBytes packs n rows for one tile, so many words for each group of terms.
func (p *panels) packBytes(dst []float32, row, n, width int) {
	const quad = 4
	own, groups := p.own[row:][:n], len(p.terms)/quad
	if p.group == quad && len(p.coords) == 0 && p.set.Weave != nil && n%16 == 0 && width == n && affine.Contiguous(own) && groups > 0 {
		p.moved = mem.Grow(p.moved, len(p.terms))
		for i, at := range p.terms {
			p.moved[i] = at + own[0]
		}
		p.set.Weave(groups, &dst[0], width*mem.Word, &p.src.bytes[0], &p.moved[0], n/16, uint32(p.bias)*0x01010101)
		if groups < p.deep { // the last group is not full
			p.packLines(dst[groups*width:], row, n, width, groups*quad)
		}
		return
	}
	p.packLines(dst, row, n, width, 0)
}

// packLines packs the terms from one on, line by line.
func (p *panels) packLines(dst []float32, row, n, width, from int) {
	deep := p.deep - from/p.group
	p.lines = mem.Grow(p.lines, n*deep+mem.MaxLanes)
	p.places = mem.Grow(p.places, n)
	for i := range n {
		p.places[i] = i * deep
		line := unsafe.Slice((*uint8)(unsafe.Pointer(&p.lines[i*deep])), deep*mem.Word)
		p.readLine(line[:deep*p.group], row+i, from)
		if p.group == 2 {
			p.widenLine(line)
		}
	}
	p.turn(dst, p.lines, p.places, 0, deep, width)
}

// readLine reads the terms of a row from one on, with zeros for those that are
// absent and those that fill the last group.
func (p *panels) readLine(line []uint8, row, from int) {
	terms, at := p.terms[from:], p.own[row]
	clear(line[len(terms):])
	switch {
	case len(p.coords) > 0:
		for t, term := range terms {
			line[t] = 0
			if p.has(row, from+t) {
				line[t] = p.src.bytes[at+term]
			}
		}
	case p.straight:
		copy(line[:len(terms)], p.src.bytes[at+terms[0]:])
	default:
		for t, term := range terms {
			line[t] = p.src.bytes[at+term]
		}
	}
	if p.bias != 0 {
		subtle.XORBytes(line, line, highest)
	}
}

// widenLine turns the bytes in the first half of a line into numbers of 16 bits.
func (p *panels) widenLine(line []uint8) {
	for t := len(line)/2 - 1; t >= 0; t-- {
		x := line[t]
		line[2*t], line[2*t+1] = x, 0
		if p.signed && x >= 128 {
			line[2*t+1] = 0xff
		}
	}
}

// has reports whether a term of a row lies inside the operand.
func (p *panels) has(row, term int) bool {
	for i := range p.coords {
		c := p.coords[i].own[row] + p.coords[i].terms[term]
		if c < 0 || c >= p.side.bounds[i].extent {
			return false
		}
	}
	return true
}

// unbias adds to the chains of n rows what the shifts of both operands take from
// the packed terms: with A′ = A + α and B′ = B − β,
//
//	A·B = A′·B′ + β·A′ − α·B′ − α·β
//
// Before the first terms it starts the chains. The rows have been packed last.
func (p *piece) unbias(from, n int, columns []int32, start bool) {
	rows := p.sumRows(from, n)
	for i := range n {
		chains := unsafe.Slice((*int32)(unsafe.Pointer(&p.chains[(from+i)*p.pitch])), p.broad)
		row := rows[i*p.set.Lanes] * p.bytes.biasB
		switch {
		case !start:
			for j, x := range columns {
				chains[j] += x + row
			}
		case row != 0:
			for j, x := range columns {
				chains[j] = x + row
			}
		default:
			copy(chains, columns)
		}
	}
}

var (
	oneEach = mem.AsFloats([]uint32{ // a one for each term, in every lane
		0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101,
		0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101,
	})
	nowhere [maxDeep]int
	highest = slices.Repeat([]uint8{128}, maxDeep*mem.Word) // the bit that a shift by 128 turns
)

// sumColumns returns −α·ΣB′ − α·β for each column.
func (p *piece) sumColumns() []int32 {
	lanes := p.set.Lanes
	sums := mem.Grow(p.columnSums, mem.RoundUp(p.broad, lanes))
	p.columnSums = sums
	alpha := p.bytes.biasA
	for c := 0; c < p.broad && alpha != 0; {
		n, tiles := p.strip(p.broad - c)
		vectors := mem.CeilDiv(n, lanes)
		b, next, bAt := p.top.columnsAt(c, n, vectors*lanes)
		p.tiles[0][vectors-1](tiles, p.top.deep, &oneEach[0], 0, &nowhere[0], b, next, bAt, &mem.AsFloats(sums[c:])[0], 0, false)
		c += n * tiles
	}
	const each = 4
	for j := range sums {
		sums[j] = -alpha * (sums[j] + p.bytes.biasB*int32(p.top.deep*each))
	}
	return sums[:p.broad]
}

// sumRows returns ΣA′ of n rows, at the beginning of a vector each.
func (p *piece) sumRows(from, n int) []int32 {
	lanes := p.set.Lanes
	p.rowSums = mem.Grow(p.rowSums, n*lanes)
	if p.bytes.biasB == 0 {
		return p.rowSums // which are not used
	}
	for i := 0; i < n; {
		m := nextPart(n-i, p.tileRows, 1)
		a, aRow, aAt := p.left.rowsAt(from+i, m)
		p.tiles[m-1][0](1, p.left.deep, a, aRow, aAt, &oneEach[0], 0, &nowhere[0], &mem.AsFloats(p.rowSums[i*lanes:])[0], lanes*mem.Word, false)
		i += m
	}
	return p.rowSums
}
