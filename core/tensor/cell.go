package tensor

import (
	"fmt"
	"math"
	"math/bits"
)

// Load returns element i (flat) of an operand.
type Load func(arg, i int) (Word, error)

// Cell evaluates single elements of a primitive's output, term by term. The
// state between terms is a short list of words, so that a dispute can stop
// between any two fold blocks.
type Cell struct {
	p       *Primitive
	readers []reader
	all     int   // terms of the primitive
	from    int   // term of the element; those before it do not count
	terms   int   // of the element; without a band it has all
	at      []int // output coordinates, then folded coordinates
	o       int   // flat output index
	words   []Word
	load    Load
	via     func(arg int) (int, error)
}

// KBlock is the number of terms after which a float contraction starts a new
// chain; the chains are joined by a fixed pairwise tree.
const KBlock = 4096

// Lanes is the number of partial sums of a sum.
const Lanes = 32

// NewCell prepares the evaluation of a checked primitive over operands that
// load reads.
func NewCell(p *Primitive, load Load) *Cell {
	c := &Cell{p: p, all: p.Terms(), load: load}
	c.terms = c.all
	c.at = make([]int, len(p.Shape)+len(p.Fold))
	c.words = make([]Word, len(p.Args))
	c.readers = make([]reader, len(p.Args))
	for i := range p.Args {
		c.readers[i] = p.reader(i)
	}
	c.via = func(arg int) (int, error) {
		w, _, err := c.read(arg)
		return int(int64(w)), err
	}
	return c
}

// Seek moves to output element o.
func (c *Cell) Seek(o int) error {
	if o < 0 || o >= c.p.Shape.Elements() {
		return fmt.Errorf("element %d of an output with %d", o, c.p.Shape.Elements())
	}
	c.o = o
	c.p.Shape.Coords(o, c.at[:len(c.p.Shape)])
	c.from, c.terms = c.p.Range(c.at)
	return nil
}

// read returns the operand element at the current coordinates.
func (c *Cell) read(arg int) (w Word, ok bool, err error) {
	i, ok, err := c.readers[arg].index(c.at, c.o, c.via)
	if !ok || err != nil {
		return 0, false, err
	}
	w, err = c.load(arg, i)
	return w, true, err
}

// Value computes the element from beginning to end.
func (c *Cell) Value() (Word, error) {
	s, err := c.Start()
	if err != nil {
		return 0, err
	}
	if s, err = c.Run(s, 0, c.terms); err != nil {
		return 0, err
	}
	return c.Finish(s)
}

// StateLen returns the number of words of the element's state after n terms of the primitive.
func (c *Cell) StateLen(n int) int {
	n = min(n, c.terms)
	switch c.p.Fn {
	case FoldSum:
		return Lanes
	case FoldArgMax:
		return 2
	case Before:
		return 1
	case Dot:
		if c.p.Type.Float() {
			return 1 + bits.OnesCount(uint(n/KBlock))
		}
		return 1
	}
	if c.terms == 0 && c.p.Fn.Kind() != KindFold {
		return 0
	}
	return 1
}

// Start returns the state before the first term.
func (c *Cell) Start() ([]Word, error) {
	s := make([]Word, c.StateLen(0))
	p := c.p
	switch p.Fn {
	case FoldMax, FoldArgMax, FoldMin:
		s[0] = extreme(p.Args[0].Type, p.Fn == FoldMin)
	case FoldProd:
		s[0] = castWord(Int64, p.Type, 1)
	case ScatterAdd, ScatterSet, ScatterMul, ScatterMax, ScatterMin:
		w, _, err := c.read(0)
		if err != nil {
			return nil, err
		}
		s[0] = w
	}
	return s, nil
}

// extreme returns the greatest or the least value of t.
func extreme(t DType, greatest bool) Word {
	if t.Float() {
		sign := 1
		if !greatest {
			sign = -1
		}
		return FloatWord(t, math.Inf(sign))
	}
	lo, hi := bounds(t)
	if greatest {
		return hi
	}
	return lo
}

// Run takes terms lo…hi−1 of the primitive into a state after lo terms and returns the state
// after hi. Those that the element does not have leave it as it is. It may reuse s.
func (c *Cell) Run(s []Word, lo, hi int) ([]Word, error) {
	if lo < 0 || hi > c.all || len(s) != c.StateLen(lo) {
		return nil, fmt.Errorf("terms %d to %d of %d from a state of %d words", lo, hi, c.terms, len(s))
	}
	fold := c.at[len(c.p.Shape):]
	for k := lo; k < min(hi, c.terms); k++ {
		Shape(c.p.Fold).Coords(k, fold)
		var err error
		if s, err = c.term(s, k); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (c *Cell) term(s []Word, k int) ([]Word, error) {
	counts := k >= c.from
	first := 0
	if c.p.Fn.Scatters() {
		first = 1
	}
	for i := first; counts && i < len(c.words); i++ {
		w, ok, err := c.read(i)
		if err != nil {
			return nil, err
		}
		c.words[i], counts = w, ok
	}
	if counts {
		c.accumulate(s, k)
	}
	if c.p.Fn == Dot && c.p.Type.Float() && (k+1)%KBlock == 0 {
		return joinChain(c.p.Type, s, (k+1)/KBlock), nil
	}
	return s, nil
}

func (c *Cell) accumulate(s []Word, k int) {
	p, w := c.p, c.words
	switch p.Fn {
	case FoldSum:
		l := k % Lanes
		s[l] = plus(p.Type, s[l], w[0])
	case FoldProd:
		s[0] = Mul.apply(p.Type, p.Type, []Word{s[0], w[0]})
	case FoldMax:
		s[0] = Max.apply(p.Type, p.Type, []Word{s[0], w[0]})
	case FoldMin:
		s[0] = Min.apply(p.Type, p.Type, []Word{s[0], w[0]})
	case FoldArgMax:
		t := p.Args[0].Type
		if k == 0 || beats(t, w[0], s[0], p.Imm[0] != 0) {
			s[0], s[1] = w[0], Word(k)
		}
	case ScatterAdd, ScatterSet, ScatterMul, ScatterMax, ScatterMin:
		for j, axis := range p.Imm {
			v, n := int(int64(w[2+j])), p.Shape[axis]
			if v < 0 {
				v += n
			}
			if v != c.at[axis] {
				return
			}
		}
		if merge, ok := p.Fn.Merge(); ok {
			s[0] = merge.apply(p.Type, p.Type, []Word{s[0], w[1]})
		} else {
			s[0] = w[1]
		}
	case Dot:
		switch p.Type {
		case Float32:
			x, y := float32(FloatOf(p.Args[0].Type, w[0])), float32(FloatOf(p.Args[1].Type, w[1]))
			s[0] = F32(FMA(x, y, AsF32(s[0])))
		case Float64:
			s[0] = F64(math.FMA(math.Float64frombits(w[0]), math.Float64frombits(w[1]), math.Float64frombits(s[0])))
		default:
			s[0] = wrap(p.Type, int64(s[0])+int64(w[0])*int64(w[1]))
		}
	case Before:
		t := p.Args[0].Type
		first, second := w[0], w[1]
		if p.Imm[1] == 0 { // descending
			first, second = second, first
		}
		if over(t, second, first) || !over(t, first, second) && k < c.at[p.Imm[0]] {
			s[0]++
		}
	}
}

func plus(t DType, x, y Word) Word { return Add.apply(t, t, []Word{x, y}) }

// over reports whether x is above y: a NaN is above all numbers.
func over(t DType, x, y Word) bool {
	if !t.Float() {
		return below(t, int64(y), int64(x))
	}
	a, b := FloatOf(t, x), FloatOf(t, y)
	return a > b || a != a && b == b
}

// beats reports whether x replaces the best value so far. A NaN beats numbers;
// the first (or, if last, the last) of equals stays.
func beats(t DType, x, best Word, last bool) bool {
	return over(t, x, best) || last && !over(t, best, x)
}

// joinChain ends a chain: the state is the running chain followed by finished
// subtrees, the largest first, as in a binary counter of n finished K-blocks.
func joinChain(t DType, s []Word, n int) []Word {
	done := s[0]
	s = s[1:]
	for ; n%2 == 0; n /= 2 {
		done = plus(t, s[len(s)-1], done)
		s = s[:len(s)-1]
	}
	return append([]Word{0}, append(s, done)...)
}

// Finish returns the element from the state after all terms.
func (c *Cell) Finish(s []Word) (Word, error) {
	if len(s) != c.StateLen(c.terms) {
		return 0, fmt.Errorf("final state has %d words, want %d", len(s), c.StateLen(c.terms))
	}
	switch p := c.p; p.Fn.Kind() {
	case KindMap, KindIndex:
		return c.single()
	case KindContraction:
		if p.Type.Float() {
			return joinAll(p.Type, s, c.terms), nil
		}
	default:
		switch p.Fn {
		case FoldSum:
			return sumLanes(p.Type, s), nil
		case FoldArgMax:
			return s[1], nil
		}
	}
	return s[0], nil
}

// joinAll joins the subtrees of the finished K-blocks with the last chain,
// from the right; a chain without terms does not count.
func joinAll(t DType, s []Word, terms int) Word {
	rest := s[1:]
	acc := s[0]
	if terms%KBlock == 0 && len(rest) > 0 {
		acc, rest = rest[len(rest)-1], rest[:len(rest)-1]
	}
	for i := len(rest) - 1; i >= 0; i-- {
		acc = plus(t, rest[i], acc)
	}
	return acc
}

// sumLanes adds the lanes pairwise: l and l+16, then l and l+8, and so on.
func sumLanes(t DType, lanes []Word) Word {
	var s [Lanes]Word
	copy(s[:], lanes)
	for half := Lanes / 2; half > 0; half /= 2 {
		for l := range half {
			s[l] = plus(t, s[l], s[l+half])
		}
	}
	return s[0]
}

// single computes an element of a map or index primitive.
func (c *Cell) single() (Word, error) {
	p := c.p
	if p.Fn.Kind() == KindIndex {
		data := 1
		if p.Fn == Join {
			data = len(p.Args)
		}
		for i := range data {
			if w, ok, err := c.read(i); ok || err != nil {
				return w, err
			}
		}
		return p.Imm[0], nil
	}
	for i := range c.words {
		w, _, err := c.read(i) // Check has made sure that it lies inside
		if err != nil {
			return 0, err
		}
		c.words[i] = w
	}
	return p.Fn.apply(p.Args[len(p.Args)-1].Type, p.Type, c.words), nil
}

// Eval computes the whole output of a checked primitive, element by element:
// the definition that every executor must equal.
func (p *Primitive) Eval(args []*Tensor) (*Tensor, error) {
	if len(args) != len(p.Args) {
		return nil, fmt.Errorf("%v takes %d operands, got %d", p.Fn, len(p.Args), len(args))
	}
	for i, a := range args {
		if want := &p.Args[i]; a.Type != want.Type || !a.Shape.Equal(want.Shape) {
			return nil, fmt.Errorf("%v, operand %d: %v%v given, %v%v wanted", p.Fn, i, a.Type, a.Shape, want.Type, want.Shape)
		}
	}
	out, err := New(p.Type, p.Shape)
	if err != nil {
		return nil, err
	}
	c := NewCell(p, func(arg, i int) (Word, error) { return args[arg].At(i), nil })
	for o := range out.Len() {
		if err := c.Seek(o); err != nil {
			return nil, err
		}
		w, err := c.Value()
		if err != nil {
			return nil, err
		}
		out.Set(o, w)
	}
	return out, nil
}
