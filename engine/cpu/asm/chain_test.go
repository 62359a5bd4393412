package asm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

var flowFns = map[int]func(x, y float32) float32{
	OpAdd:        func(x, y float32) float32 { return tensor.Add.Float(x, y) },
	OpSub:        func(x, y float32) float32 { return tensor.Sub.Float(x, y) },
	OpReverseSub: func(x, y float32) float32 { return tensor.Sub.Float(y, x) },
	OpMul:        func(x, y float32) float32 { return tensor.Mul.Float(x, y) },
	OpDiv:        func(x, y float32) float32 { return tensor.Div.Float(x, y) },
	OpMax:        func(x, y float32) float32 { return tensor.Max.Float(x, y) },
	OpMin:        func(x, y float32) float32 { return tensor.Min.Float(x, y) },
	OpReverseDiv: func(x, y float32) float32 { return tensor.Div.Float(y, x) },
	OpNeg:        func(x, _ float32) float32 { return tensor.Neg.Float(x, 0) },
	OpExp:        func(x, _ float32) float32 { return tensor.ExpF.Float(x, 0) },
	OpTanh:       func(x, _ float32) float32 { return tensor.TanhF.Float(x, 0) },
	OpErf:        func(x, _ float32) float32 { return tensor.ErfF.Float(x, 0) },
}

// A chain computes op after op what package tensor does, in every set,
// whatever its operands and its size, and writes nothing else.
func TestEltwiseChain(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, s := range Sets() {
		if s.EltwiseChain == nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			for range 3000 {
				checkChain(t, r, s.EltwiseChain)
			}
		})
	}
}

func checkChain(t *testing.T, r *rand.Rand, run ChainKernel) {
	t.Helper()
	rows, lines, width, gap := 1+r.IntN(4), 1+r.IntN(2)*r.IntN(3), 1+r.IntN(300), r.IntN(2)*r.IntN(30)
	pitch := lines*width + gap
	n := rows * pitch
	dst := values(r, n+20, true)
	x, xLine, xRow := dst[3:][:n], 0, 0 // in place
	if r.IntN(2) == 0 {
		xLine, xRow = r.IntN(20), r.IntN(20)
		x = values(r, n+rows*(lines*xLine+xRow), true)
	}
	want := append([]float32(nil), dst...)
	for line := range rows * lines {
		at := line*width + line/lines*gap
		copy(want[3+at:][:width], x[at+line*xLine+line/lines*xRow:])
	}
	var ops []EltwiseOp
	var kept []float32
	nothing := float32(0)
	for range 1 + r.IntN(8) {
		fn := 2 * r.IntN(len(flowFns)+2)
		switch {
		case fn == OpKeep || fn >= OpKeep && kept == nil:
			kept = append([]float32(nil), want[3:]...)
			ops = append(ops, EltwiseOp{Fn: OpKeep, At: unsafe.Pointer(&nothing)})
			continue
		case fn == OpSwap:
			for i := range n {
				if i%pitch < lines*width {
					want[3+i], kept[i] = kept[i], want[3+i]
				}
			}
			ops = append(ops, EltwiseOp{Fn: OpSwap, At: unsafe.Pointer(&nothing)})
			continue
		case fn < OpNeg && kept != nil && r.IntN(2) == 0:
			for i := range n {
				if i%pitch < lines*width {
					want[3+i] = tensor.CanonNaN(flowFns[fn](want[3+i], kept[i]))
				}
			}
			ops = append(ops, EltwiseOp{Fn: fn + 1})
			continue
		}
		most := map[int]int{0: 1, -1: rows}
		op := EltwiseOp{Fn: fn, Row: -r.IntN(2)}
		own := values(r, most[op.Row], true)
		if fn < OpNeg && r.IntN(2) == 0 {
			op.Fn++
			op.Row = []int{0, -pitch, 3}[r.IntN(3)]
			own = values(r, n+3*rows, true)
		}
		op.At = unsafe.Pointer(&own[0])
		ops = append(ops, op)
		for i := range n {
			if i%pitch >= lines*width {
				continue
			}
			at := i / pitch & op.Row
			if op.Fn%2 == 1 {
				at = i + i/pitch*op.Row
			}
			y := own[at]
			want[3+i] = tensor.CanonNaN(flowFns[fn](want[3+i], y))
		}
	}
	for i := range n { // also what only OpKeep and OpSwap have passed on
		if i%pitch < lines*width {
			want[3+i] = tensor.CanonNaN(want[3+i])
		}
	}
	run(rows, lines, width, gap*size, xLine*size, xRow*size, &dst[3], &x[0], (*byte)(unsafe.Pointer(&ops[0])), len(ops))
	for i := range want {
		if math.Float32bits(dst[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%d×%d×%d, %d ops, element %d: %v, want %v", rows, lines, width, len(ops), i-3, dst[i], want[i])
		}
	}
}

// Zeros of both signs, NaNs of every kind, infinities and subnormals meet each
// other in each function.
func TestEltwiseChainOfHardValues(t *testing.T) {
	bits := []uint32{
		0, 1 << 31, 1, 1<<31 + 1, 0x7fffff, 0x807fffff, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
		0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7fc12345, 0x7f800001, 0xffa00000, 0x7fbfffff,
	}
	n := len(bits)
	const repeats = 8
	width := repeats * n
	x, y := make([]float32, n*width), make([]float32, n*width)
	for i := range x {
		x[i], y[i] = math.Float32frombits(bits[i%n]), math.Float32frombits(bits[i/width])
	}
	for _, s := range Sets() {
		for fn, f := range flowFns { // order: each case stands alone
			for beside, op := range []EltwiseOp{{fn, unsafe.Pointer(&x[0]), -1}, {fn + 1, unsafe.Pointer(&y[0]), 0}} {
				if op.Fn > OpNeg && beside == 1 {
					continue // it takes no operand
				}
				dst := make([]float32, n*width)
				s.EltwiseChain(n, 1, width, 0, 0, 0, &dst[0], &x[0], (*byte)(unsafe.Pointer(&op)), 1)
				for i := range dst {
					if want := tensor.CanonNaN(f(x[i], y[i])); math.Float32bits(dst[i]) != math.Float32bits(want) {
						t.Errorf("%s, function %d: %#x, %#x make %v, want %v", s.Name, fn+beside, bits[i%n], bits[i/width], dst[i], want)
					}
				}
			}
		}
	}
}

// Rows of a number each, as many as a fusion takes together.
func BenchmarkEltwiseChain(b *testing.B) {
	const block = 1024
	r := rand.New(rand.NewPCG(3, 9))
	x, y, numbers := values(r, block, false), values(r, block, false), values(r, block, false)
	for _, s := range Sets() {
		for _, width := range []int{49, 196, 784} {
			b.Run(fmt.Sprintf("%s/%d", s.Name, width), func(b *testing.B) {
				b.ReportAllocs()
				rows := block / width
				b.SetBytes(int64(4 * rows * width))
				var ops []EltwiseOp
				for _, fn := range []int{OpSub, OpMul, OpMul, OpAdd, OpAdd + 1, OpMax} {
					op := EltwiseOp{fn, unsafe.Pointer(&numbers[0]), -1}
					if fn%2 == 1 {
						op.At, op.Row = unsafe.Pointer(&y[0]), 0
					}
					ops = append(ops, op)
				}
				for b.Loop() {
					s.EltwiseChain(rows, 1, width, 0, 0, 0, &x[0], &x[0], (*byte)(unsafe.Pointer(&ops[0])), len(ops))
				}
			})
		}
	}
}

// Functions of one number, and x/(1 + exp(−x)).
func BenchmarkChainFunctions(b *testing.B) {
	const n = 1024
	r := rand.New(rand.NewPCG(3, 9))
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	one := float32(1)
	for _, s := range Sets() {
		if s.EltwiseChain == nil {
			continue
		}
		for name, ops := range map[string][]EltwiseOp{
			"swish": {{OpNeg, unsafe.Pointer(&one), 0}, {OpExp, unsafe.Pointer(&one), 0}, {OpAdd, unsafe.Pointer(&one), 0}, {OpReverseDiv, unsafe.Pointer(&one), 0}, {OpMul + 1, unsafe.Pointer(&x[0]), 0}},
			"gelu": {
				{OpKeep, unsafe.Pointer(&one), 0}, {OpMul, unsafe.Pointer(&one), 0}, {OpSwap, unsafe.Pointer(&one), 0}, {OpDiv, unsafe.Pointer(&one), 0},
				{OpErf, unsafe.Pointer(&one), 0}, {OpAdd, unsafe.Pointer(&one), 0}, {OpMul + 1, nil, 0},
			},
			"swish kept": {{OpKeep, unsafe.Pointer(&one), 0}, {OpNeg, unsafe.Pointer(&one), 0}, {OpExp, unsafe.Pointer(&one), 0}, {OpAdd, unsafe.Pointer(&one), 0}, {OpReverseDiv, unsafe.Pointer(&one), 0}, {OpMul + 1, nil, 0}},
			"exp":        {{OpExp, unsafe.Pointer(&one), 0}}, "tanh": {{OpTanh, unsafe.Pointer(&one), 0}}, "erf": {{OpErf, unsafe.Pointer(&one), 0}},
		} {
			b.Run(s.Name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					s.EltwiseChain(1, 1, n, 0, 0, 0, &y[0], &x[0], (*byte)(unsafe.Pointer(&ops[0])), len(ops))
				}
			})
		}
	}
}
