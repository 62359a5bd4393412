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
	size  int       // bytes of a block, of which the first two are a scale
	least bool      // the next two are a minimum
	bytes bool      // elements are bytes, not halves of bytes
	table []float32 // what halves of bytes stand for; nil: what they are as numbers, less zero
	zero  float32
}

var unpackings = []unpacking{
	{name: "Q4_0", size: 18, zero: 8},
	{name: "Q4_1", size: 20, least: true},
	{name: "Q8_0", size: 34, bytes: true},
	{name: "IQ4_NL", size: 18, table: []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}},
}

func unpackKernels() {
	for _, s := range []isa{avx512, avx2} {
		for _, u := range unpackings {
			if s.wide || u.table == nil {
				unpackKernel(s, u.name, u.size, u.lookup(s), u.write)
			}
		}
		unpackKernel(s, "F16", 16, nil, func(k *unpacker) { k.halves(s.half) })
		unpackKernel(s, "BF16", 16, nil, func(k *unpacker) { k.halves(s.upperHalf) })
	}
	four := unpacking{name: "Q4_K"}
	unpackKernel(avx512, four.name, 144, four.lookup(avx512), (*unpacker).q4K)
	unpackKernel(avx512, "Q6_K", 210, nil, (*unpacker).q6K)
}

// unpacker is an UnpackKernel that is being written.
type unpacker struct {
	*rowsInMemory
	dst, step reg.GPVirtual
	numbers   lookup
}

// lookup gives the numbers that four bits of each lane stand for, from a bit on; it begins by what sets it up.
type lookup func() func(x vec, bit int) vec

// unpackKernel writes the kernel of a type: what unpacks one block, in a loop.
func unpackKernel(s isa, of string, size int, numbers lookup, block func(*unpacker)) {
	name := s.name + "Unpack" + of
	function(name, "func(blocks int, dst *float32, dstStep int, src *byte, srcRow, ahead int)", name+" unpacks blocks; see UnpackKernel.")
	blocks, next := param("blocks"), param("ahead")
	k := &unpacker{dst: param("dst"), step: param("dstStep"), numbers: numbers}
	k.rowsInMemory = newRows(s, param("src"), param("srcRow"))
	context.ADDQ(k.quads[0], next)
	if numbers != nil {
		ready := numbers()
		k.numbers = func() func(vec, int) vec { return ready }
	}
	context.Label("loop")
	for at := 0; at < s.lanes*size; at += 64 {
		context.PREFETCHT0(Mem{Base: next, Disp: at})
	}
	context.ADDQ(U32(s.lanes*size), next)
	block(k)
	for _, q := range k.quads {
		context.ADDQ(U32(size), q)
	}
	context.DECQ(blocks)
	context.JNZ(LabelRef("loop"))
	ret()
}

// store stores the elements of the next term.
func (k *unpacker) store(x vec) {
	context.VMOVUPS(x, Mem{Base: k.dst})
	context.ADDQ(k.step, k.dst)
}

// quadsAt returns four times four bytes of all rows.
func (k *unpacker) quadsAt(disp int) [4]vec {
	return k.turnQuads(func(r int) Mem { return k.at(r, disp) })
}

// write writes a block of 32 elements. Products of a scale, which has eleven bits, and an integer are exact, so that adding the
// minimum can be fused with them.
func (u unpacking) write(k *unpacker) {
	both := k.gather(0)
	scale, least := k.finite(k.half(both, false)), vec(nil)
	if u.least {
		least = k.finite(k.half(both, true))
	}
	if u.bytes {
		for half := range 2 {
			for _, quad := range k.quadsAt(2 + 16*half) {
				for b := range 4 {
					k.store(k.mul(k.toFloat(k.signedByte(quad, b)), scale))
				}
			}
		}
		return
	}
	quads, number := k.quadsAt(u.size-16), k.numbers()
	for nibble := range 2 {
		for _, quad := range quads {
			for b := range 4 {
				x := number(quad, 8*b+4*nibble)
				if u.least {
					context.VFMADD213PS(least, scale, x)
				} else {
					context.VMULPS(scale, x, x)
				}
				k.store(x)
			}
		}
	}
}

// halves writes eight floats of 16 bits.
func (k *unpacker) halves(widen func(x vec, upper bool) vec) {
	for _, quad := range k.quadsAt(0) {
		for _, upper := range []bool{false, true} {
			k.store(k.whole(widen(quad, upper)))
		}
	}
}

// q4K writes a block of eight parts of 32 elements, two of which share bytes. Scales of parts have at most 17 bits, so that
// their products with integers of four are exact.
func (k *unpacker) q4K() {
	head, number := k.quadsAt(0), k.numbers()
	d, m := k.finite(k.half(head[0], false)), k.finite(k.half(head[0], true))
	by := func(of vec, part, nibble int, scale vec) vec { // a scale or a minimum of a part
		if part < 4 {
			return k.mul(k.toFloat(k.and(k.right(of, 8*part), k.bits(63))), scale)
		}
		b := 8 * (part - 4)
		low, high := k.and(k.right(head[3], b+nibble), k.bits(15)), k.and(k.right(of, b+6), k.bits(3))
		return k.mul(k.toFloat(k.or(low, k.shift(high, 4, false))), scale)
	}
	for pair := range 4 {
		first, second := k.quadsAt(16+32*pair), k.quadsAt(32+32*pair)
		for nibble := range 2 {
			part := 2*pair + nibble
			scale, least := by(head[1], part, 0, d), by(head[2], part, 4, m)
			for _, quad := range append(first[:], second[:]...) {
				for b := range 4 {
					x := number(quad, 8*b+4*nibble)
					context.VFMSUB213PS(least, scale, x)
					k.store(x)
				}
			}
		}
	}
}

// q6K writes a block of two halves of four parts of 32 elements. Sixteen elements have one scale.
func (k *unpacker) q6K() {
	d := k.finite(k.half(k.gather(206), true))
	scales, to := k.quadsAt(192), k.dst
	k.dst = context.GP64()
	for run := range 4 { // sixteen bytes of each part of half a block
		half, g := run/2, run%2
		low, high := [2][4]vec{k.quadsAt(64*half + 16*g), k.quadsAt(64*half + 32 + 16*g)}, k.quadsAt(128+32*half+16*g)
		for part := range 4 {
			at := 8*half + 2*part + g
			scale := k.mul(k.toFloat(k.signedByte(scales[at/4], at%4)), d)
			context.IMUL3Q(U32(128*half+32*part+16*g), k.step, k.dst)
			context.ADDQ(to, k.dst)
			for j, quad := range low[part%2] {
				for b := range 4 {
					x := k.and(k.right(quad, 8*b+part/2*4), k.bits(15))
					y := k.and(k.right(high[j], 8*b+2*part-4), k.bits(48))
					k.store(k.mul(k.sub(k.toFloat(k.or(x, y)), k.number(32)), scale))
				}
			}
		}
	}
	context.IMUL3Q(U32(256), k.step, k.dst)
	context.ADDQ(k.dst, to)
	k.dst = to
}

// lookup returns what gives the numbers of halves of bytes.
func (u unpacking) lookup(s isa) lookup {
	if u.bytes {
		return nil
	}
	if !s.wide {
		return func() func(vec, int) vec {
			return func(x vec, bit int) vec {
				x = s.toFloat(s.and(s.right(x, bit), s.bits(15)))
				if u.zero != 0 {
					x = s.sub(x, s.number(u.zero))
				}
				return x
			}
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
	return func() func(vec, int) vec {
		table := s.load(s.table("numbers"+u.name, numbers...))
		return func(x vec, bit int) vec { // a permutation takes four bits of each lane
			out := s.register()
			context.VPERMPS(table, s.right(x, bit), out)
			return out
		}
	}
}

// right moves bits right, or left if n is negative.
func (s isa) right(x vec, n int) vec {
	if n == 0 {
		return x
	}
	return s.shift(x, -n, false)
}

// signedByte returns byte b of each lane.
func (k *unpacker) signedByte(x vec, b int) vec { return k.shift(k.right(x, 8*b-24), -24, true) }

// half returns one of the two float16 in each lane.
func (s isa) half(x vec, upper bool) vec {
	if upper {
		x = s.right(x, 16)
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

// upperHalf returns one of the two bfloat16 in each lane.
func (s isa) upperHalf(x vec, upper bool) vec {
	if upper {
		return s.and(x, s.bits(0xffff0000))
	}
	return s.shift(x, 16, false)
}

// finite returns x, with NaN for what is not finite: x·0 + x.
func (k *unpacker) finite(x vec) vec {
	return k.whole(k.add(k.mul(x, k.number(0)), x))
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

// gather returns four bytes of each row, from one on.
func (r *rowsInMemory) gather(disp int) vec {
	out := r.register()
	r.zero(out)
	from := Mem{Base: r.quads[0], Index: r.places, Scale: 1, Disp: disp}
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
