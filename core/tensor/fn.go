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

	// Map.
	BitAnd
	BitOr
	BitXor
	BitNot
	ShiftLeft  // by at least the width of the type, or by less than 0: 0
	ShiftRight // of a signed type with copies of the sign
	Mod        // of integers, with the sign of the divisor; x mod 0 is 0
	Rem        // with the sign of the dividend, exact; of integers x rem 0 is 0
	SinF
	CosF
	AtanF

	// Fold.
	FoldProd // one chain from 1

	// Contraction: how many terms of the first operand come before the element
	// of the second, in an order of which Imm[1] says that it ascends. Of equals
	// the one at the lower position comes first: that of a term among the terms,
	// that of the element on output axis Imm[0]. A NaN is above all numbers.
	Before

	// Map.
	Bits // the same bits as another type of the same size; as bool, whether any is set

	// Scatter. Like ScatterAdd, with another function of the element so far and
	// the update.
	ScatterMul
	ScatterMax
	ScatterMin

	// Map.
	Narrow // a float as a factor of profile mixed: see Narrowed
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
	sameFloat               // all T → T, T a float of at most 32 bits
	sameReal                // all T → T, T a float
	sameInteger             // all T → T, T an integer
	wholeSums               // T → T, T numeric but not half: partial results are of its type
	product                 // T, T → T, not half; halves → float32; 8-bit integers → int32
	precede                 // T, T → int64, T numeric
	compare                 // all T → bool
	logic                   // all bool → bool
	choose                  // bool, T, T → T
	convert                 // any → any
	factor                  // a float → bfloat16
	reinterpret             // any → any of the same size
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

// fns is indexed by function; those that do not exist have no kind.
var fns = [256]fnInfo{
	Add: {"add", KindMap, 2, sameNumeric, 0, 1}, Sub: {"sub", KindMap, 2, sameNumeric, 0, 1},
	Mul: {"mul", KindMap, 2, sameNumeric, 0, 1}, Div: {"div", KindMap, 2, sameNumeric, 0, 4},
	Max: {"max", KindMap, 2, sameNumeric, 0, 1}, Min: {"min", KindMap, 2, sameNumeric, 0, 1},
	Neg: {"neg", KindMap, 1, sameNumeric, 0, 1}, Abs: {"abs", KindMap, 1, sameNumeric, 0, 1},
	SqrtF: {"sqrt", KindMap, 1, sameReal, 0, 4}, ExpF: {"exp", KindMap, 1, sameReal, 0, 20},
	LogF: {"log", KindMap, 1, sameReal, 0, 25}, TanhF: {"tanh", KindMap, 1, sameReal, 0, 30},
	ErfF: {"erf", KindMap, 1, sameFloat, 0, 40}, Floor: {"floor", KindMap, 1, sameReal, 0, 1},
	Ceil: {"ceil", KindMap, 1, sameReal, 0, 1}, Round: {"round", KindMap, 1, sameReal, 0, 1},
	Eq: {"eq", KindMap, 2, compare, 0, 1}, Lt: {"lt", KindMap, 2, compare, 0, 1}, Le: {"le", KindMap, 2, compare, 0, 1},
	And: {"and", KindMap, 2, logic, 0, 1}, Or: {"or", KindMap, 2, logic, 0, 1}, Not: {"not", KindMap, 1, logic, 0, 1},
	Where: {"where", KindMap, 3, choose, 0, 1}, Cast: {"cast", KindMap, 1, convert, 0, 1},
	Copy:    {"copy", KindIndex, 1, alike, 1, 0},
	FoldSum: {"sum", KindFold, 1, wholeSums, 0, 1}, FoldMax: {"max", KindFold, 1, sameNumeric, 0, 1},
	FoldMin: {"min", KindFold, 1, sameNumeric, 0, 1}, FoldArgMax: {"argmax", KindFold, 1, locate, 1, 1},
	ScatterAdd: {"scatter-add", KindFold, -3, scatter, -1, 1}, ScatterSet: {"scatter-set", KindFold, -3, scatter, -1, 0},
	Dot:    {"dot", KindContraction, 2, product, 0, 2},
	Join:   {"join", KindIndex, -1, alike, 1, 0},
	BitAnd: {"bit-and", KindMap, 2, sameInteger, 0, 1}, BitOr: {"bit-or", KindMap, 2, sameInteger, 0, 1},
	BitXor: {"bit-xor", KindMap, 2, sameInteger, 0, 1}, BitNot: {"bit-not", KindMap, 1, sameInteger, 0, 1},
	ShiftLeft: {"shift-left", KindMap, 2, sameInteger, 0, 1}, ShiftRight: {"shift-right", KindMap, 2, sameInteger, 0, 1},
	Mod: {"mod", KindMap, 2, sameInteger, 0, 4}, Rem: {"rem", KindMap, 2, sameNumeric, 0, 40},
	SinF: {"sin", KindMap, 1, sameFloat, 0, 40}, CosF: {"cos", KindMap, 1, sameFloat, 0, 40}, AtanF: {"atan", KindMap, 1, sameFloat, 0, 40},
	FoldProd:   {"prod", KindFold, 1, wholeSums, 0, 1},
	Before:     {"before", KindContraction, 2, precede, 2, 1},
	Bits:       {"bits", KindMap, 1, reinterpret, 0, 0},
	ScatterMul: {"scatter-mul", KindFold, -3, scatter, -1, 1}, ScatterMax: {"scatter-max", KindFold, -3, scatter, -1, 1},
	ScatterMin: {"scatter-min", KindFold, -3, scatter, -1, 1},
	Narrow:     {"narrow", KindMap, 1, factor, 0, 1},
}

// Kind returns the kind of f, 0 if f is unknown.
func (f Fn) Kind() Kind { return fns[f].kind }

// Scatters reports whether f is a scatter.
func (f Fn) Scatters() bool { return fns[f].rule == scatter }

// Merge returns the map function by which a scatter takes an update into an
// element; false if the update replaces it.
func (f Fn) Merge() (Fn, bool) {
	switch f {
	case ScatterAdd:
		return Add, true
	case ScatterMul:
		return Mul, true
	case ScatterMax:
		return Max, true
	case ScatterMin:
		return Min, true
	}
	return 0, false
}

// String returns the name of f.
func (f Fn) String() string {
	if f.Kind() != 0 {
		return fns[f].name
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
		ok = ok && out.Float() && out != Float64
		all(0, out)
	case sameReal:
		ok = ok && out.Float()
		all(0, out)
	case sameInteger:
		ok = ok && out.Integer()
		all(0, out)
	case wholeSums:
		ok = ok && out.Numeric() && !out.Half()
		all(0, out)
	case product:
		ok = ok && in[0].Numeric() && in[1].Numeric() && productType(in[0], in[1]) == out
	case precede:
		ok = ok && out == Int64 && in[0].Numeric()
		all(0, in[0])
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
	case factor:
		ok = ok && out == BFloat16 && in[0].Float()
	case reinterpret:
		ok = ok && in[0].Size() == out.Size()
	case alike:
		all(0, out)
	case locate:
		ok = ok && out == Int64 && in[0].Numeric()
	case scatter:
		ok = ok && in[0] == out && in[1] == out && (f == ScatterSet || out.Numeric())
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
	case Bits:
		return stored(out, a[0])
	case Narrow:
		return Narrowed(FloatOf(t, a[0]))
	case And:
		return a[0] & a[1]
	case Or:
		return a[0] | a[1]
	case Not:
		return a[0] ^ 1
	}
	switch {
	case t == Float64:
		x, y := math.Float64frombits(a[0]), float64(0)
		if len(a) > 1 {
			y = math.Float64frombits(a[1])
		}
		if f.compares() {
			return f.relation(x < y, x == y)
		}
		return F64(f.Double(x, y))
	case t.Float():
		x, y := float32(FloatOf(t, a[0])), float32(0)
		if len(a) > 1 {
			y = float32(FloatOf(t, a[1]))
		}
		if f.compares() {
			return f.relation(x < y, x == y)
		}
		return FloatWord(out, float64(f.Float(x, y)))
	}
	x, y := int64(a[0]), int64(0)
	if len(a) > 1 {
		y = int64(a[1])
	}
	if f.compares() {
		return f.relation(below(t, x, y), x == y)
	}
	return wrap(out, integer(f, t, x, y))
}

// productType is the type in which products of two types are summed; 0 if they
// have none.
func productType(x, y DType) DType {
	switch {
	case x.Size() == 1 && y.Size() == 1:
		return Int32
	case x != y:
		return 0
	case x.Half():
		return Float32
	}
	return x
}

func (f Fn) compares() bool { return f == Eq || f == Lt || f == Le }

// relation is the result of a comparison of what is less or equal or neither.
func (f Fn) relation(less, equal bool) Word {
	return truth(f != Eq && less || f != Lt && equal)
}

func truth(b bool) Word {
	if b {
		return 1
	}
	return 0
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
	case Rem:
		return float32(math.Mod(float64(x), float64(y)))
	case SinF:
		return Sin(x)
	case CosF:
		return Cos(x)
	case AtanF:
		return Atan(x)
	}
	return math.Float32frombits(canonicalNaN)
}

// Double is the float64 meaning of a map function of one or two operands, as
// Float is that of float32.
func (f Fn) Double(x, y float64) float64 {
	switch f {
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return float64(x * y)
	case Div:
		return x / y
	case Max:
		return max(x, y)
	case Min:
		return min(x, y)
	case Neg:
		return -x
	case Abs:
		return math.Abs(x)
	case SqrtF:
		return math.Sqrt(x)
	case ExpF:
		return exp64(x)
	case LogF:
		return log64(x)
	case TanhF:
		return tanh64(x)
	case Floor:
		return math.Floor(x)
	case Ceil:
		return math.Ceil(x)
	case Round:
		return math.RoundToEven(x)
	case Rem:
		return math.Mod(x, y)
	}
	return math.NaN()
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
