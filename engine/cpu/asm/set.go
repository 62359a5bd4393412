package asm

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// Set is the kernels written in one set of instructions. A kernel that is nil is
// not there.
type Set struct {
	Name            string   // as TALLY_CPU names it
	Has             bool     // processor and operating system support it
	Lanes           int      // float32 values in a register
	Tiles           [][]Tile // by rows − 1 and vectors − 1
	Far             [][]Tile // the same, which fetch b of the next tile into the second cache
	Turned          []Turned // by rows − 1
	Swept           []Swept  // by rows − 1
	Bytes           Bytes
	Turn            Turn
	Weave           Weave
	Patch           Patch
	Sift            Patch // of every second element: lane i of src lies 2·i elements on
	Back            Patch // of elements backwards: lane i of src lies i elements before
	Unzip           Unzip
	Least, Greatest Reduce

	Maps   map[tensor.Fn]Map // of float32
	Wholes map[tensor.Fn]Map // of integers of 64 bits
	Casts  map[Cast]Map
	Folds  map[tensor.Fn]Fold // of float32
	Spread Spread             // of anything of 32 bits
	Take   Take
	Flow   Flow
}

// Rows returns the rows of the greatest tile.
func (s *Set) Rows() int { return len(s.Tiles) }

// Vectors returns the vectors in a row of the greatest tile.
func (s *Set) Vectors() int { return len(s.Tiles[0]) }

// Tile advances tiles of chains, one at least, each so many rows by so many
// vectors of columns:
//
//	c[i][j] = fma(a[i][t], b[t][j], c[i][j]) for each t < terms in turn
//
// a[i][t] lies i·aRow + aAt[t] bytes behind a, b[t][0] bAt[t] behind b, and
// c[i][0] i·cRow behind c; columns lie side by side. Unless add is set the
// chains begin at +0. The next tile has the same a; its b lies bNext behind, its
// c beside.
type Tile func(tiles, terms int, a *float32, aRow int, aAt *int, b *float32, bNext int, bAt *int, c *float32, cRow int, add bool)

// Turned advances one tile of TurnedColumns columns of which each lies in one
// piece: b[t][j] lies 4·t + j·bColumn bytes behind b, and a is packed, the rows of
// a term side by side and term after term. It takes a positive multiple of
// TurnedTerms.
type Turned func(terms int, a, b *float32, bColumn int, c *float32, cRow int, add bool)

// Swept advances rows of so many vectors of chains, one at least, by SweptTerms
// terms. c lies as that of a Tile, a[i][t] i·aRow + t·aStep bytes behind a, and
// b[t][0] t·bRow behind b.
type Swept func(vectors int, a *float32, aRow, aStep int, b *float32, bRow int, c *float32, cRow int)

// SweptTerms are the terms that a sweep takes at a time.
const SweptTerms = 4

// The columns of a turned tile, and the terms that it takes at a time.
const (
	TurnedColumns = 16
	TurnedTerms   = 16
)

// Bytes are tiles for integers of 8 bits, in sums of 32 bits that wrap. A word of
// an operand holds as many terms as a group: four bytes, signed in b and, if so
// said, in a, or two numbers of 16 bits.
type Bytes struct {
	Group   int
	SignedA bool // else unsigned
	Tiles   [][]Tile
}

// Map computes n elements, a multiple of the lanes, of what lies at x, y and z.
// How many operands it reads depends on the function; dst may be one of them.
type Map func(dst, x, y, z *byte, n int)

// Flow takes every element of x through n steps in turn, and stores what becomes of
// it: rows of so many lines of a width, side by side but for a gap of so many bytes
// behind each row. What steps read side by side lies like dst, and so does x, but for
// xLine bytes more behind each line and xRow more behind each row. There is at least
// one of each; dst may be what a step reads, or x if it lies like dst. steps are those
// of a slice of Step.
type Flow func(rows, lines, width, gap, xLine, xRow int, dst, x *float32, steps *byte, n int)

// Step is a function of what flows and of an operand. That lies side by side, if
// one is added to the function's number; otherwise it is one number for a whole row,
// which lies a float32 behind that of the row before if Row is −1, and in the same
// place if it is 0.
type Step struct {
	Fn  int
	At  unsafe.Pointer
	Row int
}

// The functions of a step. FlowLess takes what flows from the operand.
const (
	FlowAdd = 2 * iota
	FlowSub
	FlowLess
	FlowMul
	FlowDiv
	FlowMax
	FlowMin
)

// Cast names the conversion of one type to another.
type Cast struct{ From, To tensor.DType }

// Fold folds each row of so many elements to one. There is at least one row.
type Fold func(dst, x *float32, rows, width int)

// Spread repeats each element of x over a row. There is at least one row.
type Spread func(dst, x *float32, rows, width int)

// Take adds n terms, a positive multiple of tensor.Lanes, to the lanes of a sum.
type Take func(lanes *[tensor.Lanes]float32, x *float32, n int)

// Turn transposes: for each of eight rows r and eight times the blocks of terms t
//
//	dst[t][r] = src[rows[r] + t]
//
// dst[t][0] lies t·dstStep bytes behind dst.
type Turn func(blocks int, dst *float32, dstStep int, src *float32, rows *[TurnRows]int)

// TurnRows is how many rows Turn takes at a time.
const TurnRows = 8

// Weave interleaves bytes: for each group g of four lines, sixteen times the
// blocks of columns j, and i < 4
//
//	byte i of dst[g][j] = byte j of the line at src + at[4g+i], ^ flip
//
// dst[g][0] lies g·dstStep bytes behind dst; flip is a byte, four times.
type Weave func(groups int, dst *float32, dstStep int, src *byte, at *int, blocks int, flip uint32)

// Patch copies lines that are put together from segments of so many lanes:
//
//	dst[Dst … ] = src[at + Src … ]
//
// with zeros for lanes whose bit in Mask is not set; nothing is read for them.
// It copies the n segments so many times, dst moving on by dstStep bytes and at
// along a table by atStep. A segment is written in full, so that what follows it
// must be written after it.
type Patch func(times int, dst *float32, dstStep int, src *float32, at *int, atStep int, segments *Segment, n int)

// Unzip copies like Patch, of twice as many lanes: those with even numbers to dst,
// and the others so many bytes apart from there.
type Unzip func(times int, dst *float32, dstStep, apart int, src *float32, at *int, atStep int, segments *Segment, n int)

// Segment is Src, Dst and Mask of a segment.
type Segment = [3]int

// Reduce finds the least Magnitude or the greatest Size of values in whole
// registers, one at least.
type Reduce func(vectors int, x *float32) uint32

// Magnitude orders float32 values by size: zeros last, then upwards from the
// least subnormal.
func Magnitude(x float32) uint32 { return math.Float32bits(x)<<1 - 1 }

// Size orders float32 values by size, zeros first; what is no number comes after
// InfiniteSize.
func Size(x float32) uint32 { return math.Float32bits(x) << 1 }

// InfiniteSize is the size of infinities.
const InfiniteSize = 0xff << 24

// Sets returns what this machine supports, the fastest first, Generic last.
func Sets() []*Set {
	var out []*Set
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
var Chosen = sync.OnceValues(func() (*Set, error) { return choose(os.Getenv(Variable)) })

func choose(name string) (*Set, error) {
	var names []string
	for _, s := range Sets() {
		if name == "" || name == s.Name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Generic, fmt.Errorf("%s=%s: this machine has %s", Variable, name, strings.Join(names, ", "))
}
