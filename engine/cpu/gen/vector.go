package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a set of vector instructions. Kernels that need the same of each are
// written once.
type isa struct {
	name  string // prefix of function names
	lanes int    // float32 values in a register
	wide  bool   // AVX-512: 32 registers, masks
	begun bool   // registers are written before a blend does, which avo takes for a read
}

var (
	avx2   = isa{"avx2", 8, false, false}
	avx512 = isa{"avx512", 16, true, false}
)

// register returns a new one.
func (s isa) register() reg.VecVirtual {
	if s.wide {
		return context.ZMM()
	}
	return context.YMM()
}

func (s isa) registers(n int) []reg.VecVirtual {
	out := make([]reg.VecVirtual, n)
	for i := range out {
		out[i] = s.register()
	}
	return out
}

func (s isa) bytes() int { return 4 * s.lanes }

// zero sets a register to zeros.
func (s isa) zero(x reg.VecVirtual) {
	if s.wide {
		context.VPXORD(x, x, x)
	} else {
		context.VXORPS(x, x, x)
	}
}

// constant sets all lanes to 32 bits.
func (s isa) constant(x reg.VecVirtual, bits uint32) {
	r := context.GP32()
	context.MOVL(U32(bits), r)
	low := context.XMM()
	context.VMOVD(r, low)
	context.VBROADCASTSS(low, x)
}

// canonical replaces NaNs in x by those in nan. scratch may change.
func (s isa) canonical(x, nan, scratch reg.VecVirtual) {
	const unordered = 3
	if s.wide {
		k := context.K()
		context.VCMPPS(Imm(unordered), x, x, k)
		context.VMOVAPS(nan, k, x)
		return
	}
	context.VCMPPS(Imm(unordered), x, x, scratch)
	context.VBLENDVPS(scratch, nan, x, x)
}

const canonicalNaN = 0x7fc00000

// function begins an assembly function that calls nothing.
func function(name, signature, doc string) {
	context.Function(name)
	context.Attributes(attr.NOSPLIT)
	context.SignatureExpr(signature)
	context.Pragma("noescape")
	context.Doc(doc)
}

// param loads an argument.
func param(name string) reg.GPVirtual {
	r := context.GP64()
	context.Load(context.Param(name), r)
	return r
}

// ret ends a function.
func ret() {
	context.VZEROUPPER()
	context.RET()
}
