package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chainOp is a function of an EltwiseOp: what becomes of x, of which y is an operand in a
// register. One of the others says it.
type chainOp struct {
	name    string
	compute func(x, y vec)
	extreme *extreme
	alone   func(s isa, x []vec) vec // of x alone
	keeps   bool                     // x is kept, and nothing becomes of it; or else what was kept, if swaps
	swaps   bool
}

// chainOps are those functions in the order of their numbers, those of x alone last. Only
// the end of a chain makes NaNs canonical.
var chainOps = []chainOp{
	{name: "Add", compute: func(x, y vec) { context.VADDPS(y, x, x) }},
	{name: "Sub", compute: func(x, y vec) { context.VSUBPS(y, x, x) }},
	{name: "Less", compute: func(x, y vec) { context.VSUBPS(x, y, x) }},
	{name: "Mul", compute: func(x, y vec) { context.VMULPS(y, x, x) }},
	{name: "Div", compute: func(x, y vec) { context.VDIVPS(y, x, x) }},
	{name: "Max", extreme: &greater},
	{name: "Min", extreme: &lesser},
	{name: "Over", compute: func(x, y vec) { context.VDIVPS(x, y, x) }},
	{name: "Neg", alone: func(s isa, x []vec) vec { return s.xor(x[0], s.bits(1<<31)) }},
	{name: "Exp", alone: anyExp},
	{name: "Tanh", alone: tanh},
	{name: "Erf", alone: erf},
	{name: "Keep", keeps: true},
	{name: "Swap", keeps: true, swaps: true},
}

// chainBinaries is how many take an operand.
var chainBinaries = slices.IndexFunc(chainOps, func(o chainOp) bool { return o.alone != nil })

// Places in an EltwiseOp.
const opFn, opAt, opRow, opSize = 0, 8, 16, 24

// chainWriter is the state of a kernel that is being written.
type chainWriter struct {
	isa
	dst, x, at, left, row reg.GPVirtual  // at: bytes from the beginning
	held                  map[uint32]vec // constants, for which AVX-512 has registers
	waiting               Mem            // vectors for which AVX2 has no registers at times
	kept                  reg.GPVirtual  // where vectors are kept, from a multiple of their bytes on
}

// unknown are the classes that replace NaNs.
const unknown = 0x11111100

// hold loads the constants.
func (f *chainWriter) hold() {
	f.held = map[uint32]vec{}
	for _, u := range []uint32{canonicalNaN, unknown, greater.classes, lesser.classes} {
		if f.wide {
			f.held[u] = f.load(f.bits(u))
		}
	}
}

// finished returns x with every NaN made canonical.
func (f *chainWriter) finished(x vec) vec {
	if f.wide {
		return f.classify(x, f.held[canonicalNaN], f.held[unknown])
	}
	return f.whole(x)
}

// compute writes function i of each x and an operand that they share.
func (f *chainWriter) compute(i int, y vec, x ...vec) {
	if o := chainOps[i]; o.keeps {
		f.keep(o.swaps, y, x)
		return
	}
	do := chainOps[i].compute
	if alone := chainOps[i].alone; alone != nil {
		f.aloneInTurn(alone, x)
		return
	}
	if e := chainOps[i].extreme; e != nil {
		rest := e.rest(f.isa, y, f.held[e.classes])
		do = func(x, y vec) { e.apply(x, y, rest, x) }
	}
	for _, v := range x {
		do(v, y)
	}
}

// keep keeps each x, perhaps in turn for what was kept. free is a register to use.
func (f *chainWriter) keep(swaps bool, free vec, x []vec) {
	for i, v := range x {
		at := Mem{Base: f.kept, Disp: i * f.bytes()}
		if !swaps {
			context.VMOVAPS(v, at)
			continue
		}
		context.VMOVAPS(at, free)
		context.VMOVAPS(v, at)
		context.VMOVAPS(free, v)
	}
}

// aloneInTurn computes each x by a function that needs registers of its own. With AVX2
// the others wait in memory for that.
func (f *chainWriter) aloneInTurn(alone func(s isa, x []vec) vec, x []vec) {
	if f.wide {
		s := f.isa
		s.begun = true // or every register of every function lives from the beginning on
		for _, v := range x {
			context.VMOVAPS(alone(s, []vec{v}), v)
		}
		return
	}
	at := func(i int) Mem { return f.waiting.Offset(i * f.bytes()) }
	for i, v := range x {
		context.VMOVUPS(v, at(i))
	}
	for i := range x {
		context.VMOVUPS(alone(f.isa, []vec{f.load(at(i))}), at(i))
	}
	for i, v := range x {
		context.VMOVUPS(at(i), v)
	}
}

// chains writes the kernel that takes values through ops.
func chains() {
	for _, s := range []isa{avx512, avx2} {
		name := s.name + "EltwiseChain"
		function(name, "func(rows, lines, width, gap, xLine, xRow int, dst, x *float32, steps *byte, n int)", name+" takes values through ops; see ChainKernel.")
		f := chainWriter{isa: s, dst: param("dst"), x: param("x"), at: context.GP64(), left: context.GP64(), row: context.GP64(), kept: context.GP64()}
		f.hold()
		if !s.wide {
			f.waiting = context.AllocLocal(8 * s.bytes())
		}
		context.LEAQ(context.AllocLocal(9*s.bytes()).Offset(s.bytes()-1), f.kept)
		context.ANDQ(I32(-s.bytes()), f.kept)
		// Vectors that go through the steps together; then those of what is left, if
		// there are so many elements, of which the last have masks.
		type rest struct{ vectors, least int }
		blocks, rests, masked := []int{8, 4, 1}, []rest{{1, 1}}, 1
		if s.wide {
			blocks, rests, masked = []int{8}, []rest{{8, 4 * s.lanes}, {4, s.lanes + 1}, {1, 1}}, 4
		}
		masks := f.masks(masked)
		context.XORQ(f.at, f.at)
		context.XORQ(f.row, f.row)
		line := context.GP64()
		context.Label("row")
		context.Load(context.Param("lines"), line)
		context.Label("line")
		context.Load(context.Param("width"), f.left)
		for _, n := range blocks {
			label := fmt.Sprintf("whole%d", n)
			context.Label(label)
			context.CMPQ(f.left, U32(n*s.lanes))
			context.JL(LabelRef(label + "End"))
			f.block(label, make([]reg.Register, n))
			context.ADDQ(U32(n*s.bytes()), f.at)
			context.SUBQ(U32(n*s.lanes), f.left)
			context.JMP(LabelRef(label))
			context.Label(label + "End")
		}
		for _, r := range rests {
			label, whole := fmt.Sprintf("rest%d", r.vectors), max(r.vectors-masked, 0)
			context.CMPQ(f.left, U32(r.least))
			context.JL(LabelRef(label + "End"))
			f.block(label, append(make([]reg.Register, whole), masks[:r.vectors-whole]...))
			context.LEAQ(Mem{Base: f.at, Index: f.left, Scale: 4}, f.at)
			context.JMP(LabelRef("end"))
			context.Label(label + "End")
		}
		context.Label("end")
		context.ADDQ(param("xLine"), f.x)
		context.DECQ(line)
		context.JNZ(LabelRef("line"))
		context.ADDQ(param("gap"), f.at)
		context.ADDQ(param("xRow"), f.x)
		context.ADDQ(Imm(4), f.row)
		rows, err := context.Param("rows").Resolve()
		if err != nil {
			panic(err)
		}
		context.DECQ(rows.Addr)
		context.JNZ(LabelRef("row"))
		ret()
	}
}

// masks returns those of so many vectors that are not all whole: the last of a line.
func (f *chainWriter) masks(vectors int) []reg.Register {
	out, left := make([]reg.Register, vectors), param("width")
	context.ANDQ(U32(vectors*f.lanes-1), left)
	if f.wide {
		lanes := context.GP64()
		context.MOVQ(I32(-1), lanes)
		context.BZHIQ(left, lanes, lanes)
		for i := range out {
			k := context.K()
			context.KMOVW(lanes.As32(), k)
			context.SHRQ(Imm(uint64(f.lanes)), lanes)
			out[i] = k
		}
		return out
	}
	end := f.register()
	low := context.XMM()
	context.VMOVD(left.As32(), low)
	context.VPBROADCASTD(low, end)
	for i := range out {
		mask := f.register()
		context.VPCMPGTD(f.counting(i*f.lanes), end, mask)
		out[i] = mask
	}
	return out
}

// fetch loads a vector, or the lanes of it that are there.
func (f *chainWriter) fetch(at Mem, x vec, mask reg.Register) {
	switch {
	case mask == nil:
		context.VMOVUPS(at, x)
	case f.wide:
		context.VMOVUPS_Z(at, mask, x)
	default:
		context.VMASKMOVPS(at, mask, x)
	}
}

func (f *chainWriter) store(x vec, at Mem, mask reg.Register) {
	switch {
	case mask == nil:
		context.VMOVUPS(x, at)
	case f.wide:
		context.VMOVUPS(x, mask, at)
	default:
		context.VMASKMOVPS(x, mask, at)
	}
}

// block takes vectors through all steps, or the lanes of them that have masks.
func (f *chainWriter) block(label string, masks []reg.Register) {
	x, y := f.registers(len(masks)), f.register()
	for i := range x {
		f.fetch(Mem{Base: f.x, Index: f.at, Scale: 1, Disp: i * f.bytes()}, x[i], masks[i])
	}
	step, left, fn, from := context.GP64(), context.GP64(), context.GP64(), context.GP64()
	context.Load(context.Param("steps"), step)
	context.Load(context.Param("n"), left)
	context.Label(label + "Step")
	context.MOVQ(Mem{Base: step, Disp: opFn}, fn)
	context.MOVQ(Mem{Base: step, Disp: opAt}, from)
	// A number for all lanes, unless the operand lies side by side.
	context.TESTB(Imm(1), fn.As8())
	context.JNZ(LabelRef(label + "Apart"))
	own := context.GP64()
	context.MOVQ(Mem{Base: step, Disp: opRow}, own)
	context.ANDQ(f.row, own)
	context.VBROADCASTSS(Mem{Base: from, Index: own, Scale: 1}, y)
	f.choose(label+"Same", fn, 0, len(chainOps), 0, func(i int) {
		f.compute(i, y, x...)
		context.JMP(LabelRef(label + "Done"))
	})
	context.Label(label + "Apart")
	context.TESTQ(from, from)
	context.JZ(LabelRef(label + "Kept"))
	back := context.GP64()
	context.MOVQ(Mem{Base: step, Disp: opRow}, back)
	context.IMULQ(f.row, back)
	context.ADDQ(f.at, from)
	context.ADDQ(back, from)
	context.Label(label + "Beside")
	f.choose(label+"Own", fn, 0, chainBinaries, 1, func(i int) {
		for j, v := range x {
			f.fetch(Mem{Base: from, Disp: j * f.bytes()}, y, masks[j])
			f.compute(i, y, v)
		}
		context.JMP(LabelRef(label + "Done"))
	})
	context.Label(label + "Kept")
	context.MOVQ(f.kept, from)
	context.JMP(LabelRef(label + "Beside"))
	context.Label(label + "Done")
	context.ADDQ(Imm(opSize), step)
	context.DECQ(left)
	context.JNZ(LabelRef(label + "Step"))
	for i, v := range x {
		f.store(f.finished(v), Mem{Base: f.dst, Index: f.at, Scale: 1, Disp: i * f.bytes()}, masks[i])
	}
}

// choose writes the code for one of the functions lo…hi−1, twice whose number,
// and one bit, is in fn.
func (f *chainWriter) choose(label string, fn reg.GPVirtual, lo, hi, bit int, do func(i int)) {
	if hi-lo == 1 {
		do(lo)
		return
	}
	middle := (lo + hi) / 2
	upper := fmt.Sprintf("%s%d", label, middle)
	context.CMPQ(fn, Imm(uint64(2*middle+bit)))
	context.JGE(LabelRef(upper))
	f.choose(label, fn, lo, middle, bit, do)
	context.Label(upper)
	f.choose(label, fn, middle, hi, bit, do)
}
