package affine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// each calls do with the coordinates of a grid, row-major.
func each(extents []int, do func(coord []int)) {
	coord := make([]int, len(extents))
	for {
		do(coord)
		a := len(extents) - 1
		for ; a >= 0; a-- {
			if coord[a]++; coord[a] < extents[a] {
				break
			}
			coord[a] = 0
		}
		if a < 0 {
			return
		}
	}
}

// value is a linear form at coordinates.
func value(base int, steps, coord []int) int {
	for i, c := range coord {
		base += steps[i] * c
	}
	return base
}

var (
	extent = rapid.IntRange(1, 5)
	stride = rapid.IntRange(-7, 7)
)

func list(t *rapid.T, of *rapid.Generator[int], n int, name string) []int {
	return rapid.SliceOfN(of, n, n).Draw(t, name)
}

func TestOffsetsOfAGridAreThoseOfTheForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(1, 4).Draw(t, "axes")
		g := Grid{Extents: list(t, extent, axes, "extents")}
		steps, base := list(t, stride, axes, "steps"), stride.Draw(t, "base")
		var all []int
		each(g.Extents, func(coord []int) { all = append(all, value(base, steps, coord)) })
		g.N = len(all)
		from := rapid.IntRange(0, g.N-1).Draw(t, "from")
		got := make([]int, rapid.IntRange(1, g.N-from).Draw(t, "n"))
		g.Offsets(got, base, steps, from)
		if want := all[from:][:len(got)]; !slices.Equal(got, want) {
			t.Fatalf("%v from %d: %v, want %v", g.Extents, from, got, want)
		}
		if got := g.Offset(base, steps, from); got != all[from] {
			t.Fatalf("offset %d is %d, want %d", from, got, all[from])
		}
	})
}

// Along merged axes every form takes the values that it took along all of them, in order.
func TestMergingAxesChangesNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.IntRange(1, 5).Draw(t, "axes")
		shape := list(t, extent, axes, "shape")
		var all []Strides
		for range rapid.IntRange(1, 3).Draw(t, "forms") {
			steps := list(t, stride, axes, "steps")
			for a := axes - 2; a >= 0; a-- { // often a multiple of what lies inside
				if rapid.Bool().Draw(t, "dense") {
					steps[a] = steps[a+1] * shape[a+1]
				}
			}
			all = append(all, steps)
		}
		order := rapid.Permutation(Axes(0, axes)).Draw(t, "order")
		keep, extents := Merge(shape, order, all)
		for i, s := range all {
			var want, got []int
			each(Strides(shape).Pick(order), func(coord []int) { want = append(want, value(0, s.Pick(order), coord)) })
			each(extents, func(coord []int) { got = append(got, value(0, s.Pick(keep), coord)) })
			if !slices.Equal(got, want) {
				t.Fatalf("form %d of %v along %v, merged to %v of %v: %v, want %v", i, shape, order, keep, extents, got, want)
			}
		}
	})
}

func TestNeighboursOfOneStepAreMerged(t *testing.T) {
	for _, c := range []struct {
		shape         []int
		strides       []Strides
		keep, extents []int
	}{
		{[]int{3, 4}, []Strides{{4, 1}}, []int{1}, []int{12}},
		{[]int{3, 4}, []Strides{{5, 1}}, []int{0, 1}, []int{3, 4}},
		{[]int{3, 4}, []Strides{{4, 1}, {0, 1}}, []int{0, 1}, []int{3, 4}},
		{[]int{2, 3, 4}, []Strides{{12, 4, 1}, {0, 0, 0}}, []int{2}, []int{24}},
		{[]int{3, 1, 4}, []Strides{{4, 9, 1}}, []int{2}, []int{12}},
		{[]int{1, 1}, []Strides{{4, 1}}, []int{-1}, []int{1}},
	} {
		if keep, extents := Merge(c.shape, Axes(0, len(c.shape)), c.strides); !slices.Equal(keep, c.keep) || !slices.Equal(extents, c.extents) {
			t.Errorf("%v by %v: axes %v of %v, want %v of %v", c.shape, c.strides, keep, extents, c.keep, c.extents)
		}
	}
}

func TestClipIsWhatLiesInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, step := rapid.IntRange(-20, 20).Draw(t, "c"), stride.Draw(t, "step")
		size, n := rapid.IntRange(0, 12).Draw(t, "extent"), rapid.IntRange(0, 12).Draw(t, "n")
		lo, hi := Clip(c, step, size, n)
		for i := range n {
			x := c + i*step
			if inside := 0 <= x && x < size; inside != (lo <= i && i < hi) {
				t.Fatalf("%d + %d·%d in 0…%d: %v, range %d…%d", c, i, step, size-1, inside, lo, hi-1)
			}
		}
		if lo < 0 || lo > hi || hi > n {
			t.Fatalf("range %d…%d of %d", lo, hi-1, n)
		}
	})
}

func TestRunIsTheLongest(t *testing.T) {
	for _, c := range []struct {
		extents, strides []int
		checked          [][]int
		want             Run
		length           int
	}{
		{[]int{4}, []int{1}, nil, Run{4, 1}, 4},
		{[]int{3, 4}, []int{4, 1}, nil, Run{12, 1}, 12},
		{[]int{3, 4}, []int{5, 1}, nil, Run{4, 1}, 4},
		{[]int{3, 4}, []int{8, 2}, nil, Run{12, 2}, 6},
		{[]int{3, 4}, []int{-4, -1}, nil, Run{12, -1}, 12},
		{[]int{2, 3, 4}, []int{0, 0, 0}, nil, Run{24, 0}, 0},
		{[]int{3, 4}, []int{12, 3}, nil, Run{12, 3}, 1},
		{[]int{3, 4}, []int{4, 1}, [][]int{{1, 0}}, Run{4, 1}, 4}, // a row has its own check
		{[]int{3, 4}, []int{4, 1}, [][]int{{4, 1}}, Run{12, 1}, 12},
	} {
		if got := NewRun(c.extents, c.strides, c.checked...); got != c.want || got.Length() != c.length {
			t.Errorf("%v by %v, checked %v: %v of %d, want %v of %d", c.extents, c.strides, c.checked, got, got.Length(), c.want, c.length)
		}
	}
}

// Each segment takes from a line what its mask says, and no element is taken twice.
func TestDeinterleaveSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lanes := rapid.SampledFrom([]int{4, 8, 16}).Draw(t, "lanes")
		offset, size, n := rapid.IntRange(-9, 9).Draw(t, "offset"), rapid.IntRange(0, 70).Draw(t, "extent"), rapid.IntRange(1, 40).Draw(t, "n")
		taken := make([]bool, 2*n)
		for _, s := range DeinterleaveSegments([]asm.MaskedSegment(nil), offset, size, n, lanes) {
			from, to, mask := s[0], s[1], s[2]
			for l := range 2 * lanes {
				if mask>>l&1 == 0 {
					continue
				}
				i := 2*to + l
				if i >= 2*n || taken[i] || from+l != offset+i || from+l < 0 || from+l >= size {
					t.Fatalf("segment %+v takes %d of the line for %d of %d", s, from+l, i, 2*n)
				}
				taken[i] = true
			}
		}
		for i, is := range taken {
			if x := offset + i; is != (0 <= x && x < size) {
				t.Fatalf("element %d, at %d of %d: taken %v", i, x, size, is)
			}
		}
	})
}

// reading draws a primitive that copies one operand, read along output and folded axes
// with offsets, steps of any sign, and sums of two axes, as convolutions read theirs.
func reading(t *rapid.T) *tensor.Primitive {
	axes, folds := rapid.IntRange(1, 3).Draw(t, "axes"), rapid.IntRange(0, 2).Draw(t, "folds")
	p := &tensor.Primitive{Fn: tensor.FoldSum, Type: tensor.Int32, Shape: list(t, extent, axes, "shape"), Fold: list(t, extent, folds, "fold")}
	a := tensor.Access{Type: tensor.Int32}
	for range rapid.IntRange(0, 3).Draw(t, "dims") {
		d := tensor.Dim{Offset: rapid.IntRange(-2, 3).Draw(t, "offset")}
		for _, axis := range rapid.SliceOfNDistinct(rapid.IntRange(0, axes+folds-1), 0, min(2, axes+folds), rapid.ID[int]).Draw(t, "terms") {
			d.Terms = append(d.Terms, tensor.Term{Axis: axis, Step: rapid.IntRange(-2, 2).Filter(func(s int) bool { return s != 0 }).Draw(t, "step")})
		}
		a.Shape, a.Dims = append(a.Shape, rapid.IntRange(1, 7).Draw(t, "extent")), append(a.Dims, d)
	}
	p.Args = []tensor.Access{a}
	return p
}

// element is what operand 0 of p is read at, by the definition; false where that is padding.
func element(p *tensor.Primitive, coord []int) (int, bool) {
	at, inside := 0, true
	for d, dim := range p.Args[0].Dims {
		c := dim.Offset
		for _, t := range dim.Terms {
			c += t.Step * coord[t.Axis]
		}
		inside = inside && 0 <= c && c < p.Args[0].Shape[d]
		at += c * p.Args[0].Shape.Strides()[d]
	}
	return at, inside
}

func TestViewReadsWhatTheDefinitionReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := reading(t)
		x := tensor.Must(tensor.New(tensor.Int32, p.Args[0].Shape))
		for i := range x.Len() {
			x.Set(i, tensor.Word(100+i))
		}
		shape := append(p.Shape.Clone(), p.Fold...)
		order := rapid.Permutation(Axes(0, len(shape))).Draw(t, "order")
		const padding = -1
		var want []int32
		coord := make([]int, len(shape))
		each(Strides(shape).Pick(order), func(c []int) {
			for i, a := range order {
				coord[a] = c[i]
			}
			w := int32(padding)
			if at, inside := element(p, coord); inside {
				w = int32(100 + at)
			}
			want = append(want, w)
		})
		v := NewView(p, 0, order)
		at := rapid.IntRange(0, len(want)-1).Draw(t, "at")
		n := rapid.IntRange(0, len(want)-at).Draw(t, "n")
		got := Load(v, []*tensor.Tensor{x}, make([]int32, n), at, n, padding)
		if !slices.Equal(got, want[at:][:n]) {
			t.Fatalf("%+v along %v from %d: %v, want %v", p, order, at, got, want[at:][:n])
		}
		for a := range p.Shape {
			named := slices.ContainsFunc(p.Args[0].Dims, func(d tensor.Dim) bool {
				return slices.ContainsFunc(d.Terms, func(t tensor.Term) bool { return t.Axis == a })
			})
			if !named && DependsOn(p, 0, a) {
				t.Fatalf("%+v depends on axis %d", p, a)
			}
			moves := false
			each(shape, func(c []int) {
				other := slices.Clone(c)
				other[a] = 0
				from, _ := element(p, other)
				to, _ := element(p, c)
				moves = moves || from != to
			})
			if moves && !DependsOn(p, 0, a) {
				t.Fatalf("%+v does not depend on axis %d", p, a)
			}
		}
	})
}

// With a micro-kernel that transposes, a view reads what it reads without.
func TestTransposedViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 40)
		rows, cols, times := side.Draw(t, "rows"), side.Draw(t, "columns"), rapid.IntRange(1, 3).Draw(t, "times")
		step := rows + rapid.IntRange(0, 3).Draw(t, "apart")
		v := &View{Loops: []Loop{{times, 0}, {rows, 1}, {cols, step}}, Base: rapid.IntRange(0, 2).Draw(t, "base")}
		size := v.Base + rows + cols*step
		if rapid.Bool().Draw(t, "backwards") {
			v.Base, v.Loops[2].Stride = v.Base+(cols-1)*step, -step
		}
		if tile, want := v.TransposedTile(), min(rows, tuning.TransposedRows)*cols; v.Loops[2].Stride > 1 && tile != want {
			t.Fatalf("a tile of %d elements, want %d", tile, want)
		}
		x := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{size}))
		for i := range x.Len() {
			x.Set(i, tensor.Word(100+i))
		}
		total := times * rows * cols
		at := rapid.IntRange(0, total-1).Draw(t, "at")
		n := rapid.IntRange(0, total-at).Draw(t, "n")
		want := slices.Clone(Load(v, []*tensor.Tensor{x}, make([]int32, n), at, n, 0))
		for _, set := range asm.Sets() {
			v.Transpose = set.Transpose8
			if got := Load(v, []*tensor.Tensor{x}, make([]int32, n), at, n, 0); !slices.Equal(got, want) {
				t.Fatalf("%s, %+v from %d: %v, want %v", set.Name, v.Loops, at, got, want)
			}
		}
	})
}

// Only reading forward, each element the same number of times in a row, is a repetition.
func TestRepetition(t *testing.T) {
	dim := func(offset int, axes ...int) tensor.Dim {
		d := tensor.Dim{Offset: offset}
		for _, a := range axes {
			d.Terms = append(d.Terms, tensor.Term{Axis: a, Step: 1})
		}
		return d
	}
	for _, c := range []struct {
		name        string
		shape, fold []int
		operand     tensor.Shape
		dims        []tensor.Dim
		times       int
		ok          bool
	}{
		{"as it is", []int{2, 3}, nil, tensor.Shape{2, 3}, []tensor.Dim{dim(0, 0), dim(0, 1)}, 1, true},
		{"each three times", []int{2, 3}, nil, tensor.Shape{2}, []tensor.Dim{dim(0, 0)}, 3, true},
		{"one for all", []int{2, 3}, nil, tensor.Shape{1}, []tensor.Dim{dim(0)}, 6, true},
		{"over a fold", []int{2}, []int{4}, tensor.Shape{2}, []tensor.Dim{dim(0, 0)}, 4, true},
		{"all, again", []int{2, 3}, nil, tensor.Shape{3}, []tensor.Dim{dim(0, 1)}, 0, false},
		{"transposed", []int{2, 3}, nil, tensor.Shape{3, 2}, []tensor.Dim{dim(0, 1), dim(0, 0)}, 0, false},
		{"from the second on", []int{2}, nil, tensor.Shape{3}, []tensor.Dim{dim(1, 0)}, 0, false},
		{"with padding", []int{4}, nil, tensor.Shape{3}, []tensor.Dim{dim(0, 0)}, 0, false},
	} {
		p := &tensor.Primitive{Fn: tensor.FoldSum, Type: tensor.Float32, Shape: c.shape, Fold: c.fold, Args: []tensor.Access{{Type: tensor.Float32, Shape: c.operand, Dims: c.dims}}}
		if times, ok := Repetition(p, 0); times != c.times || ok != c.ok {
			t.Errorf("%s: %d times, %v; want %d, %v", c.name, times, ok, c.times, c.ok)
		}
	}
}

func TestWindowsMoveAlongTwoAxes(t *testing.T) {
	window := tensor.Dim{Terms: []tensor.Term{{Axis: 0, Step: 2}, {Axis: 1, Step: 1}}}
	p := &tensor.Primitive{Fn: tensor.FoldMax, Type: tensor.Float32, Shape: tensor.Shape{4}, Fold: []int{3}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{9}, Dims: []tensor.Dim{window}},
	}}
	if !Windowed(p, 0, 0) {
		t.Error("a pooling has no windows")
	}
	p.Fold[0] = 1
	if Windowed(p, 0, 0) {
		t.Error("a window of one element is one")
	}
	if got := len(BoundsOf(p, 0)); got != 0 {
		t.Errorf("%d checks inside the operand", got)
	}
	p.Args[0].Dims[0].Offset = -1
	if b := BoundsOf(p, 0); len(b) != 1 || b[0].Offset != -1 || !slices.Equal(b[0].Steps, []int{2, 1}) || b[0].Extent != 9 || b[0].Stride != 1 {
		t.Errorf("%+v", b)
	}
}
