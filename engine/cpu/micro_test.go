package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

// around returns a float32 whose biased exponent is e or a little more.
func around(r *rand.Rand, e int) float32 {
	bits := r.Uint32()&0x80000000 | uint32(e+r.IntN(3))<<23
	switch r.IntN(3) {
	case 0:
		bits |= 1
	case 1:
		bits |= 0x7fffff
	default:
		bits |= r.Uint32() & 0x7fffff
	}
	return math.Float32frombits(bits)
}

// Panels whose exponents are just safe give exactly what single fused
// multiply-adds give, also where sums cancel down to the subnormals.
func TestMicroKernelsEqualFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	small := 0
	for range 200_000 {
		ea := 1 + r.IntN(110)
		eb := max(121-ea-r.IntN(2)*30, 1) // as low as is safe, or lower
		const terms = 3
		a, b := make([]float64, terms*tileRows), make([]float64, terms*tileCols)
		leastA, leastB := uint32(math.MaxUint32), uint32(math.MaxUint32)
		for i := range a {
			x := around(r, ea)
			a[i], leastA = float64(x), min(leastA, magnitude(x))
		}
		for i := range b {
			x := around(r, eb)
			b[i], leastB = float64(x), min(leastB, magnitude(x))
		}
		var start [tileSize]float64
		for i := range start { // close to minus the first product
			start[i] = float64(float32(-a[i/tileCols] * b[i%tileCols]))
		}
		want := start
		for k := range terms {
			for i := range want {
				want[i] = float64(tensor.FMA(float32(a[k*tileRows+i/tileCols]), float32(b[k*tileCols+i%tileCols]), float32(want[i])))
			}
		}
		got := start
		if safe(floorOf(leastA), floorOf(leastB)) {
			quick(&got, a, b)
			if got != want {
				t.Fatalf("quick: %x, want %x from %x, a %x, b %x", got, want, start, a, b)
			}
			if math.Abs(got[0]) < 0x1p-126 {
				small++
			}
		}
		got = start
		careful(&got, a, b)
		if got != want {
			t.Fatalf("careful: %x, want %x from %x, a %x, b %x", got, want, start, a, b)
		}
	}
	if small < 1000 {
		t.Errorf("only %d safe sums were subnormal", small)
	}
}

func TestFloorBoundsExponents(t *testing.T) {
	for _, c := range []struct {
		x    float32
		want floor
	}{{0, noFloor}, {float32(math.Copysign(0, -1)), noFloor}, {0x1p-149, 0}, {1.5, 127}, {-1.5, 127}, {float32(math.Inf(1)), 254}} {
		if got := floorOf(magnitude(c.x)); got != c.want {
			t.Errorf("floor of %v is %d, want %d", c.x, got, c.want)
		}
	}
	if f := floorOf(magnitude(1)); f != 126 { // a bound, not the exponent itself
		t.Errorf("floor of 1 is %d", f)
	}
}

// chain is the definition of a contraction's element, over slices.
func chain(a, b []float32) float32 {
	acc := float32(0)
	for i, x := range a {
		acc = tensor.FMA(x, b[i], acc)
	}
	return acc
}

// Outputs of several pieces, with edges that fill no tile, on several threads.
func TestPiecesTile(t *testing.T) {
	for _, c := range [][3]int{{130, 40, 260}, {257, 300, 3}, {3, 300, 257}, {1, 1000, 70}, {70, 1000, 1}, {2, 9000, 2}, {33, 520, 65}} {
		m, k, n := c[0], c[1], c[2]
		r := rand.New(rand.NewPCG(1, uint64(m)))
		x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{m, k}))
		y := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n, k}))
		a, b := tensor.Of[float32](x), tensor.Of[float32](y)
		for _, s := range [][]float32{a, b} {
			for i := range s {
				s[i] = float32(r.NormFloat64())
			}
		}
		p := matmul(m, k, n)
		p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{n, k}, Dims: []tensor.Dim{axis(1), axis(2)}}
		got := tensor.Of[float32](runOne(t, 2, p, x, y))
		for i := range m {
			for j := range n {
				want := float32(0)
				for t := 0; t < k; t += 2 * tensor.KBlock { // at most three K-blocks
					lo, mid, hi := t, min(t+tensor.KBlock, k), min(t+2*tensor.KBlock, k)
					part := chain(a[i*k+lo:i*k+mid], b[j*k+lo:j*k+mid])
					if hi > mid {
						part += chain(a[i*k+mid:i*k+hi], b[j*k+mid:j*k+hi])
					}
					if t == 0 {
						want = part
					} else {
						want += part
					}
				}
				if got[i*n+j] != want {
					t.Fatalf("%v: element %d,%d is %x, want %x", c, i, j, got[i*n+j], want)
				}
			}
		}
	}
}
