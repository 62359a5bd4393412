package main

import (
	"bytes"
	"fmt"
	"go/format"
	"math"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Panels of quantised weights: panelColumns columns, block by block. Package quantized says how the bytes lie.
const (
	panelColumns = 16
	groupTerms   = 8 // that a word of halves of bytes holds
)

// code is how the integers or floats of a group of terms are stored, for each column.
type code int

const (
	fours     code = iota // a word of eight halves of bytes
	bytesOf               // signed bytes, column by column in each term
	halves                // float16, likewise
	upperHalf             // bfloat16, likewise
)

func (c code) groupBytes() int {
	return panelColumns * map[code]int{fours: 4, bytesOf: 8, halves: 16, upperHalf: 16}[c]
}

// blockFormat is a type of blocks. A block is parts of some terms.
type blockFormat struct {
	name    string
	code    code
	parts   int       // of a block
	terms   int       // of a part
	minimum bool      // parts have a minimum
	nested  bool      // scales and minima of parts are bytes, by which those of the block, float16, are multiplied
	high    int       // bits of an element above the fourth, in words behind the scales of a part
	table   []float32 // what four bits stand for; nil: what they are as numbers, less offset
	offset  float32
}

var blockFormats = []blockFormat{
	{name: "Q4_0", parts: 1, terms: 32, offset: 8},
	{name: "Q4_1", parts: 1, terms: 32, minimum: true},
	{name: "Q5_0", parts: 1, terms: 32, high: 1, offset: 16},
	{name: "Q5_1", parts: 1, terms: 32, high: 1, minimum: true},
	{name: "Q8_0", code: bytesOf, parts: 1, terms: 32},
	{name: "IQ4_NL", parts: 1, terms: 32, table: []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}},
	{name: "Q4_K", parts: 8, terms: 32, nested: true, minimum: true},
	{name: "Q5_K", parts: 8, terms: 32, nested: true, minimum: true, high: 1},
	{name: "Q6_K", parts: 16, terms: 16, nested: true, high: 2, offset: 32},
	{name: "F16", code: halves, parts: 1, terms: groupTerms},
	{name: "BF16", code: upperHalf, parts: 1, terms: groupTerms},
}

// blockTile is a tile of multiply-adds: rows, and panels of columns.
type blockTile struct{ rows, panels int }

// tiles are those of a format, as many as there are registers for. The greatest come first.
func (f *blockFormat) tiles(s isa) []blockTile {
	switch {
	case s.wide:
		return []blockTile{{8, 2}, {8, 1}, {4, 2}, {4, 1}, {2, 2}, {2, 1}, {1, 4}, {1, 1}}
	case f.high > 0:
		return []blockTile{{2, 1}, {1, 1}}
	}
	return []blockTile{{2, 1}, {1, 2}, {1, 1}}
}

// serves reports whether a set has kernels of a format. A table is one register of AVX-512.
func (f *blockFormat) serves(s isa) bool { return s.wide || f.table == nil }

func (f *blockFormat) unpackName(s isa) string { return s.name + "Unpack" + f.name }

func (f *blockFormat) tileName(s isa, t blockTile) string {
	return fmt.Sprintf("%sBlocks%s_%dx%d", s.name, f.name, t.rows, t.panels*panelColumns)
}

func blockKernels() {
	for _, s := range []isa{avx512, avx2} {
		for i := range blockFormats {
			if f := &blockFormats[i]; f.serves(s) {
				unpackKernel(s, f)
				for _, t := range f.tiles(s) {
					blockKernel(s, f, t)
				}
			}
		}
	}
}

// panelReader writes what goes through panels, term by term.
type panelReader struct {
	isa
	*blockFormat
	panels       int
	w            reg.GPVirtual // where the next bytes of the first panel lie
	next         reg.GPVirtual // the same of what is fetched: the next tile; nil: nothing is
	pitch, three reg.GPVirtual // from panel to panel, and three times as far
	head         reg.GPVirtual // where a block begins whose scales are at its head
	scale, least []vec         // of a part, by vector
	highBits     []vec
	numbers      [2]vec // what four or five bits stand for
}

func newPanelReader(s isa, f *blockFormat, panels int) *panelReader {
	r := &panelReader{isa: s, blockFormat: f, panels: panels, w: param("w")}
	if panels > 1 {
		r.pitch = param("panel")
	}
	if panels > 3 {
		r.three = context.GP64()
		context.LEAQ(Mem{Base: r.pitch, Index: r.pitch, Scale: 2}, r.three)
	}
	n := r.vectors()
	if f.code < halves {
		r.scale = s.registers(n)
	}
	if f.minimum {
		r.least = s.registers(n)
	}
	if f.nested {
		r.head = context.GP64()
	}
	if f.high > 0 {
		r.highBits = s.registers(n)
	}
	if s.wide && f.code == fours && f.high < 2 {
		for i := range 1 + f.high {
			numbers := make([]uint32, 16)
			for j := range numbers {
				x := float32(16*i+j) - f.offset
				if f.table != nil {
					x = f.table[j]
				}
				numbers[j] = math.Float32bits(x)
			}
			r.numbers[i] = s.load(s.table(fmt.Sprintf("numbers%s%d", f.name, i), numbers...))
		}
	}
	return r
}

// vectors are those of the columns.
func (r *panelReader) vectors() int { return r.panels * panelColumns / r.lanes }

// at is where a vector begins of which every element takes so many bytes.
func (r *panelReader) at(v, size, disp int) Mem {
	perPanel := panelColumns / r.lanes
	m := Mem{Base: r.w, Disp: disp + v%perPanel*r.lanes*size}
	switch panel := v / perPanel; panel {
	case 1, 2:
		m.Index, m.Scale = r.pitch, uint8(panel)
	case 3:
		m.Index, m.Scale = r.three, 1
	}
	return m
}

// advance goes n bytes on, and fetches as many of the next tile into the second-level cache: panels are too short for what
// fetches ahead of its own accord.
func (r *panelReader) advance(n int) {
	if r.next != nil {
		for panel := range r.panels {
			for at := 0; at < n; at += 64 {
				m := r.at(panel*panelColumns/r.lanes, 0, at)
				m.Base = r.next
				context.PREFETCHT1(m)
			}
		}
		context.ADDQ(U32(n), r.next)
	}
	context.ADDQ(U32(n), r.w)
}

// scaleAt loads the float16 of a vector of columns, with NaN for those that are not finite: x·0 + x.
func (r *panelReader) scaleAt(at Mem, to vec) {
	x := r.register()
	context.VCVTPH2PS(at, x)
	context.VMOVAPS(x, to)
	context.VFMADD231PS(r.number(0), x, to)
}

// scalesAt loads those of all columns; nested ones are integers of one byte, times that of the block. It returns the bytes read.
func (r *panelReader) scalesAt(disp, inHead int, to []vec) int {
	for v := range to {
		if !r.nested {
			r.scaleAt(r.at(v, 2, disp), to[v])
			continue
		}
		at := r.at(v, 2, inHead)
		at.Base = r.head
		r.scaleAt(at, to[v])
		x := r.register()
		if r.minimum {
			context.VPMOVZXBD(r.at(v, 1, disp), x)
		} else {
			context.VPMOVSXBD(r.at(v, 1, disp), x)
		}
		context.VCVTDQ2PS(x, x)
		context.VMULPS(x, to[v], to[v])
	}
	if r.nested {
		return panelColumns
	}
	return 2 * panelColumns
}

// block goes through one block; term is called for each of its terms, by place in a group, and group after each group.
func (r *panelReader) block(term func(k int), group func()) {
	if r.nested {
		context.MOVQ(r.w, r.head)
		n := 2 * panelColumns
		if r.minimum {
			n *= 2
		}
		r.advance(n)
	}
	parts, groups := context.GP64(), context.GP64()
	if r.parts > 1 {
		context.MOVQ(U32(r.parts), parts)
		context.Label("part")
	}
	r.part()
	if r.terms > groupTerms {
		context.MOVQ(U32(r.terms/groupTerms), groups)
		context.Label("group")
	}
	for k := range groupTerms {
		term(k)
	}
	group()
	r.advance(r.code.groupBytes())
	if r.terms > groupTerms {
		for _, x := range r.highBits {
			context.VPSRLD(U8(groupTerms*r.high), x, x)
		}
		context.DECQ(groups)
		context.JNZ(LabelRef("group"))
	}
	if r.parts > 1 {
		context.DECQ(parts)
		context.JNZ(LabelRef("part"))
	}
}

// part reads what stands before the terms of a part.
func (r *panelReader) part() {
	if r.scale == nil {
		return
	}
	n := r.scalesAt(0, 0, r.scale)
	if r.minimum {
		n += r.scalesAt(n, 2*panelColumns, r.least)
	}
	for v, x := range r.highBits {
		context.VMOVUPS(r.at(v, 4, n), x)
	}
	if r.high > 0 {
		n += 4 * panelColumns
	}
	r.advance(n)
}

// weight returns the weights of the kth term of a group, of one vector of columns. Products of a scale and an integer are
// exact, so that adding a minimum can be fused with them.
func (r *panelReader) weight(v, k int) vec {
	x := r.register()
	switch r.code {
	case halves:
		context.VCVTPH2PS(r.at(v, 2, 2*panelColumns*k), x)
		return x
	case upperHalf:
		context.VPMOVZXWD(r.at(v, 2, 2*panelColumns*k), x)
		context.VPSLLD(U8(16), x, x)
		return x
	case bytesOf:
		context.VPMOVSXBD(r.at(v, 1, panelColumns*k), x)
		context.VCVTDQ2PS(x, x)
	default:
		x = r.integer(v, k)
	}
	switch {
	case !r.minimum:
		context.VMULPS(x, r.scale[v], x)
	case r.nested:
		context.VFMSUB213PS(r.least[v], r.scale[v], x)
	default:
		context.VFMADD213PS(r.least[v], r.scale[v], x)
	}
	return x
}

// integer returns the integers of a term that has four bits and perhaps some higher ones.
func (r *panelReader) integer(v, k int) vec {
	x := r.nibble(v, k)
	if r.high == 0 {
		if r.wide { // a permutation takes four bits of each lane
			context.VPERMPS(r.numbers[0], x, x)
			return x
		}
		context.VANDPS(r.bits(15), x, x)
	} else {
		y, up := r.register(), 4-r.high*k
		switch {
		case up > 0:
			context.VPSLLD(U8(up), r.highBits[v], y)
		case up < 0:
			context.VPSRLD(U8(-up), r.highBits[v], y)
		default:
			context.VMOVAPS(r.highBits[v], y)
		}
		if r.wide {
			const first = 0xca // of the third operand's bits where they are set, else of the second
			z := r.register()
			context.VMOVUPS(r.bits(15), z)
			context.VPTERNLOGD(U8(first), y, x, z)
			if r.high == 1 { // another takes five
				context.VPERMI2PS(r.numbers[1], r.numbers[0], z)
				return z
			}
			x = z
			context.VPANDD(r.bits(63), x, x)
		} else {
			context.VANDPS(r.bits(15), x, x)
			context.VANDPS(r.bits(16<<r.high-16), y, y)
			context.VORPS(x, y, x)
		}
	}
	context.VCVTDQ2PS(x, x)
	if r.offset != 0 {
		context.VSUBPS(r.number(r.offset), x, x)
	}
	return x
}

// nibble returns words of which the lowest four bits are those of a term.
func (r *panelReader) nibble(v, k int) vec {
	x, at := r.register(), r.at(v, 4, 0)
	switch {
	case k == 0:
		context.VMOVUPS(at, x)
	case r.wide:
		context.VPSRLD(U8(4*k), at, x)
	default:
		context.VMOVUPS(at, x)
		context.VPSRLD(U8(4*k), x, x)
	}
	return x
}

// blockKernel writes a tile of multiply-adds.
func blockKernel(s isa, f *blockFormat, t blockTile) {
	name := f.tileName(s, t)
	function(name, "func(blocks int, w *byte, panel int, x *float32, xRow int, c *float32, cRow int, add bool)",
		fmt.Sprintf("%s advances a tile of %d×%d accumulators; see BlockKernel.", name, t.rows, t.panels*panelColumns))
	r := newPanelReader(s, f, t.panels)
	if r.pitch == nil {
		r.pitch = param("panel")
	}
	r.next = context.GP64()
	context.LEAQ(Mem{Base: r.w, Index: r.pitch, Scale: uint8(t.panels)}, r.next)
	acc := newAccumulators(s, t.rows, r.vectors())
	acc.begin(param("c"))
	x, blocks := param("x"), param("blocks")
	rows := rowAddresses(t.rows, x, param("xRow"))
	context.Label("loop")
	r.block(func(k int) {
		if s.wide {
			for v := range r.vectors() {
				w := r.weight(v, k)
				for i, chains := range acc.rows {
					at := rows[i]
					at.Disp += 4 * k
					context.VFMADD231PS_BCST(at, w, chains[v])
				}
			}
			return
		}
		if t.rows == 1 { // a weight at a time, for there are registers for no more
			y := s.register()
			context.VBROADCASTSS(Mem{Base: x, Disp: 4 * k}, y)
			for v := range r.vectors() {
				context.VFMADD231PS(y, r.weight(v, k), acc.rows[0][v])
			}
			return
		}
		var w []vec
		for v := range r.vectors() {
			w = append(w, r.weight(v, k))
		}
		for i, chains := range acc.rows {
			y, at := s.register(), rows[i]
			at.Disp += 4 * k
			context.VBROADCASTSS(at, y)
			for v := range w {
				context.VFMADD231PS(y, w[v], chains[v])
			}
		}
	}, func() { context.ADDQ(Imm(4*groupTerms), x) })
	context.DECQ(blocks)
	context.JNZ(LabelRef("loop"))
	acc.end(param("c"), true)
	ret()
}

// unpackKernel writes what unpacks a panel.
func unpackKernel(s isa, f *blockFormat) {
	name := f.unpackName(s)
	function(name, "func(blocks int, w *byte, dst *float32, dstStep int)", name+" unpacks a panel; see UnpackKernel.")
	r := newPanelReader(s, f, 1)
	dst, step, blocks := param("dst"), param("dstStep"), param("blocks")
	context.Label("loop")
	r.block(func(k int) {
		for v := range r.vectors() {
			context.VMOVUPS(r.weight(v, k), Mem{Base: dst, Disp: v * s.bytes()})
		}
		context.ADDQ(step, dst)
	}, func() {})
	context.DECQ(blocks)
	context.JNZ(LabelRef("loop"))
	ret()
}

// blockTable returns the Go source that lists these kernels by type.
func blockTable() []byte {
	var text bytes.Buffer
	fmt.Fprint(&text, "// Code generated by engine/cpu/gen. DO NOT EDIT.\n\npackage asm\n\nimport \"github.com/tally-network/tally/core/quant\"\n")
	for _, s := range []isa{avx512, avx2} {
		fmt.Fprintf(&text, "\nvar %sBlocks = map[quant.Type]BlockKernels{\n", s.name)
		for i := range blockFormats {
			f := &blockFormats[i]
			if !f.serves(s) {
				continue
			}
			fmt.Fprintf(&text, "quant.%s: {%s, []BlockTile{", f.name, f.unpackName(s))
			for _, t := range f.tiles(s) {
				fmt.Fprintf(&text, "{%d, %d, %s},", t.rows, t.panels, f.tileName(s, t))
			}
			fmt.Fprint(&text, "}},\n")
		}
		fmt.Fprint(&text, "}\n")
	}
	out, err := format.Source(text.Bytes())
	if err != nil {
		panic(err)
	}
	return out
}
