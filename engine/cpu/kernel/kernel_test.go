package kernel

import (
	"errors"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

func TestByDefinitionIsTheDefinition(t *testing.T) {
	p := &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{2, 2}, Fold: []int{3}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{2, 3}, Dims: []tensor.Dim{{Terms: []tensor.Term{{Axis: 0, Step: 1}}}, {Terms: []tensor.Term{{Axis: 2, Step: 1}}}}},
		{Type: tensor.Float32, Shape: tensor.Shape{3, 2}, Dims: []tensor.Dim{{Terms: []tensor.Term{{Axis: 2, Step: 1}}}, {Terms: []tensor.Term{{Axis: 1, Step: 1}}}}},
	}}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	var args []*tensor.Tensor
	for _, a := range p.Args {
		x := tensor.Must(tensor.New(a.Type, a.Shape))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(i)-2.5))
		}
		args = append(args, x)
	}
	want, err := p.Eval(args)
	if err != nil {
		t.Fatal(err)
	}
	k, out := ByDefinition(p), tensor.Must(tensor.New(p.Type, p.Shape))
	if k.Blocks() != 4 || k.Describe().Kernel != "definition" {
		t.Errorf("%d blocks, %+v", k.Blocks(), k.Describe())
	}
	for _, block := range []int{3, 0, 2, 1} { // in any order
		if err := k.Run(NewWorker(), out, args, block, block+1); err != nil {
			t.Fatal(err)
		}
	}
	if !out.Equal(want) {
		t.Errorf("%v, want %v", out.Bytes(), want.Bytes())
	}
}

// runs is a producer that computes as many blocks at a time as it is told.
type runs struct {
	Kernel
	at    []int // of each call
	sizes []int
	fails int // block
}

func (r *runs) LongRuns() bool { return true }

func (r *runs) Next(_ *Worker, _ *tensor.Tensor, _ []*tensor.Tensor, i, n int, do Epilogue) (int, error) {
	r.at = append(r.at, i)
	if i == r.fails {
		return 0, errors.New("broken")
	}
	done := min(r.sizes[(len(r.at)-1)%len(r.sizes)], n)
	return done, do(i, done, 1, done, Source{})
}

func TestProduceAsksForEveryBlockOnce(t *testing.T) {
	var seen []int
	do := func(at, n, _, _ int, _ Source) error {
		for i := range n {
			seen = append(seen, at+i)
		}
		return nil
	}
	r := &runs{sizes: []int{3, 1, 4}, fails: -1}
	if err := Produce(r, NewWorker(), nil, nil, 2, 12, do); err != nil {
		t.Fatal(err)
	}
	if want := []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(seen, want) {
		t.Errorf("blocks %v, want %v", seen, want)
	}
	r = &runs{sizes: []int{2}, fails: 4}
	if err := Produce(r, NewWorker(), nil, nil, 0, 12, do); err == nil || !slices.Equal(r.at, []int{0, 2, 4}) {
		t.Errorf("%v after %v", err, r.at)
	}
}

func TestSourceOfRowsInLines(t *testing.T) {
	// Two rows of two lines of three, in a block of seven columns and five lines a row.
	data := make([]float32, 70)
	for i := range data {
		data[i] = float32(i)
	}
	s := Source{Data: data, RowPitch: 35, Lines: 2, LinePitch: 7}
	out := make([]float32, 20)
	s.CopyTo(out, 1, 6, 2, 10)
	want := []float32{0, 0, 1, 2, 7, 8, 9, 0, 0, 0, 0, 35, 36, 37, 42, 43, 44, 0, 0, 0}
	if !slices.Equal(out, want) {
		t.Errorf("%v, want %v", out, want)
	}
	if p := (*float32)(s.Address(1, 1)); *p != 42 {
		t.Errorf("line 1 of row 1 begins with %v", *p)
	}
	before := slices.Clone(out)
	if (Source{}).CopyTo(out, 0, 6, 2, 10); !slices.Equal(out, before) || (Source{}).Address(0, 0) != nil {
		t.Error("rows that are in the output were copied to it")
	}
}

func TestScratchOfEachTypeStays(t *testing.T) {
	type one struct{ n int }
	type two struct{ n int }
	w := NewWorker()
	Scratch[one](w).n = 1
	Scratch[two](w).n = 2
	if a, b := Scratch[one](w).n, Scratch[two](w).n; a != 1 || b != 2 {
		t.Errorf("%d, %d", a, b)
	}
	if Scratch[one](NewWorker()).n != 0 {
		t.Error("workers share scratch memory")
	}
	if a, b := Row[float64](w, 0), Row[float64](w, 1); len(a) != Chunk || &a[0] == &b[0] {
		t.Error("rows of a worker")
	}
}

// With bounds that add up to ProductsKept no product rounds to zero. With far lower ones
// some do.
func TestProductsKept(t *testing.T) {
	for _, c := range []struct {
		a, b       uint32 // biased exponents
		kept, zero bool
	}{{75, 76, true, false}, {1, 150, true, false}, {75, 75, false, false}, {50, 50, false, true}} {
		x, y := tensor.AsF32(tensor.Word(c.a<<23)), tensor.AsF32(tensor.Word(c.b<<23))
		if kept := MinExponent(c.a)+MinExponent(c.b) >= ProductsKept; kept != c.kept || c.zero != (float32(x*y) == 0) {
			t.Errorf("exponents %d and %d: %v·%v is %v, kept %v", c.a, c.b, x, y, float32(x*y), kept)
		}
	}
	if got := MinExponentOf(77 << 24); got != 77 {
		t.Errorf("%d", got)
	}
}
