package asm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// edges are values whose products and sums are hard: double rounding, ties,
// subnormals, zeros of either sign, the ends of the range.
var edges = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 1 + 0x1p-12, 1 + 0x1p-23, 0x1p-12, 0x1.000002p-12, 0x1.fffffcp-13,
	0x1p-20, -0x1p-40, 0x1p-60, 0x1p-75, -0x1p-75, 0x1p-100, -0x1p-149, 0x1p-149, 0x1p-126, 0x1.fffffcp-127,
	math.MaxFloat32, -math.MaxFloat32, 4095 << 12, 1<<24 + 2048<<1,
}

func value(r *rand.Rand, wild bool) float32 {
	switch n := r.IntN(20); {
	case n < 10:
		return float32(r.NormFloat64())
	case n < 18:
		return edges[r.IntN(len(edges))]
	case !wild:
		return float32(r.IntN(9) - 4)
	}
	return []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(3)]
}

func values(r *rand.Rand, n int, wild bool) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = tensor.CanonNaN(value(r, wild))
	}
	return out
}

// Every tile of every set gives the chains that tensor.FMA gives, wherever its
// operands lie, and writes nothing else.
func TestMicroKernelsEqualFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range Sets() {
		for kind, tiles := range map[string][][]MicroKernel{"": s.GEMM, "far ": s.PrefetchGEMM} { // order: each case stands alone
			for i := range tiles {
				for j, run := range tiles[i] {
					rows, cols := i+1, (j+1)*s.Lanes
					t.Run(fmt.Sprintf("%s/%s%dx%d", s.Name, kind, rows, cols), func(t *testing.T) {
						for round := range 60 {
							terms := []int{0, 1, 2, 3, 4, 5, 8, 37}[r.IntN(8)]
							if round == 0 {
								terms = 300
							}
							checkTile(t, r, run, rows, cols, terms, round%3 == 0, round%2 == 0)
						}
					})
				}
			}
		}
	}
}

func checkTile(t *testing.T, r *rand.Rand, run MicroKernel, rows, cols, terms int, wild, add bool) {
	t.Helper()
	aRow := 1 + r.IntN(40)
	tiles, bNext := 1+r.IntN(3), r.IntN(2*cols)
	cRow := tiles*cols + r.IntN(2)*7
	a, b := values(r, rows*aRow+100, wild), values(r, 24*cols, wild)
	aAt, bAt := make([]int, terms+1), make([]int, terms+1) // one more, so that there is one
	for t := range bAt {
		aAt[t], bAt[t] = r.IntN(100)*size, r.IntN(19*cols)*size
	}
	c := values(r, rows*cRow, wild)
	want := append([]float32(nil), c...)
	for i := range rows {
		for j := range tiles * cols {
			acc := float32(0)
			if add {
				acc = c[i*cRow+j]
			}
			for k := range terms {
				acc = tensor.FMA(a[i*aRow+aAt[k]/size], b[j/cols*bNext+bAt[k]/size+j%cols], acc)
			}
			want[i*cRow+j] = tensor.CanonNaN(acc)
		}
	}
	run(tiles, terms, &a[0], aRow*size, &aAt[0], &b[0], bNext*size, &bAt[0], &c[0], cRow*size, add)
	compare(t, fmt.Sprintf("%d tiles, %d terms, add %v", tiles, terms, add), c, want, cRow)
}

const size = int(unsafe.Sizeof(float32(0)))

// compare looks at the bits of rows of so many values.
func compare(t *testing.T, name string, got, want []float32, row int) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d,%d is %#x, want %#x", name, i/row, i%row, math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

// Turned tiles give the same chains of columns that lie anywhere.
func TestDotKernelsEqualFMA(t *testing.T) {
	const cols = DotColumns
	r := rand.New(rand.NewPCG(1, 4))
	for _, s := range Sets() {
		for i, run := range s.DotGEMM {
			rows := i + 1
			for round := range 60 {
				terms := DotTerms * (1 + r.IntN(4))
				column, cRow, add := terms+r.IntN(9), cols+r.IntN(2)*7, round%2 == 0
				a, b := values(r, rows*terms, round%3 == 0), values(r, cols*column, round%3 == 0)
				c := values(r, rows*cRow, true)
				want := append([]float32(nil), c...)
				for i := range rows {
					for j := range cols {
						acc := float32(0)
						if add {
							acc = c[i*cRow+j]
						}
						for k := range terms {
							acc = tensor.FMA(a[k*rows+i], b[j*column+k], acc)
						}
						want[i*cRow+j] = tensor.CanonNaN(acc)
					}
				}
				run(terms, &a[0], &b[0], column*size, &c[0], cRow*size, add)
				compare(t, fmt.Sprintf("%s, %d rows, %d terms, add %v", s.Name, rows, terms, add), c, want, cRow)
			}
		}
	}
}

// Sweeps give the same chains along rows of any length.
func TestAxpyKernelsEqualFMA(t *testing.T) {
	const terms = AxpyTerms
	r := rand.New(rand.NewPCG(1, 5))
	for _, s := range Sets() {
		for i, run := range s.AxpyGEMM {
			rows := i + 1
			for round := range 60 {
				vectors, wild := 1+r.IntN(5), round%3 == 0
				cols := vectors * s.Lanes
				aRow, aStep := 1, rows // packed
				if r.IntN(2) == 0 {
					aRow, aStep = terms+3, 1 // in place
				}
				row, cRow := cols+r.IntN(9), cols+r.IntN(2)*7
				a, b, c := values(r, rows*aRow+terms*aStep, wild), values(r, terms*row, wild), values(r, rows*cRow, wild)
				want := append([]float32(nil), c...)
				for i := range rows {
					for j := range cols {
						acc := c[i*cRow+j]
						for k := range terms {
							acc = tensor.FMA(a[i*aRow+k*aStep], b[k*row+j], acc)
						}
						want[i*cRow+j] = tensor.CanonNaN(acc)
					}
				}
				run(vectors, &a[0], aRow*size, aStep*size, &b[0], row*size, &c[0], cRow*size)
				compare(t, fmt.Sprintf("%s, %d rows, %d vectors", s.Name, rows, vectors), c, want, cRow)
			}
		}
	}
}

func BenchmarkMicroKernel(b *testing.B) {
	for _, s := range Sets() {
		if len(s.GEMM) == 0 {
			continue
		}
		rows := len(s.GEMM)
		for j, run := range s.GEMM[rows-1] {
			cols := (j + 1) * s.Lanes
			b.Run(fmt.Sprintf("%s/%dx%d", s.Name, rows, cols), func(b *testing.B) {
				const terms = 256
				x, y, z := make([]float32, rows*terms), make([]float32, cols*terms), make([]float32, rows*cols)
				aAt, bAt := make([]int, terms), make([]int, terms)
				for t := range terms {
					aAt[t], bAt[t] = 4*rows*t, 4*cols*t
				}
				b.ReportAllocs()
				for b.Loop() {
					run(1, terms, &x[0], 4, &aAt[0], &y[0], 0, &bAt[0], &z[0], 4*cols, true)
				}
				b.ReportMetric(2*float64(rows*cols*terms)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// Tiles of bytes are exact, at the ends of the range too.
func TestInt8KernelsEqualSums(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	sets := Sets()
	if first := *sets[0]; first.Int8.Group == 4 { // the kernels that quads replace
		first.Int8 = Int8Kernels{Group: 2, GEMM: pairGEMM}
		sets = append(sets, &first)
	}
	for _, s := range sets {
		for i := range s.Int8.GEMM {
			for j, run := range s.Int8.GEMM[i] {
				for round := range 20 {
					checkByteTile(t, r, s.Int8, run, i+1, (j+1)*s.Lanes, r.IntN(10), round%2 == 0)
				}
			}
		}
	}
}

func checkByteTile(t *testing.T, r *rand.Rand, kind Int8Kernels, run MicroKernel, rows, cols, terms int, add bool) {
	t.Helper()
	group := kind.Group
	draw := func(least, n int) int {
		if r.IntN(3) == 0 {
			return least + r.IntN(2)*(n-1)
		}
		return least + r.IntN(n)
	}
	pack := func(least, n int) (word uint32, values []int) {
		bits := 32 / group
		for i := range group {
			v := draw(least, n)
			word |= uint32(v) & (1<<bits - 1) << (bits * i)
			values = append(values, v)
		}
		return word, values
	}
	a, b := make([]uint32, rows*terms+1), make([]uint32, cols*terms+cols)
	c, aAt, bAt := make([]uint32, rows*cols), make([]int, terms+1), make([]int, terms+1)
	for i := range c {
		c[i] = r.Uint32()
	}
	want := append([]uint32(nil), c...)
	if !add {
		clear(want)
	}
	for k := range terms {
		aAt[k], bAt[k] = 4*k*rows, 4*k*cols
		av, bv := make([][]int, rows), make([][]int, cols)
		for i := range av {
			if group == 4 {
				least := 0
				if kind.SignedA {
					least = -128
				}
				a[k*rows+i], av[i] = pack(least, 256)
			} else {
				a[k*rows+i], av[i] = pack(-128, 384)
			}
		}
		for j := range bv {
			if group == 4 {
				b[k*cols+j], bv[j] = pack(-128, 256)
			} else {
				b[k*cols+j], bv[j] = pack(-128, 384)
			}
			for i := range av {
				for g := range group {
					want[i*cols+j] += uint32(av[i][g] * bv[j][g])
				}
			}
		}
	}
	float := func(x []uint32) *float32 { return (*float32)(unsafe.Pointer(&x[0])) }
	run(1, terms, float(a), 4, &aAt[0], float(b), 0, &bAt[0], float(c), 4*cols, add)
	for i := range want {
		if c[i] != want[i] {
			t.Fatalf("%d×%d, %d terms, add %v: element %d is %#x, want %#x", rows, cols, terms, add, i, c[i], want[i])
		}
	}
}
