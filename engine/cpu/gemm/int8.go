package gemm

import (
	"crypto/subtle"
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// int8Format is how integers of 8 bits lie in panels. Their contractions share everything
// with those of floats but what a word of a panel holds: a group of terms, in the form
// that the micro-kernels want. Those of four terms take operand b as signed bytes, and a
// as they say; an operand of the other kind is shifted by 128, which flips its highest
// bit, and the sums are put right by those of the other operand. Sums wrap, so that it
// does not matter when. Padding is a 0 like any other.
type int8Format struct {
	asm.Int8Kernels
	biasA, biasB int32 // 128, up or down: what is added to the values of a, and taken from those of b
}

// newInt8Format returns the format of p's operands, of which a is number x and b number
// y.
func newInt8Format(p *tensor.Primitive, set *asm.KernelSet, x, y int) *int8Format {
	k := &int8Format{Int8Kernels: set.Int8}
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

// int8Bias returns the shift of an operand, or of a copy of its layout.
func (k *contraction) int8Bias(s *operandLayout) int32 {
	if s.arg == k.b.arg {
		return k.int8.biasB
	}
	return k.int8.biasA
}

// packInt8 packs n rows for one tile, width words for each group of terms.
func (p *packer) packInt8(dst []float32, row, n, width int) {
	const quad = 4
	own, groups := p.rowOffsets[row:][:n], len(p.termOffsets)/quad
	if p.wordTerms == quad && len(p.coords) == 0 && p.set.InterleaveBytes != nil && n%16 == 0 && width == n && affine.Contiguous(own) && groups > 0 {
		p.movedTerms = mem.Grow(p.movedTerms, len(p.termOffsets))
		for i, at := range p.termOffsets {
			p.movedTerms[i] = at + own[0]
		}
		p.set.InterleaveBytes(groups, &dst[0], width*mem.Word, &p.src.bytes[0], &p.movedTerms[0], n/16, uint32(p.bias)*0x01010101)
		if groups < p.kWords { // the last group is not full
			p.packInt8Rows(dst[groups*width:], row, n, width, groups*quad)
		}
		return
	}
	p.packInt8Rows(dst, row, n, width, 0)
}

// packInt8Rows packs the terms from one on, line by line.
func (p *packer) packInt8Rows(dst []float32, row, n, width, from int) {
	deep := p.kWords - from/p.wordTerms
	p.rowBuffer = mem.Grow(p.rowBuffer, n*deep+mem.MaxLanes)
	p.rowStarts = mem.Grow(p.rowStarts, n)
	for i := range n {
		p.rowStarts[i] = i * deep
		line := unsafe.Slice((*uint8)(unsafe.Pointer(&p.rowBuffer[i*deep])), deep*mem.Word)
		p.readInt8Row(line[:deep*p.wordTerms], row+i, from)
		if p.wordTerms == 2 {
			p.widenToInt16(line)
		}
	}
	p.transpose(dst, p.rowBuffer, p.rowStarts, 0, deep, width)
}

// readInt8Row reads the terms of a row from one on, with zeros for those that are
// padding and those that fill the last group.
func (p *packer) readInt8Row(line []uint8, row, from int) {
	terms, at := p.termOffsets[from:], p.rowOffsets[row]
	clear(line[len(terms):])
	switch {
	case len(p.coords) > 0:
		for t, term := range terms {
			line[t] = 0
			if p.isInside(row, from+t) {
				line[t] = p.src.bytes[at+term]
			}
		}
	case p.termsContiguous:
		copy(line[:len(terms)], p.src.bytes[at+terms[0]:])
	default:
		for t, term := range terms {
			line[t] = p.src.bytes[at+term]
		}
	}
	if p.bias != 0 {
		subtle.XORBytes(line, line, signBits)
	}
}

// widenToInt16 turns the bytes in the first half of a line into numbers of 16 bits.
func (p *packer) widenToInt16(line []uint8) {
	for t := len(line)/2 - 1; t >= 0; t-- {
		x := line[t]
		line[2*t], line[2*t+1] = x, 0
		if p.signed && x >= 128 {
			line[2*t+1] = 0xff
		}
	}
}

// isInside reports whether a term of a row lies inside the operand.
func (p *packer) isInside(row, term int) bool {
	for i := range p.coords {
		c := p.coords[i].own[row] + p.coords[i].terms[term]
		if c < 0 || c >= p.layout.bounds[i].extent {
			return false
		}
	}
	return true
}

// unbias adds to the accumulators of n rows what the shifts of both operands take from
// the packed terms: with A′ = A + α and B′ = B − β,
//
//	A·B = A′·B′ + β·A′ − α·B′ − α·β
//
// Before the first terms it starts them. The rows have been packed last.
func (p *block) unbias(from, n int, columns []int32, start bool) {
	rows := p.sumRows(from, n)
	for i := range n {
		acc := unsafe.Slice((*int32)(unsafe.Pointer(&p.acc[(from+i)*p.ldc])), p.colCount)
		row := rows[i*p.set.Lanes] * p.int8.biasB
		switch {
		case !start:
			for j, x := range columns {
				acc[j] += x + row
			}
		case row != 0:
			for j, x := range columns {
				acc[j] = x + row
			}
		default:
			copy(acc, columns)
		}
	}
}

var (
	ones = mem.AsFloats([]uint32{ // a one for each term, in every lane
		0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101,
		0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x01010101,
	})
	zeroOffsets [tuning.MaxKC]int
	signBits    = slices.Repeat([]uint8{128}, tuning.MaxKC*mem.Word) // the bit that a shift by 128 turns
)

// sumColumns returns −α·ΣB′ − α·β for each column.
func (p *block) sumColumns() []int32 {
	lanes := p.set.Lanes
	sums := mem.Grow(p.columnSums, mem.RoundUp(p.colCount, lanes))
	p.columnSums = sums
	alpha := p.int8.biasA
	for c := 0; c < p.colCount && alpha != 0; {
		n, tiles := p.tilesInL1(p.columnsLeft(c))
		vectors := mem.CeilDiv(n, lanes)
		b, next, bAt := p.bPacker.bTile(c, n, vectors*lanes)
		p.microKernels[0][vectors-1](tiles, p.bPacker.kWords, &ones[0], 0, &zeroOffsets[0], b, next, bAt, &mem.AsFloats(sums[c:])[0], 0, false)
		c += n * tiles
	}
	const each = 4
	for j := range sums {
		sums[j] = -alpha * (sums[j] + p.int8.biasB*int32(p.bPacker.kWords*each))
	}
	return sums[:p.colCount]
}

// sumRows returns ΣA′ of n rows, at the beginning of a vector each.
func (p *block) sumRows(from, n int) []int32 {
	lanes := p.set.Lanes
	p.rowSums = mem.Grow(p.rowSums, n*lanes)
	if p.int8.biasB == 0 {
		return p.rowSums // which are not used
	}
	for i := 0; i < n; {
		m := mem.EvenPart(n-i, p.mr, 1)
		a, aRow, aAt := p.aPacker.aTile(from+i, m)
		p.microKernels[m-1][0](1, p.aPacker.kWords, a, aRow, aAt, &ones[0], 0, &zeroOffsets[0], &mem.AsFloats(p.rowSums[i*lanes:])[0], lanes*mem.Word, false)
		i += m
	}
	return p.rowSums
}
