package tensor

// below reports whether x is less than y, both the words of an integer type.
func below(t DType, x, y int64) bool {
	if t.Unsigned() {
		return uint64(x) < uint64(y)
	}
	return x < y
}

// integer is the meaning of a map function on an integer type. The result is
// still to be wrapped.
func integer(f Fn, t DType, x, y int64) int64 {
	switch f {
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return x * y
	case Div:
		return quotient(t, x, y)
	case Rem:
		if y == 0 {
			return 0
		}
		return x - quotient(t, x, y)*y
	case Mod:
		r := x - quotient(t, x, y)*y
		switch {
		case y == 0:
			return 0
		case r != 0 && t.Signed() && r < 0 != (y < 0):
			return r + y
		}
		return r
	case Max:
		if below(t, x, y) {
			return y
		}
		return x
	case Min:
		if below(t, y, x) {
			return y
		}
		return x
	case Neg:
		return -x
	case Abs:
		if t.Signed() {
			return max(x, -x)
		}
		return x
	case BitAnd:
		return x & y
	case BitOr:
		return x | y
	case BitXor:
		return x ^ y
	case BitNot:
		return ^x
	}
	width := int64(8 * t.Size())
	switch {
	case y < 0 || y >= width: // of uint64, 2⁶³ and above are negative here
		return 0
	case f == ShiftLeft:
		return x << y
	case t.Unsigned():
		return int64(uint64(x) >> y)
	}
	return x >> y
}

// quotient is x/y towards zero; x/0 is 0.
func quotient(t DType, x, y int64) int64 {
	switch {
	case y == 0:
		return 0
	case t.Unsigned():
		return int64(uint64(x) / uint64(y))
	case y == -1: // MinInt64 / −1 wraps; Go's division would too, hardware traps
		return -x
	}
	return x / y
}

// castWord converts an element to another type.
func castWord(from, to DType, w Word) Word {
	switch {
	case from == to:
		return w
	case from.Float() && to.Float():
		return FloatWord(to, FloatOf(from, w))
	case from.Float() && to == Bool:
		return truth(FloatOf(from, w) != 0)
	case from.Float():
		return saturate(to, FloatOf(from, w))
	case to == Bool:
		return truth(w != 0)
	case to == Float32: // one rounding, which two through float64 would not be
		if from == Uint64 {
			return F32(float32(w))
		}
		return F32(float32(int64(w)))
	case to.Float():
		if from == Uint64 {
			return FloatWord(to, float64(w))
		}
		return FloatWord(to, float64(int64(w)))
	}
	return wrap(to, int64(w))
}

// saturate truncates x towards zero into the range of an integer type; NaN
// gives 0.
func saturate(t DType, x float64) Word {
	least, greatest := bounds(t)
	if t.Unsigned() {
		switch {
		case !(x > 0):
			return 0
		case x >= float64(greatest):
			return greatest
		}
		return Word(x)
	}
	switch {
	case x != x:
		return 0
	case x >= float64(int64(greatest)):
		return greatest
	case x <= float64(int64(least)):
		return least
	}
	return Word(int64(x))
}
