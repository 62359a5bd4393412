package tensor

import (
	"fmt"
	"math"
)

// Fn names what a primitive does with the operand elements it reads.
type Fn uint8

// The functions. Numbers are consensus: append, never reorder.
const (
	// Map: one scalar function, one rounding.
	Add Fn = iota + 1
	Sub
	Mul
	Div   // integers truncate towards zero; x/0 is 0, MinInt/−1 wraps
	Max   // NaN wins; +0 is above −0
	Min   // NaN wins; −0 is below +0
	Neg   // flips the sign bit of a float
	Abs   // clears the sign bit of a float
	SqrtF // correctly rounded
	ExpF
	LogF
	TanhF
	ErfF
	Floor
	Ceil
	Round // to nearest, ties to even
	Eq
	Lt
	Le
	And
	Or
	Not
	Where // condition, value if true, value if false
	Cast  // float → integer truncates and saturates, NaN gives 0; integer → integer wraps

	// Index: a copy. Imm[0] is the word for positions outside the operand.
	Copy

	// Fold: one operand is reduced over the folded axes.
	FoldSum    // 32 lanes, then a fixed tree; lane l takes terms l, l+32, …
	FoldMax    // identity: the least value of the type
	FoldMin    // identity: the greatest value of the type
	FoldArgMax // flat position among the folded axes; Imm[0]=1 takes the last of equals

	// Scatter: operand 0 is the base, operand 1 the update, operand 2+j an
	// index; a term counts when every index equals the output coordinate on
	// axis Imm[j]. Terms are taken in order after the base.
	ScatterAdd
	ScatterSet

	// Contraction: products of two operands, accumulated over the folded axes.
	Dot

	// Index: the first operand that the position lies inside gives the element
	// (concatenation). Imm[0] is the word for positions outside all of them.
	Join
)

// Kind is one of the four kinds of primitive.
type Kind uint8

// The kinds. Scatter is a fold whose terms are chosen by an index.
const (
	KindMap Kind = iota + 1
	KindIndex
	KindFold
	KindContraction
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"unknown", "map", "index", "fold", "contraction"}[min(k, 4)]
}

// rule says which operand and output types a function takes.
type rule uint8

const (
	sameNumeric rule = iota // all T → T, T numeric
	sameFloat               // all float32 → float32
	compare                 // all T → bool
	logic                   // all bool → bool
	choose                  // bool, T, T → T
	convert                 // any → any
	alike                   // all T → T
	locate                  // T numeric → int64
	scatter                 // T, T, integers… → T
)

type fnInfo struct {
	name  string
	kind  Kind
	arity int // −n: at least n
	rule  rule
	imms  int // −1: one for each index operand
	flops int // floating-point operations an output element or a term costs
}

var fns = map[Fn]fnInfo{
	Add: {"add", KindMap, 2, sameNumeric, 0, 1}, Sub: {"sub", KindMap, 2, sameNumeric, 0, 1},
	Mul: {"mul", KindMap, 2, sameNumeric, 0, 1}, Div: {"div", KindMap, 2, sameNumeric, 0, 4},
	Max: {"max", KindMap, 2, sameNumeric, 0, 1}, Min: {"min", KindMap, 2, sameNumeric, 0, 1},
	Neg: {"neg", KindMap, 1, sameNumeric, 0, 1}, Abs: {"abs", KindMap, 1, sameNumeric, 0, 1},
	SqrtF: {"sqrt", KindMap, 1, sameFloat, 0, 4}, ExpF: {"exp", KindMap, 1, sameFloat, 0, 20},
	LogF: {"log", KindMap, 1, sameFloat, 0, 25}, TanhF: {"tanh", KindMap, 1, sameFloat, 0, 30},
	ErfF: {"erf", KindMap, 1, sameFloat, 0, 40}, Floor: {"floor", KindMap, 1, sameFloat, 0, 1},
	Ceil: {"ceil", KindMap, 1, sameFloat, 0, 1}, Round: {"round", KindMap, 1, sameFloat, 0, 1},
	Eq: {"eq", KindMap, 2, compare, 0, 1}, Lt: {"lt", KindMap, 2, compare, 0, 1}, Le: {"le", KindMap, 2, compare, 0, 1},
	And: {"and", KindMap, 2, logic, 0, 1}, Or: {"or", KindMap, 2, logic, 0, 1}, Not: {"not", KindMap, 1, logic, 0, 1},
	Where: {"where", KindMap, 3, choose, 0, 1}, Cast: {"cast", KindMap, 1, convert, 0, 1},
	Copy:    {"copy", KindIndex, 1, alike, 1, 0},
	FoldSum: {"sum", KindFold, 1, sameNumeric, 0, 1}, FoldMax: {"max", KindFold, 1, sameNumeric, 0, 1},
	FoldMin: {"min", KindFold, 1, sameNumeric, 0, 1}, FoldArgMax: {"argmax", KindFold, 1, locate, 1, 1},
	ScatterAdd: {"scatter-add", KindFold, -3, scatter, -1, 1}, ScatterSet: {"scatter-set", KindFold, -3, scatter, -1, 0},
	Dot:  {"dot", KindContraction, 2, sameNumeric, 0, 2},
	Join: {"join", KindIndex, -1, alike, 1, 0},
}

// Kind returns the kind of f, 0 if f is unknown.
func (f Fn) Kind() Kind { return fns[f].kind }

// String returns the name of f.
func (f Fn) String() string {
	if i, ok := fns[f]; ok {
		return i.name
	}
	return fmt.Sprintf("fn(%d)", uint8(f))
}

// check returns an error unless operands of these types give an out.
func (f Fn) check(in []DType, out DType) error {
	i := fns[f]
	if i.arity >= 0 && len(in) != i.arity || len(in) < -i.arity {
		return fmt.Errorf("%v takes %d operands, got %d", f, i.arity, len(in))
	}
	ok := out.Valid()
	all := func(from int, t DType) {
		for _, x := range in[from:] {
			ok = ok && x == t
		}
	}
	switch i.rule {
	case sameNumeric:
		ok = ok && out.Numeric()
		all(0, out)
	case sameFloat:
		ok = ok && out == Float32
		all(0, out)
	case compare:
		ok = ok && out == Bool && in[0].Valid()
		all(0, in[0])
	case logic:
		ok = ok && out == Bool
		all(0, Bool)
	case choose:
		ok = ok && in[0] == Bool
		all(1, out)
	case convert:
		ok = ok && in[0].Valid()
	case alike:
		all(0, out)
	case locate:
		ok = ok && out == Int64 && in[0].Numeric()
	case scatter:
		ok = ok && in[0] == out && in[1] == out && (f != ScatterAdd || out.Numeric())
		for _, x := range in[2:] {
			ok = ok && x.Integer()
		}
	}
	if !ok {
		return fmt.Errorf("%v does not map %v to %v", f, in, out)
	}
	return nil
}

// apply computes a map function on words. t is the type of the last operand,
// out that of the result; the types have been checked.
func (f Fn) apply(t, out DType, a []Word) Word {
	switch f {
	case Where:
		if a[0] != 0 {
			return a[1]
		}
		return a[2]
	case Cast:
		return castWord(t, out, a[0])
	case And:
		return a[0] & a[1]
	case Or:
		return a[0] | a[1]
	case Not:
		return a[0] ^ 1
	}
	if t == Float32 {
		x, y := AsF32(a[0]), float32(0)
		if len(a) > 1 {
			y = AsF32(a[1])
		}
		switch f {
		case Eq:
			return truth(x == y)
		case Lt:
			return truth(x < y)
		case Le:
			return truth(x <= y)
		}
		return F32(f.Float(x, y))
	}
	x, y := int64(a[0]), int64(0)
	if len(a) > 1 {
		y = int64(a[1])
	}
	switch f {
	case Eq:
		return truth(x == y)
	case Lt:
		return truth(x < y)
	case Le:
		return truth(x <= y)
	}
	return wrap(out, integer(f, x, y))
}

func truth(b bool) Word {
	if b {
		return 1
	}
	return 0
}

// wrap reduces an integer to the range of t.
func wrap(t DType, v int64) Word {
	if t == Int32 {
		v = int64(int32(v))
	}
	return Word(v)
}

// Float is the float32 meaning of a map function of one or two operands. A NaN
// result may have any payload; storing it makes it canonical.
func (f Fn) Float(x, y float32) float32 {
	switch f {
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return float32(x * y)
	case Div:
		return x / y
	case Max:
		return maxF32(x, y)
	case Min:
		return -maxF32(-x, -y)
	case Neg:
		return -x
	case Abs:
		return math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	case SqrtF:
		return Sqrt(x)
	case ExpF:
		return Exp(x)
	case LogF:
		return Log(x)
	case TanhF:
		return Tanh(x)
	case ErfF:
		return Erf(x)
	case Floor:
		return float32(math.Floor(float64(x)))
	case Ceil:
		return float32(math.Ceil(float64(x)))
	case Round:
		return float32(math.RoundToEven(float64(x)))
	}
	return math.Float32frombits(canonicalNaN)
}

func maxF32(x, y float32) float32 {
	switch {
	case x != x:
		return x
	case y != y:
		return y
	case x > y:
		return x
	case x == y && math.Float32bits(x)>>31 == 0:
		return x
	}
	return y
}

func integer(f Fn, x, y int64) int64 {
	switch f {
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return x * y
	case Div:
		if y == 0 {
			return 0
		}
		if y == -1 { // MinInt64 / −1 wraps; Go's division would too, hardware traps
			return -x
		}
		return x / y
	case Max:
		return max(x, y)
	case Min:
		return min(x, y)
	case Neg:
		return -x
	case Abs:
		return max(x, -x)
	}
	return 0
}

func castWord(from, to DType, w Word) Word {
	if from == Float32 {
		x := AsF32(w)
		switch to {
		case Float32:
			return w
		case Bool:
			return truth(x != 0)
		case Int32:
			return Word(saturate(x, math.MinInt32, math.MaxInt32))
		default:
			return Word(saturate(x, math.MinInt64, math.MaxInt64))
		}
	}
	switch to {
	case Float32:
		return F32(float32(int64(w)))
	case Bool:
		return truth(w != 0)
	default:
		return wrap(to, int64(w))
	}
}

// saturate truncates x towards zero into [lo, hi]; NaN gives 0.
func saturate(x float32, lo, hi int64) int64 {
	switch {
	case x != x:
		return 0
	case float64(x) >= float64(hi):
		return hi
	case float64(x) <= float64(lo):
		return lo
	}
	return int64(x)
}
