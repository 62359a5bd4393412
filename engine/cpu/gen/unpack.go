package main

import (
	"math"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unpacking is a type of blocks of 32 elements, as an UnpackKernel takes them apart. A row is a lane. Quads of bytes of all
// rows are transposed, so that a register holds four bytes of each row, and elements are shifted out of it.
type unpacking struct {
	name  string
	size  int  // bytes of a block, of which the first two are a scale
	least bool // the next two are a minimum
	bytes bool // elements are bytes, not halves of bytes
	values
}

// values are what halves of bytes stand for; nil: what they are as numbers, less zero.
type values struct {
	table []float32
	zero  float32
}

var unpackings = []unpacking{
	{"Q4_0", 18, false, false, values{nil, 8}},
	{"Q4_1", 20, true, false, values{}},
	{"Q8_0", 34, false, true, values{}},
	{"IQ4_NL", 18, false, false, values{table: []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}}},
}

func unpackKernels() {
	for _, s := range []isa{avx512, avx2} {
		for _, u := range unpackings {
			if s.wide || u.table == nil {
				u.write(s)
			}
		}
	}
}

// write writes the kernel of a type. Products of a scale, which has eleven bits, and an integer are exact, so that adding the
// minimum can be fused with them.
func (u unpacking) write(s isa) {
	name := s.name + "Unpack" + u.name
	function(name, "func(blocks int, dst *float32, dstStep int, src *byte, srcRow, ahead int)", name+" unpacks blocks; see UnpackKernel.")
	blocks, dst, step, row := param("blocks"), param("dst"), param("dstStep"), param("srcRow")
	next := param("ahead")
	rows := newRows(s, param("src"), row)
	context.ADDQ(rows.quads[0], next)
	lookup := u.lookup(s)
	context.Label("loop")
	scale, least := u.scales(s, rows)
	for at := 0; at < s.lanes*u.size; at += 64 {
		context.PREFETCHT0(Mem{Base: next, Disp: at})
	}
	context.ADDQ(U32(s.lanes*u.size), next)
	store := func(x vec) {
		context.VMOVUPS(x, Mem{Base: dst})
		context.ADDQ(step, dst)
	}
	if u.bytes {
		for half := range 2 {
			for _, quad := range s.turnQuads(func(r int) Mem { return rows.at(r, 2+16*half) }) {
				for b := range 4 {
					store(s.mul(s.toFloat(s.signedByte(quad, b)), scale))
				}
			}
		}
	} else {
		quads := s.turnQuads(func(r int) Mem { return rows.at(r, u.size-16) })
		for nibble := range 2 {
			for _, quad := range quads {
				for b := range 4 {
					x := lookup(quad, 8*b+4*nibble)
					if u.least {
						context.VFMADD213PS(least, scale, x)
					} else {
						context.VMULPS(scale, x, x)
					}
					store(x)
				}
			}
		}
	}
	rows.advance(u.size)
	context.DECQ(blocks)
	context.JNZ(LabelRef("loop"))
	ret()
}

// lookup returns what gives the numbers of the halves of bytes that begin at a bit of each lane.
func (u unpacking) lookup(s isa) func(x vec, bit int) vec {
	shifted := func(x vec, bit int) vec {
		if bit == 0 {
			return x
		}
		return s.shift(x, -bit, false)
	}
	if !s.wide {
		return func(x vec, bit int) vec {
			x = s.toFloat(s.and(shifted(x, bit), s.bits(15)))
			if u.zero != 0 {
				x = s.sub(x, s.number(u.zero))
			}
			return x
		}
	}
	numbers := make([]uint32, 16)
	for i := range numbers {
		if u.table != nil {
			numbers[i] = math.Float32bits(u.table[i])
		} else {
			numbers[i] = math.Float32bits(float32(i) - u.zero)
		}
	}
	table := s.load(s.table("numbers"+u.name, numbers...))
	return func(x vec, bit int) vec { // a permutation takes four bits of each lane
		out := s.register()
		context.VPERMPS(table, shifted(x, bit), out)
		return out
	}
}

// signedByte returns byte b of each lane.
func (s isa) signedByte(x vec, b int) vec {
	if b < 3 {
		x = s.shift(x, 24-8*b, false)
	}
	return s.shift(x, -24, true)
}

// scales returns the scales of the rows' blocks, and the minima if there are any. What is not finite is NaN.
func (u unpacking) scales(s isa, rows *rowsInMemory) (scale, least vec) {
	both := rows.gather()
	scale = s.finite(s.half(both, false))
	if u.least {
		least = s.finite(s.half(both, true))
	}
	return scale, least
}

// half returns one of the two float16 in each lane.
func (s isa) half(x vec, upper bool) vec {
	if upper {
		x = s.shift(x, -16, false)
	}
	out := s.register()
	if s.wide {
		narrow := context.YMM()
		context.VPMOVDW(x, narrow)
		context.VCVTPH2PS(narrow, out)
		return out
	}
	if !upper {
		x = s.and(x, s.bits(0xffff))
	}
	high, narrow := context.XMM(), context.XMM()
	context.VEXTRACTF128(U8(1), x, high)
	context.VPACKUSDW(high, x.AsX(), narrow)
	context.VCVTPH2PS(narrow, out)
	return out
}

// finite returns x, with NaN for what is not finite: x·0 + x.
func (s isa) finite(x vec) vec {
	return s.whole(s.add(s.mul(x, s.number(0)), x))
}

// rowsInMemory are as many rows as there are lanes, one pitch apart.
type rowsInMemory struct {
	isa
	quads        []reg.GPVirtual // the first of each four
	pitch, three reg.GPVirtual
	places       vec // of all rows, behind the first
}

func newRows(s isa, first, pitch reg.GPVirtual) *rowsInMemory {
	r := &rowsInMemory{isa: s, quads: []reg.GPVirtual{first}, pitch: pitch, three: context.GP64(), places: s.register()}
	for len(r.quads) < s.lanes/4 {
		next := context.GP64()
		context.LEAQ(Mem{Base: r.quads[len(r.quads)-1], Index: pitch, Scale: 4}, next)
		r.quads = append(r.quads, next)
	}
	context.LEAQ(Mem{Base: pitch, Index: pitch, Scale: 2}, r.three)
	low := context.XMM()
	context.VMOVD(pitch.As32(), low)
	context.VPBROADCASTD(low, r.places)
	context.VPMULLD(s.table("rowNumbers", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), r.places, r.places)
	return r
}

// at is where a row has a byte.
func (r *rowsInMemory) at(row, disp int) Mem {
	m := Mem{Base: r.quads[row/4], Disp: disp}
	switch row % 4 {
	case 1, 2:
		m.Index, m.Scale = r.pitch, uint8(row%4)
	case 3:
		m.Index, m.Scale = r.three, 1
	}
	return m
}

// gather returns the first four bytes of each row.
func (r *rowsInMemory) gather() vec {
	out := r.register()
	r.zero(out)
	from := Mem{Base: r.quads[0], Index: r.places, Scale: 1}
	if r.wide {
		k := context.K()
		context.KXNORW(k, k, k)
		context.VPGATHERDD(from, k, out)
		return out
	}
	mask := r.register()
	context.VPCMPEQD(mask, mask, mask)
	context.VPGATHERDD(mask, from, out)
	return out
}

// advance moves all rows on.
func (r *rowsInMemory) advance(bytes int) {
	for _, q := range r.quads {
		context.ADDQ(Imm(uint64(bytes)), q)
	}
}
