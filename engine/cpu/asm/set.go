package asm

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

// KernelSet is the micro-kernels written in one set of instructions. One that is nil is
// not there.
type KernelSet struct {
	Name  string // as TALLY_CPU names it
	Has   bool   // processor and operating system support it
	Lanes int    // float32 values in a register

	// Contractions.
	GEMM         [][]MicroKernel // by rows − 1 and vectors − 1
	PrefetchGEMM [][]MicroKernel // the same, which prefetch b of the next tile into the second-level cache
	DotGEMM      []DotKernel     // by rows − 1
	AxpyGEMM     []AxpyKernel    // by rows − 1
	Int8         Int8Kernels
	Depthwise    DepthwiseKernel
	Blocks       map[quant.Type]BlockKernels // of quantised weights

	// Packing.
	Transpose8      TransposeKernel
	InterleaveBytes InterleaveKernel
	Gather          GatherKernel
	GatherStride2   GatherKernel // of every second element: lane i lies 2·i elements behind Src
	GatherReversed  GatherKernel // of elements backwards: lane i lies i elements before Src
	Deinterleave    DeinterleaveKernel
	MinMagnitude    ReduceKernel // the least Magnitude
	MaxSize         ReduceKernel // the greatest Size

	// Elementwise.
	Maps          map[tensor.Fn]MapKernel // of float32
	Int64Maps     map[tensor.Fn]MapKernel // of integers of 64 bits
	Casts         map[Cast]MapKernel
	Folds         map[tensor.Fn]FoldKernel // of rows of float32
	BroadcastRows BroadcastKernel          // of anything of 32 bits
	SumLanes      SumLanesKernel
	EltwiseChain  ChainKernel
}

// MR returns the rows of the greatest GEMM tile.
func (s *KernelSet) MR() int { return len(s.GEMM) }

// NRVectors returns the vectors in a row of the greatest GEMM tile.
func (s *KernelSet) NRVectors() int { return len(s.GEMM[0]) }

// MicroKernel advances the accumulators of some tiles, one at least, each of so many rows
// by so many vectors of columns:
//
//	c[i][j] = fma(a[i][t], b[t][j], c[i][j]) for each t < terms in turn
//
// Where terms are, tables of offsets say (an indirection, as XNNPACK's igemm has it):
// a[i][t] lies i·aRow + aAt[t] bytes behind a, b[t][0] bAt[t] behind b, and c[i][0] i·cRow
// behind c. Columns are contiguous. Unless add is set, accumulators begin at +0. The next
// tile has the same a; its b lies bNext bytes behind, its c beside.
type MicroKernel func(tiles, terms int, a *float32, aRow int, aAt *int, b *float32, bNext int, bAt *int, c *float32, cRow int, add bool)

// DotKernel advances one tile of DotColumns columns of which each is contiguous:
// b[t][j] lies 4·t + j·bColumn bytes behind b. a is packed: the rows of a term, term after
// term. terms is a positive multiple of DotTerms.
type DotKernel func(terms int, a, b *float32, bColumn int, c *float32, cRow int, add bool)

// AxpyKernel advances rows of so many vectors of accumulators, one at least, by AxpyTerms
// terms. c lies as that of a MicroKernel, a[i][t] i·aRow + t·aStep bytes behind a, and
// b[t][0] t·bRow behind b.
type AxpyKernel func(vectors int, a *float32, aRow, aStep int, b *float32, bRow int, c *float32, cRow int)

// AxpyTerms are the terms that an AxpyKernel takes.
const AxpyTerms = 4

// The columns of a DotKernel's tile, and the terms that it takes at a time.
const (
	DotColumns = 16
	DotTerms   = 16
)

// DepthwiseKernel computes some positions of a depthwise convolution from some taps, one of
// either at least. Its lanes are channels:
//
//	c[i][j] = fma(w[t][j], x[i][j] of tap t, c[i][j]) for each t < taps in turn, from +0
//
// w and c are contiguous vectors; x[i][0] of a tap lies i·xStep + at[t] bytes behind x.
// doubtful is not 0 if some c is a zero or a NaN.
type DepthwiseKernel func(positions, taps int, w, x *float32, xStep int, at *int, c *float32) (doubtful int)

// Int8Kernels are micro-kernels for integers of 8 bits, in sums of 32 bits that wrap. A
// word of an operand holds a group of terms: four bytes, signed in b and, if so said, in
// a, or two numbers of 16 bits.
type Int8Kernels struct {
	Group   int  // terms in a word
	SignedA bool // else unsigned
	GEMM    [][]MicroKernel
}

// MapKernel computes n elements, a multiple of the lanes, of what lies at x, y and z. How
// many operands it reads depends on the function; dst may be one of them.
type MapKernel func(dst, x, y, z *byte, n int)

// ChainKernel takes every element of x through n ops in turn, in registers, and stores what
// becomes of it: rows of so many lines of a width, contiguous but for a gap of so many
// bytes behind each row. What ops read element by element lies like dst, and so does x, but
// for xLine bytes more behind each line and xRow more behind each row. There is at least
// one of each. dst may be what an op reads, or x if it lies like dst. ops are those of a
// slice of EltwiseOp.
type ChainKernel func(rows, lines, width, gap, xLine, xRow int, dst, x *float32, ops *byte, n int)

// EltwiseOp is a function of the value in a chain and of an operand. The operand is an
// element for each element if one is added to the function's number, Row more of them behind
// each row. Otherwise it is one scalar for a whole row: a float32 behind that of the row
// before if Row is −1, the same if Row is 0. At nil stands for what OpKeep or OpSwap has kept of
// each element.
type EltwiseOp struct {
	Fn  int
	At  unsafe.Pointer
	Row int
}

// The functions of an EltwiseOp. OpReverseSub takes the value from the operand, and
// OpReverseDiv divides the operand by it. From OpNeg on they are of the value alone: they
// read one scalar and ignore it. OpKeep keeps the value as well; OpSwap exchanges it for the
// one that is kept.
const (
	OpAdd = 2 * iota
	OpSub
	OpReverseSub
	OpMul
	OpDiv
	OpMax
	OpMin
	OpReverseDiv
	OpNeg
	OpExp
	OpTanh
	OpErf
	OpKeep
	OpSwap
)

// Cast names the conversion of one type to another.
type Cast struct{ From, To tensor.DType }

// FoldKernel folds each row of width elements to one. There is at least one row.
type FoldKernel func(dst, x *float32, rows, width int)

// BroadcastKernel repeats each element of x over a row. There is at least one row.
type BroadcastKernel func(dst, x *float32, rows, width int)

// SumLanesKernel adds n terms, a positive multiple of tensor.Lanes, to the lanes of a sum.
type SumLanesKernel func(lanes *[tensor.Lanes]float32, x *float32, n int)

// TransposeKernel transposes: for each of eight rows r and eight times the blocks of terms t
//
//	dst[t][r] = src[rows[r] + t]
//
// dst[t][0] lies t·dstStep bytes behind dst.
type TransposeKernel func(blocks int, dst *float32, dstStep int, src *float32, rows *[TransposeRows]int)

// TransposeRows is how many rows a TransposeKernel takes.
const TransposeRows = 8

// InterleaveKernel interleaves bytes: for each group g of four lines, sixteen times the
// blocks of columns j, and i < 4
//
//	byte i of dst[g][j] = byte j of the line at src + at[4g+i], ^ flip
//
// dst[g][0] lies g·dstStep bytes behind dst; flip is a byte, four times.
type InterleaveKernel func(groups int, dst *float32, dstStep int, src *byte, at *int, blocks int, flip uint32)

// GatherKernel copies lines that are put together from segments of one register each:
//
//	dst[Dst … ] = src[at + Src … ]
//
// with zeros for lanes whose bit in Mask is not set; nothing is read for them. It copies the
// n segments so many times, dst moving on by dstStep bytes and at along a table by atStep. A
// segment is written in full, so that what follows it must be written after it.
type GatherKernel func(times int, dst *float32, dstStep int, src *float32, at *int, atStep int, segments *MaskedSegment, n int)

// DeinterleaveKernel copies as a GatherKernel does, twice as many lanes: even ones to dst,
// odd ones so many bytes apart from there.
type DeinterleaveKernel func(times int, dst *float32, dstStep, apart int, src *float32, at *int, atStep int, segments *MaskedSegment, n int)

// MaskedSegment is Src, Dst and Mask of a segment: element, element, bits by lane.
type MaskedSegment = [3]int

// ReduceKernel finds an extreme of the bits of values in whole registers, one at least.
type ReduceKernel func(vectors int, x *float32) uint32

// BlockKernels are those of a type of quantised weights in panels of PanelColumns columns. Package quantized says how the bytes of a
// panel lie.
type BlockKernels struct {
	Unpack UnpackKernel
	Tiles  []BlockTile // those of the most rows first, then of the most panels; that of one row and one panel last
}

// BlockTile is a micro-kernel of so many rows by so many panels of columns.
type BlockTile struct {
	Rows, Panels int
	Run          BlockKernel
}

// BlockKernel advances a tile of accumulators by the terms of some blocks, one at least, which it unpacks in registers:
//
//	c[i][j] = fma(x[i][t], w[t][j], c[i][j]) for each term t in turn
//
// w is where the first block of the first panel begins; that of the next panel lies panel bytes behind. x[i][t] lies 4·t + i·xRow
// bytes behind x, c[i][0] i·cRow behind c. Columns are contiguous. Unless add is set, accumulators begin at +0.
type BlockKernel func(blocks int, w *byte, panel int, x *float32, xRow int, c *float32, cRow int, add bool)

// UnpackKernel unpacks some blocks of a panel, one at least: dst[t][j] is term t of column j. dst[t][0] lies t·dstStep bytes behind dst.
type UnpackKernel func(blocks int, w *byte, dst *float32, dstStep int)

// PanelColumns is how many columns a panel of quantised weights has.
const PanelColumns = 16

// HalvesBlock is the floats of 16 bits of one column that a panel has for a block.
const HalvesBlock = 8

// Magnitude orders float32 values by size: zeros last, then upwards from the
// least subnormal.
func Magnitude(x float32) uint32 { return math.Float32bits(x)<<1 - 1 }

// Size orders float32 values by size, zeros first; what is no number comes after
// InfiniteSize.
func Size(x float32) uint32 { return math.Float32bits(x) << 1 }

// InfiniteSize is the size of infinities.
const InfiniteSize = 0xff << 24

// Sets returns what this machine supports, the fastest first, Generic last.
func Sets() []*KernelSet {
	var out []*KernelSet
	for _, s := range append(sets, Generic) {
		if s.Has {
			out = append(out, s)
		}
	}
	return out
}

// Variable names the environment variable that forces a set.
const Variable = "TALLY_CPU"

// Chosen returns the set to use: the fastest, unless TALLY_CPU names another.
// One that the machine does not have is an error, and Generic comes with it.
var Chosen = sync.OnceValues(func() (*KernelSet, error) { return choose(os.Getenv(Variable)) })

func choose(name string) (*KernelSet, error) {
	var names []string
	for _, s := range Sets() {
		if name == "" || name == s.Name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Generic, fmt.Errorf("%s=%s: this machine has %s", Variable, name, strings.Join(names, ", "))
}
