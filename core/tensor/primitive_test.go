package tensor

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
)

// affine is a coordinate that equals one axis.
func affine(axis int) Dim { return Dim{Terms: []Term{{axis, 1}}} }

func dims(axes ...int) []Dim {
	out := make([]Dim, len(axes))
	for i, a := range axes {
		out[i] = affine(a)
	}
	return out
}

// matmul is the primitive of an [m k]·[k n] product.
func matmul(m, k, n int) *Primitive {
	return &Primitive{Fn: Dot, Type: Float32, Shape: Shape{m, n}, Fold: []int{k}, Args: []Access{
		{Type: Float32, Shape: Shape{m, k}, Dims: dims(0, 2)},
		{Type: Float32, Shape: Shape{k, n}, Dims: dims(2, 1)},
	}}
}

// reduce folds the axes of in that are marked, keeping the others.
func reduce(fn Fn, out DType, in DType, s Shape, fold []bool, imm ...Word) *Primitive {
	p := &Primitive{Fn: fn, Type: out, Imm: imm}
	for d, f := range fold {
		if !f {
			p.Shape = append(p.Shape, s[d])
		}
	}
	a := Access{Type: in, Shape: s}
	for d, f := range fold {
		if f {
			a.Dims = append(a.Dims, affine(len(p.Shape)+len(p.Fold)))
			p.Fold = append(p.Fold, s[d])
		} else {
			a.Dims = append(a.Dims, affine(len(a.Dims)-len(p.Fold)))
		}
	}
	p.Args = []Access{a}
	return p
}

func random(r *rand.Rand, s Shape) *Tensor {
	x := Must(New(Float32, s))
	for i := range x.Len() {
		x.Set(i, F32(float32(r.NormFloat64())))
	}
	return x
}

func eval(t testing.TB, p *Primitive, args ...*Tensor) *Tensor {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	out, err := p.Eval(args)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestContractionIsOneChainBelowAKBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, k := range []int{0, 1, 31, 33, 700} {
		a, b := random(r, Shape{3, k}), random(r, Shape{k, 5})
		got := Of[float32](eval(t, matmul(3, k, 5), a, b))
		for i := range 3 {
			for j := range 5 {
				acc := float32(0)
				for x := range k {
					acc = FMA(Of[float32](a)[i*k+x], Of[float32](b)[x*5+j], acc)
				}
				if got[i*5+j] != acc {
					t.Fatalf("k=%d: %x, want %x", k, got[i*5+j], acc)
				}
			}
		}
	}
}

// tree adds partial sums as the specification words it: split at the largest
// power of two below n.
func tree(x []float32) float32 {
	if len(x) == 1 {
		return x[0]
	}
	l, _, _ := canon.Full(len(x)).Split()
	return tree(x[:l.N]) + tree(x[l.N:])
}

func TestKBlocksAreJoinedByATree(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, k := range []int{KBlock - 1, KBlock, KBlock + 1, 2 * KBlock, 3*KBlock + 7, 6 * KBlock, 7*KBlock + 1} {
		a, b := random(r, Shape{1, k}), random(r, Shape{k, 1})
		var partial []float32
		for lo := 0; lo < k; lo += KBlock {
			acc := float32(0)
			for x := lo; x < min(lo+KBlock, k); x++ {
				acc = FMA(Of[float32](a)[x], Of[float32](b)[x], acc)
			}
			partial = append(partial, acc)
		}
		if got := Of[float32](eval(t, matmul(1, k, 1), a, b))[0]; got != tree(partial) {
			t.Errorf("k=%d: %x, want %x", k, got, tree(partial))
		}
	}
}

func TestSumUsesLanesThenATree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 31, 32, 33, 1000} {
		x := random(r, Shape{n})
		var lane [Lanes]float32
		for i, v := range Of[float32](x) {
			lane[i%Lanes] += v
		}
		if got := Of[float32](eval(t, reduce(FoldSum, Float32, Float32, Shape{n}, []bool{true}), x))[0]; got != tree2(lane[:]) {
			t.Errorf("n=%d: %x, want %x", n, got, tree2(lane[:]))
		}
	}
}

// tree2 halves: lane l meets lane l + half.
func tree2(x []float32) float32 {
	for h := len(x) / 2; h > 0; h /= 2 {
		next := make([]float32, h)
		for i := range next {
			next[i] = x[i] + x[i+h]
		}
		x = next
	}
	return x[0]
}

func TestFoldIdentitiesAndTies(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	negZero := float32(math.Copysign(0, -1))
	f := func(v ...float32) *Tensor { return Must(From(Shape{len(v)}, v)) }
	for _, c := range []struct {
		name string
		fn   Fn
		out  DType
		in   *Tensor
		imm  []Word
		want Word
	}{
		{"sum of nothing", FoldSum, Float32, f(), nil, F32(0)},
		{"sum of −0", FoldSum, Float32, f(negZero), nil, F32(0)},
		{"max of nothing", FoldMax, Float32, f(), nil, F32(-inf)},
		{"min of nothing", FoldMin, Float32, f(), nil, F32(inf)},
		{"max of zeros", FoldMax, Float32, f(negZero, 0, negZero), nil, F32(0)},
		{"min of zeros", FoldMin, Float32, f(0, negZero, 0), nil, F32(negZero)},
		{"max with NaN", FoldMax, Float32, f(1, nan, 2), nil, F32(nan)},
		{"min with NaN", FoldMin, Float32, f(nan, 1), nil, F32(nan)},
		{"first of equals", FoldArgMax, Int64, f(1, 3, 3), []Word{0}, 1},
		{"last of equals", FoldArgMax, Int64, f(1, 3, 3), []Word{1}, 2},
		{"arg of NaN", FoldArgMax, Int64, f(1, nan, 9, nan), []Word{0}, 1},
		{"last NaN", FoldArgMax, Int64, f(1, nan, 9, nan), []Word{1}, 3},
		{"arg of −∞", FoldArgMax, Int64, f(-inf, -inf), []Word{0}, 0},
	} {
		p := reduce(c.fn, c.out, Float32, c.in.Shape, []bool{true}, c.imm...)
		if got := eval(t, p, c.in).At(0); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestMapScalars(t *testing.T) {
	nan := float32(math.NaN())
	minus := int64(-1)
	for _, c := range []struct {
		fn       Fn
		in, out  DType
		x, y     Word
		want     Word
		describe string
	}{
		{Div, Int32, Int32, Word(minus * 7), 2, Word(minus * 3), "integer division truncates"},
		{Div, Int64, Int64, 5, 0, 0, "integer division by zero gives zero"},
		{Div, Int64, Int64, 1 << 63, Word(minus), 1 << 63, "MinInt64/−1 wraps"},
		{Add, Int32, Int32, math.MaxInt32, 1, wrap(Int32, math.MinInt32), "int32 wraps"},
		{Max, Float32, Float32, F32(nan), F32(1), F32(nan), "max keeps NaN"},
		{Min, Float32, Float32, F32(1), F32(nan), F32(nan), "min keeps NaN"},
		{Lt, Float32, Bool, F32(nan), F32(1), 0, "NaN compares false"},
		{Eq, Float32, Bool, F32(0), 1 << 31, 1, "+0 equals −0"},
		{Cast, Float32, Int32, F32(3e9), 0, math.MaxInt32, "cast saturates"},
		{Cast, Float32, Int64, F32(nan), 0, 0, "NaN casts to 0"},
		{Cast, Float32, Int32, F32(-1.9), 0, Word(minus), "cast truncates"},
		{Cast, Int64, Int32, 1<<32 + 5, 0, 5, "integer cast wraps"},
		{Cast, Int64, Float32, 1<<24 + 1, 0, F32(1 << 24), "integer to float rounds to even"},
		{Cast, Int32, Bool, 2, 0, 1, "non-zero is true"},
		{Neg, Float32, Float32, F32(0), 0, 1 << 31, "negation flips the sign"},
		{Sub, Float32, Float32, F32(float32(math.Inf(1))), F32(float32(math.Inf(1))), canonicalNaN, "a new NaN is canonical"},
		{Round, Float32, Float32, F32(2.5), 0, F32(2), "ties to even"},
	} {
		args := []Word{c.x, c.y}[:fns[c.fn].arity]
		if got := c.fn.apply(c.in, c.out, args); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.describe, got, c.want)
		}
	}
}

func TestCopyFillsOutside(t *testing.T) {
	x := Must(From(Shape{3}, []int32{1, 2, 3}))
	p := &Primitive{Fn: Copy, Type: Int32, Shape: Shape{6}, Imm: []Word{9}, Args: []Access{{Type: Int32, Shape: Shape{3}, Dims: []Dim{{Offset: -1, Terms: []Term{{0, 1}}}}}}}
	got := Of[int32](eval(t, p, x))
	for i, want := range []int32{9, 1, 2, 3, 9, 9} {
		if got[i] != want {
			t.Fatalf("got %v", got)
		}
	}
}

func TestJoinTakesTheFirstInside(t *testing.T) {
	a, b := Must(From(Shape{2}, []int32{1, 2})), Must(From(Shape{3}, []int32{3, 4, 5}))
	p := &Primitive{Fn: Join, Type: Int32, Shape: Shape{6}, Imm: []Word{9}, Args: []Access{
		{Type: Int32, Shape: Shape{2}, Dims: dims(0)},
		{Type: Int32, Shape: Shape{3}, Dims: []Dim{{Offset: -2, Terms: []Term{{0, 1}}}}},
	}}
	got := Of[int32](eval(t, p, a, b))
	for i, want := range []int32{1, 2, 3, 4, 5, 9} {
		if got[i] != want {
			t.Fatalf("got %v", got)
		}
	}
}

func TestGatherAndScatter(t *testing.T) {
	data := Must(From(Shape{3, 2}, []float32{1, 2, 3, 4, 5, 6}))
	idx := Must(From(Shape{4}, []int64{2, -3, 2, 7}))
	gather := &Primitive{Fn: Copy, Type: Float32, Shape: Shape{4, 2}, Imm: []Word{F32(-1)}, Args: []Access{
		{Type: Float32, Shape: Shape{3, 2}, Dims: []Dim{{Via: 1}, affine(1)}},
		{Type: Int64, Shape: Shape{4}, Dims: dims(0)},
	}}
	got := Of[float32](eval(t, gather, data, idx))
	for i, want := range []float32{5, 6, 1, 2, 5, 6, -1, -1} {
		if got[i] != want {
			t.Fatalf("gather gave %v", got)
		}
	}
	upd := Must(From(Shape{4, 2}, []float32{10, 20, 30, 40, 50, 60, 70, 80}))
	scatter := func(fn Fn) *Primitive {
		return &Primitive{Fn: fn, Type: Float32, Shape: Shape{3, 2}, Fold: []int{4}, Imm: []Word{0}, Args: []Access{
			{Type: Float32, Shape: Shape{3, 2}, Dims: dims(0, 1)},
			{Type: Float32, Shape: Shape{4, 2}, Dims: dims(2, 1)},
			{Type: Int64, Shape: Shape{4}, Dims: dims(2)},
		}}
	}
	for fn, want := range map[Fn][]float32{ScatterAdd: {31, 42, 3, 4, 65, 86}, ScatterSet: {30, 40, 3, 4, 50, 60}} {
		got := Of[float32](eval(t, scatter(fn), data, upd, idx))
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v gave %v, want %v", fn, got, want)
			}
		}
	}
}

// Every element recomputed alone, in fold blocks, equals the whole.
func TestBlocksEqualTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m, k, n := rapid.IntRange(1, 40).Draw(t, "m"), rapid.IntRange(0, 5000).Draw(t, "k"), rapid.IntRange(1, 4).Draw(t, "n")
		var p *Primitive
		var args []*Tensor
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			p, args = matmul(2, k, n), []*Tensor{random(r, Shape{2, k}), random(r, Shape{k, n})}
		case 1:
			s := Shape{m, n, k % 50}
			fold := []bool{r.IntN(2) == 0, r.IntN(2) == 0, true}
			p, args = reduce(FoldSum, Float32, Float32, s, fold), []*Tensor{random(r, s)}
		default:
			s := Shape{k % 100, m}
			p, args = reduce(FoldArgMax, Int64, Float32, s, []bool{true, false}, 0), []*Tensor{random(r, s)}
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		whole, err := p.Eval(args)
		if err != nil {
			t.Fatal(err)
		}
		if whole.Len() == 0 {
			return
		}
		touched := map[[2]int]bool{}
		c := NewCell(p, func(arg, i int) (Word, error) {
			tile, _ := LayoutOf(args[arg].Type, args[arg].Shape).Find(i)
			touched[[2]int{arg, tile}] = true
			return args[arg].At(i), nil
		})
		o := r.IntN(whole.Len())
		if err := c.Seek(o); err != nil {
			t.Fatal(err)
		}
		s, err := c.Start()
		end := 0
		for j := 0; j < p.Blocks() && err == nil; j++ {
			lo, hi := p.Block(j)
			if lo != end || hi <= lo || hi-lo > MaxBlock {
				t.Fatalf("block %d is terms %d to %d after %d", j, lo, hi, end)
			}
			clear(touched)
			s, err = c.Run(s, lo, hi)
			if len(s) != c.StateLen(hi) {
				t.Fatalf("state after %d terms has %d words, want %d", hi, len(s), c.StateLen(hi))
			}
			opened := 0
			for at := range touched { // order: a sum
				l := LayoutOf(args[at[0]].Type, args[at[0]].Shape)
				opened += l.TileBytes(at[1]) + canon.HashSize*bits.Len(uint(l.Tiles()-1))
			}
			if opened > openBytes-len(args)*sourceBytes {
				t.Fatalf("block %d opens %d bytes in %d tiles", j, opened, len(touched))
			}
			end = hi
		}
		if err != nil || end != p.Terms() {
			t.Fatalf("blocks end at %d of %d: %v", end, p.Terms(), err)
		}
		w, err := c.Finish(s)
		if err != nil || w != whole.At(o) {
			t.Fatalf("element %d: %#x alone, %#x in the whole (%v)", o, w, whole.At(o), err)
		}
	})
}

// What no dispute could open is refused: nobody could prove it wrong.
func TestTooManyOperandsToOpen(t *testing.T) {
	const side = 1 << 10
	p := Primitive{Fn: Copy, Type: Float32, Shape: Shape{side, side}, Imm: []Word{0}, Args: []Access{{Type: Float32, Shape: Shape{2, 2, 2, 2, 2, 2, 2, 2}}}}
	for i := range 8 {
		p.Args[0].Dims = append(p.Args[0].Dims, Dim{Via: 1 + i})
		p.Args = append(p.Args, Access{Type: Int64, Shape: Shape{side, side}, Dims: []Dim{{Terms: []Term{{0, 1}}}, {Terms: []Term{{1, 1}}}}})
	}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "a dispute can bring") {
		t.Errorf("a copy through eight whole index tiles: %v", err)
	}
	for i := range p.Args[1:] { // the columns of one tensor
		p.Args[1+i].Shape = Shape{side, side, 8}
		p.Args[1+i].Dims = append(p.Args[1+i].Dims, Dim{Offset: i})
	}
	if err := p.Check(); err != nil {
		t.Errorf("a copy through eight columns of indices: %v", err)
	}
}

func TestPrimitiveEncodingRoundTrips(t *testing.T) {
	for _, p := range []*Primitive{
		matmul(3, 40, 5),
		reduce(FoldArgMax, Int64, Float32, Shape{3, 4}, []bool{true, false}, 1),
		{Fn: Copy, Type: Bool, Shape: Shape{6}, Imm: []Word{1}, Args: []Access{{Type: Bool, Shape: Shape{2, 3}, Flat: true}}},
	} {
		b := canon.Encode(p.Encode)
		var back *Primitive
		if err := canon.Decode(b, func(d *canon.Decoder) { back = DecodePrimitive(d) }); err != nil {
			t.Fatal(err)
		}
		if string(canon.Encode(back.Encode)) != string(b) {
			t.Fatalf("%v changed on its way", p.Fn)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for want, bend := range map[string]func(*Primitive){
		"unknown primitive function": func(p *Primitive) { p.Fn = 0 },
		"takes 2 operands":           func(p *Primitive) { p.Args = p.Args[:1] },
		"does not map":               func(p *Primitive) { p.Type = Int32 },
		"coordinates for shape":      func(p *Primitive) { p.Args[0].Dims = p.Args[0].Dims[:1] },
		"axis 9 does not exist":      func(p *Primitive) { p.Args[0].Dims[0].Terms[0].Axis = 9 },
		"step":                       func(p *Primitive) { p.Args[0].Dims[0].Terms[0].Step = math.MaxInt64 / 2 },
		"offset":                     func(p *Primitive) { p.Args[0].Dims[0].Offset = math.MinInt64 },
		"read through operand":       func(p *Primitive) { p.Args[0].Dims[0].Via = 1 },
		"immediates":                 func(p *Primitive) { p.Imm = []Word{1} },
		"flat access":                func(p *Primitive) { p.Args[0].Flat = true },
		"unknown element type":       func(p *Primitive) { p.Args[0].Type = 0 },
		"too large": func(p *Primitive) {
			*p = *matmul(1<<19, 1<<39, 1<<19)
			p.Args[0].Shape, p.Args[1].Shape = Shape{1, 1}, Shape{1, 1}
		},
	} {
		p := matmul(2, 3, 4)
		bend(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
	scatter := &Primitive{Fn: ScatterSet, Type: Int32, Shape: Shape{3}, Fold: []int{2}, Imm: []Word{0}, Args: []Access{
		{Type: Int32, Shape: Shape{3}, Dims: dims(1)}, {Type: Int32, Shape: Shape{2}, Dims: dims(1)}, {Type: Int64, Shape: Shape{2}, Dims: dims(1)}}}
	if err := scatter.Check(); err == nil {
		t.Error("a scatter whose base follows the terms passed")
	}
	add := &Primitive{Fn: Add, Type: Float32, Shape: Shape{4}, Args: []Access{
		{Type: Float32, Shape: Shape{4}, Dims: dims(0)}, {Type: Float32, Shape: Shape{3}, Dims: dims(0)}}}
	if err := add.Check(); err == nil {
		t.Error("a map that reads outside its operand passed")
	}
}

// A fill that a tensor could not hold would reach the output as it is: a NaN
// with a payload, a boolean 7, an integer that reads back as another word.
func TestCheckRefusesFillsThatAreNoElements(t *testing.T) {
	for _, c := range []struct {
		t    DType
		fill Word
		ok   bool
	}{
		{Float32, canonicalNaN, true}, {Float32, 0xffc00001, false}, {Float32, 1 << 32, false},
		{Int32, 1<<64 - 1, true}, {Int32, 1<<32 - 1, false},
		{Int64, 1<<64 - 1, true}, {Bool, 1, true}, {Bool, 7, false},
	} {
		for _, fn := range []Fn{Copy, Join} {
			p := &Primitive{Fn: fn, Type: c.t, Shape: Shape{3}, Imm: []Word{c.fill}, Args: []Access{{Type: c.t, Shape: Shape{2}, Dims: dims(0)}}}
			if err := p.Check(); (err == nil) != c.ok {
				t.Errorf("%v filling %v with %#x: %v", fn, c.t, c.fill, err)
			}
		}
	}
}

func FuzzPrimitive(f *testing.F) {
	f.Add(canon.Encode(matmul(2, 3, 4).Encode), uint16(3))
	f.Add(canon.Encode(reduce(FoldSum, Float32, Float32, Shape{3, 4}, []bool{true, false}).Encode), uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		var p *Primitive
		if canon.Decode(b, func(d *canon.Decoder) { p = DecodePrimitive(d) }) != nil {
			return
		}
		// Whatever passes Check can be refereed: blocks are bounded, and operand
		// positions lie inside the operands.
		c := NewCell(p, func(arg, i int) (Word, error) {
			if i < 0 || i >= p.Args[arg].Shape.Elements() {
				t.Fatalf("operand %d of %v read at %d", arg, p.Args[arg].Shape, i)
			}
			return Word(i % 2), nil
		})
		if c.Seek(int(at)) != nil {
			return
		}
		s, err := c.Start()
		for j := 0; j < min(p.Blocks(), 4) && err == nil; j++ {
			lo, hi := p.Block(j)
			s, err = c.Run(s, lo, hi)
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Blocks() <= 4 {
			if _, err := c.Finish(s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkBlock(b *testing.B) {
	p := matmul(64, 4096, 64)
	c := NewCell(p, func(arg, i int) (Word, error) { return F32(1.5), nil })
	if err := c.Seek(100); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s, _ := c.Start()
		if _, err := c.Run(s, 0, 32); err != nil {
			b.Fatal(err)
		}
	}
}
