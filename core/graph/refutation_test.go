package graph

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// sums is a program of six nodes over vectors of four floats. One follows from a constant
// alone, and nothing needs the last two.
//
//	0 add slot, constant    3 add 1, 2: the output
//	1 mul 0, 0              4 abs 0
//	2 neg constant          5 neg 4
func sums(t *testing.T) *Program {
	t.Helper()
	four := tensor.Shape{4}
	node := func(fn tensor.Fn, from ...Ref) Opcode {
		p := &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: four}
		for range from {
			p.Args = append(p.Args, tensor.Access{Type: tensor.Float32, Shape: four, Dims: []tensor.Dim{{Terms: []tensor.Term{{Axis: 0, Step: 1}}}}})
		}
		return Opcode{Primitive: p, From: from}
	}
	slot, constant := Ref{Kind: RefSlot}, Ref{Kind: RefConst}
	n := func(i int) Ref { return Ref{Kind: RefNode, Index: i} }
	p := &Program{
		Groups: 1, Slots: []Slot{{"a", tensor.Float32, four}}, Consts: []*tensor.Tensor{tensor.Must(tensor.New(tensor.Float32, four))},
		Nodes:   []Opcode{node(tensor.Add, slot, constant), node(tensor.Mul, n(0), n(0)), node(tensor.Neg, constant), node(tensor.Add, n(1), n(2)), node(tensor.Abs, n(0)), node(tensor.Neg, n(4))},
		Outputs: []Ref{n(3)},
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// bare returns n with a primitive and operands of its own.
func bare(n Leaf) Leaf {
	p := *n.Primitive
	p.Args, n.From = slices.Clone(p.Args), slices.Clone(n.From)
	n.Primitive = &p
	return n
}

func TestOnlyWhatIsNeededAndVariesCosts(t *testing.T) {
	p := sums(t)
	leaves := p.Leaves()
	for i, want := range []struct{ reader, source int }{{1, 1}, {3, 1}, {3, 0}, {6, 1}, {0, 1}, {0, 1}} {
		if n := &leaves[i]; n.Reader != want.reader || n.Source != want.source {
			t.Errorf("node %d is read at %d and follows from operand %d, want %d and %d", i, n.Reader, n.Source, want.reader, want.source)
		}
	}
	if want := (Cost{3 * 4, 3 * 3 * 16}); p.Cost() != want || p.Commit().Cost != want {
		t.Errorf("the program costs %v, its header says %v, want %v", p.Cost(), p.Commit().Cost, want)
	}
}

// Each kind of lie, with the words of who judges it, and how many parts must be opened.
func TestEveryLieIsExposed(t *testing.T) {
	big := tensor.Shape{4096}
	grow := func(n *Leaf) { // an output of another shape, read as before
		n.Shape = big
		for j := range n.Args {
			n.Args[j].Dims = []tensor.Dim{{}}
		}
	}
	for name, x := range map[string]struct {
		lie   func(n []Leaf, total *Cost)
		words string
		parts int
	}{
		"total":                   {func(_ []Leaf, total *Cost) { total.FLOPs++ }, "the header says", 1},
		"total in bytes":          {func(_ []Leaf, total *Cost) { total.Bytes-- }, "the header says", 1},
		"start of the sum":        {func(n []Leaf, _ *Cost) { n[0].Before.FLOPs = 9 }, "before the first node", 1},
		"sum":                     {func(n []Leaf, _ *Cost) { n[2].Before.FLOPs += 1e6 }, "the nodes up to 1 cost", 2},
		"reader before it":        {func(n []Leaf, _ *Cost) { n[1].Reader = 1 }, "does not come after", 1},
		"reader beyond the end":   {func(n []Leaf, _ *Cost) { n[4].Reader = 7 }, "does not come after", 1},
		"reader that does not":    {func(n []Leaf, _ *Cost) { n[1].Reader = 4 }, "does not read it", 2},
		"reader of no use":        {func(n []Leaf, _ *Cost) { n[4].Reader = 5 }, "is of no use", 2},
		"output that is not":      {func(n []Leaf, _ *Cost) { n[4].Reader, n[5].Reader = 5, 6 }, "is said to be output 0", 2},
		"read, and of no use":     {func(n []Leaf, _ *Cost) { n[0].Reader, n[1].Reader = 0, 0 }, "node 3 reads it", 2},
		"output, and of no use":   {func(n []Leaf, _ *Cost) { n[0].Reader, n[1].Reader, n[2].Reader, n[3].Reader = 0, 0, 0, 0 }, "is output 0", 2},
		"source that is constant": {func(n []Leaf, _ *Cost) { n[2].Source = 1 }, "is said to follow from constant 0", 1},
		"source from a constant":  {func(n []Leaf, _ *Cost) { n[3].Source = 2 }, "which is constant", 2},
		"no such operand":         {func(n []Leaf, _ *Cost) { n[1].Source = 3 }, "has 2 operands", 1},
		"varies by a slot":        {func(n []Leaf, _ *Cost) { n[0].Source = 0 }, "is said to be constant, and reads slot 0", 1},
		"varies by a node":        {func(n []Leaf, _ *Cost) { n[3].Source = 0 }, "which is not", 2},
		"operand that is not":     {func(n []Leaf, _ *Cost) { n[1].From[0].Index = 1 }, "does not exist there", 1},
		"slot that is not":        {func(n []Leaf, _ *Cost) { n[0].From[0].Index = 1 }, "does not exist there", 1},
		"nothing as operand":      {func(n []Leaf, _ *Cost) { n[0].From[0].Kind = 0 }, "does not exist there", 1},
		"shape of a slot":         {func(n []Leaf, _ *Cost) { n[0].Args[0].Shape = big }, "reads slot 0 of state 0 as", 2},
		"shape of a constant":     {func(n []Leaf, _ *Cost) { n[0].Args[1].Shape = big }, "reads constant 0 as", 2},
		"shape of a node":         {func(n []Leaf, _ *Cost) { n[1].Args[1].Shape = big }, "reads %0 as", 2},
		"shape of a result":       {func(n []Leaf, _ *Cost) { grow(&n[1]) }, "reads %1 as", 2},
		"shape of an output":      {func(n []Leaf, _ *Cost) { grow(&n[3]) }, "output 0 is", 2},
		"no primitive":            {func(n []Leaf, _ *Cost) { n[1].Fn = 0 }, "is none", 1},
		"one operand too many":    {func(n []Leaf, _ *Cost) { n[1].From = append(n[1].From, n[1].From[0]) }, "is none", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := sums(t)
			leaves := p.Leaves()
			for i := range leaves {
				leaves[i] = bare(leaves[i])
			}
			honest := p.Cost()
			cost := honest
			x.lie(leaves, &cost)
			resum(leaves, name != "sum" && name != "start of the sum", &cost, honest)
			c := p.CommitAs(leaves, cost)
			e := c.Refute()
			if e == nil {
				t.Fatal("nobody finds it")
			}
			why, err := e.Judge(c.Root())
			if err != nil || !strings.Contains(why, x.words) || len(e.Opened) != x.parts {
				t.Fatalf("judged by %d parts: %q, %v; want %d and %q", len(e.Opened), why, err, x.parts, x.words)
			}
			b := canon.Marshal(e)
			var again Refutation
			if err := canon.Unmarshal(b, &again); err != nil || len(b) > MaxRefutation {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			if why2, err := again.Judge(c.Root()); why2 != why || err != nil {
				t.Errorf("after encoding it is judged %q, %v", why2, err)
			}
			if _, err := e.Judge(p.Commit().Root()); err == nil {
				t.Error("it exposes another program")
			}
		})
	}
}

// resum makes the sums follow from the leaves, as a careful liar would.
func resum(leaves []Leaf, also bool, cost *Cost, honest Cost) {
	if !also || *cost != honest {
		return
	}
	for i := 1; i < len(leaves); i++ {
		leaves[i].Before = leaves[i-1].Before.plus(leaves[i-1].Cost())
	}
	*cost = total(leaves)
}

func TestCostOfAProgramWithoutNodes(t *testing.T) {
	p := &Program{Groups: 1, Slots: []Slot{{"a", tensor.Float32, nil}}, Outputs: []Ref{{Kind: RefSlot}}}
	c := p.CommitAs(nil, Cost{FLOPs: 1})
	if why, err := c.Refute().Judge(c.Root()); err != nil || !strings.Contains(why, "without nodes") {
		t.Errorf("judged %q, %v", why, err)
	}
	if e := p.Commit().Refute(); e != nil {
		t.Errorf("exposed by %v", e)
	}
}

// Whatever is opened of what Commit returns, it shows nothing; nor does what is no part of it.
func TestHonestProgramIsNeverExposed(t *testing.T) {
	c := sums(t).Commit()
	if e := c.Refute(); e != nil {
		t.Fatalf("exposed by %v", e.Opened)
	}
	rapid.Check(t, func(t *rapid.T) {
		part := func(l List) Opened {
			n := [...]int{0, len(c.Leaves), 1, 1, 1}[l]
			return Opened{List: l, Index: rapid.IntRange(0, n-1).Draw(t, "index")}
		}
		parts := []Opened{part(InNodes)}
		if rapid.Bool().Draw(t, "two") {
			parts = append(parts, part(List(rapid.IntRange(1, 4).Draw(t, "list"))))
		}
		e := c.Open(parts...)
		if why, err := e.Judge(c.Root()); !errors.Is(err, ErrSound) {
			t.Fatalf("%v: %q, %v", e.Opened, why, err)
		}
		o := &e.Opened[rapid.IntRange(0, len(parts)-1).Draw(t, "part")]
		at := rapid.IntRange(0, len(o.Leaf)-1).Draw(t, "byte")
		o.Leaf[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if why, err := e.Judge(c.Root()); err == nil {
			t.Fatalf("a forged leaf: %q", why)
		}
	})
}

func TestRefutationRefusesWhatIsNoOpening(t *testing.T) {
	c := sums(t).Commit()
	for name, x := range map[string]struct {
		change func(e *Refutation)
		words  string
	}{
		"other header":   {func(e *Refutation) { e.Header.Rows++ }, "not that of program"},
		"too many parts": {func(e *Refutation) { e.Opened = append(e.Opened, e.Opened[0], e.Opened[0]) }, "at most 2"},
		"no node":        {func(e *Refutation) { e.Opened = c.Open(Opened{List: InSlots}).Opened }, "want a node"},
		"no list":        {func(e *Refutation) { e.Opened[0].List = 9 }, "does not exist"},
		"wrong place":    {func(e *Refutation) { e.Opened[0].Index = 3 }, "merkle proof"},
		"out of range":   {func(e *Refutation) { e.Opened[0].Index = 1 << 19 }, "merkle proof"},
		"large leaf":     {func(e *Refutation) { e.Opened[0].Leaf = make([]byte, MaxLeaf+1) }, "the limit"},
		"no tensor":      {func(e *Refutation) { e.Opened = append(e.Opened, Opened{List: InConsts}) }, "canonical"},
	} {
		e := c.Open(Opened{List: InNodes, Index: 1})
		x.change(e)
		if why, err := e.Judge(c.Root()); err == nil || !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %q, %v; want %q", name, why, err, x.words)
		}
	}
}

// The largest leaf that a primitive can have fits.
func TestLargestLeafFits(t *testing.T) {
	wide := make(tensor.Shape, tensor.MaxRank)
	terms := make([]tensor.Term, tensor.MaxTerms)
	for i := range terms {
		terms[i] = tensor.Term{Axis: tensor.MaxAxes, Step: -tensor.MaxDim}
	}
	a := tensor.Access{Shape: wide}
	for i := range wide {
		wide[i] = tensor.MaxDim
		a.Dims = append(a.Dims, tensor.Dim{Offset: -tensor.MaxDim, Terms: terms, Via: tensor.MaxArgs})
	}
	n := Leaf{Opcode: Opcode{Primitive: &tensor.Primitive{Shape: wide, Fold: wide}, Origin: Origin{MaxNodes, strings.Repeat("x", MaxName)}}, Before: Cost{MaxCost, MaxCost}, Reader: MaxNodes + MaxSlots, Source: tensor.MaxArgs}
	for range tensor.MaxArgs {
		n.Args = append(n.Args, a)
		n.From = append(n.From, Ref{RefSlot, MaxNodes, MaxNodes})
		n.Imm = append(n.Imm, ^tensor.Word(0))
	}
	if b := canon.Encode(n.Encode); len(b) > MaxLeaf {
		t.Errorf("it has %d bytes, the limit is %d", len(b), MaxLeaf)
	}
}

func FuzzRefutation(f *testing.F) {
	p := &Program{Groups: 1, Slots: []Slot{{"a", tensor.Float32, nil}}, Outputs: []Ref{{Kind: RefSlot}}}
	f.Add(canon.Marshal(p.Commit().Open()))
	f.Add(canon.Marshal(p.Commit().Open(Opened{List: InSlots})))
	f.Fuzz(func(t *testing.T, b []byte) {
		var x Refutation
		if canon.Unmarshal(b, &x) != nil {
			return
		}
		if string(canon.Marshal(&x)) != string(b) {
			t.Fatal("it has two encodings")
		}
		if why, err := x.Judge(x.Header.Root()); (why == "") == (err == nil) {
			t.Fatalf("judged %q, %v", why, err)
		}
	})
}
