package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

// Lengths around the ends of lanes and K-blocks.
var edges = []int{0, 1, 31, 32, 33, 4095, 4096, 4097, 8191, 8192, 8193, 12_289}

// hostile draws values that show whether a term was taken that is none: 0·∞ is NaN, and −0 + 0 is 0.
func hostile(r *rand.Rand, s Shape) *Tensor {
	x := random(r, s)
	for i := range x.Len() {
		if odd := r.IntN(12); odd < 6 {
			x.Set(i, []Word{F32(float32(math.Inf(1))), F32(float32(math.Inf(-1))), F32(float32(math.NaN())), 0x80000000, 1, 0x80000001}[odd])
		}
	}
	return x
}

// negligible draws products that underflow to −0 for the most part.
func negligible(r *rand.Rand, s Shape) *Tensor {
	x := random(r, s)
	for i := range x.Len() {
		x.Set(i, []Word{0x80000000, 0x80000001, 1, 0}[r.IntN(4)])
	}
	return x
}

// banded is x [rows, n] times y [n, 2], of terms in a band.
func banded(rows, n int, band *Band) *Primitive {
	p := matmul(rows, n, 2)
	p.Band = band
	return p
}

// row returns row i of p's output.
func row(t *testing.T, p *Primitive, i int, args ...*Tensor) []Word {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	c := NewCell(p, func(arg, i int) (Word, error) { return args[arg].At(i), nil })
	n := p.Shape.Elements() / p.Shape[0]
	out := make([]Word, n)
	for j := range out {
		if err := c.Seek(i*n + j); err != nil {
			t.Fatal(err)
		}
		w, err := c.Value()
		if err != nil {
			t.Fatal(err)
		}
		out[j] = w
		s, err := c.Start() // and block by block, as a dispute computes it
		for b := range p.Blocks() {
			lo, hi := p.Block(b)
			if err != nil || len(s) != c.StateLen(lo) {
				t.Fatalf("state of %d words before block %d, want %d (%v)", len(s), b, c.StateLen(lo), err)
			}
			s, err = c.Run(s, lo, hi)
		}
		if alone, err := c.Finish(s); err != nil || alone != w {
			t.Fatalf("%v: %#x by blocks, %#x at once (%v)", p.Fn, alone, w, err)
		}
	}
	return out
}

// An element is the same whatever lies beyond its terms: as if the axis ended there.
func TestTermsBeyondABandAreNone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 12_300
	for name, draw := range map[string]func(*rand.Rand, Shape) *Tensor{"hostile": hostile, "negligible": negligible, "usual": random} {
		x, y := draw(r, Shape{1, n}), draw(r, Shape{n, 2})
		for _, to := range edges {
			got := row(t, banded(1, n, &Band{To: Dim{Offset: to}}), 0, x, y)
			if want := row(t, banded(1, to, nil), 0, head(x, Shape{1, to}), head(y, Shape{to, 2})); !slices.Equal(got, want) {
				t.Fatalf("%s values, the first %d terms: %x, and %x alone", name, to, got, want)
			}
		}
	}
}

// head returns the first elements of x, in another shape.
func head(x *Tensor, s Shape) *Tensor {
	out := Must(New(x.Type, s))
	for i := range out.Len() {
		out.Set(i, x.At(i))
	}
	return out
}

// What comes before a window changes nothing, and the rest keeps its K-blocks: as if the operand began later, outside of which
// terms do not count either.
func TestTermsBeforeABandDoNotCount(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n = 12_300
	for name, draw := range map[string]func(*rand.Rand, Shape) *Tensor{"hostile": hostile, "negligible": negligible, "usual": random} {
		x, y := draw(r, Shape{1, n}), draw(r, Shape{n, 2})
		for _, from := range edges {
			later := banded(1, n, nil)
			later.Args[0].Shape = Shape{1, n - from}
			later.Args[0].Dims[1].Offset = -from
			rest := Must(New(Float32, Shape{1, n - from}))
			for i := range rest.Len() {
				rest.Set(i, x.At(from+i))
			}
			got := row(t, banded(1, n, &Band{From: Dim{Offset: from}, To: Dim{Offset: n}}), 0, x, y)
			if want := row(t, later, 0, rest, y); !slices.Equal(got, want) {
				t.Fatalf("%s values, from term %d: %x, and %x of the rest", name, from, got, want)
			}
		}
	}
}

// Each row has its own terms: those of a causal window.
func TestBandsFollowTheRow(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, n, past, window = 9, 40, 31, 7
	band := &Band{
		From: Dim{Offset: past + 1 - window, Terms: []Term{{0, 1}}},
		To:   Dim{Offset: past + 1, Terms: []Term{{0, 1}}},
	}
	x, y := hostile(r, Shape{rows, n}), hostile(r, Shape{n, 2})
	p := banded(rows, n, band)
	for i := range rows {
		alone := banded(rows, n, &Band{From: Dim{Offset: past + 1 - window + i}, To: Dim{Offset: past + 1 + i}})
		if got, want := row(t, p, i, x, y), row(t, alone, i, x, y); !slices.Equal(got, want) {
			t.Fatalf("row %d: %x, want %x", i, got, want)
		}
	}
}

func TestBandsAreEncoded(t *testing.T) {
	band := &Band{From: Dim{Offset: -3, Terms: []Term{{0, 1}}}, To: Dim{Offset: 5, Terms: []Term{{0, 1}}}}
	var got *Primitive
	err := canon.Decode(canon.Encode(banded(4, 9, band).Encode), func(d *canon.Decoder) { got = DecodePrimitive(d) })
	if err != nil || fmt.Sprint(*got.Band) != fmt.Sprint(*band) || got.Fn != Dot {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBandsAreChecked(t *testing.T) {
	for says, change := range map[string]func(p *Primitive){
		"dot over [3 3] has a band":       func(p *Primitive) { p.Fold = []int{3, 3} },
		"sum over [9] has a band":         func(p *Primitive) { p.Fn, p.Args = FoldSum, p.Args[:1] },
		"follows axis 2 of 2 output axes": func(p *Primitive) { p.Band.To.Terms = []Term{{2, 1}} },
		"read through operand 1":          func(p *Primitive) { p.Band.From.Via = 1 },
		"band: offset ":                   func(p *Primitive) { p.Band.To.Offset = MaxDim + 1 },
		"band: step ":                     func(p *Primitive) { p.Band.From.Terms = []Term{{0, -MaxDim - 1}} },
	} {
		p := banded(4, 9, &Band{To: Dim{Offset: 3}})
		change(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
