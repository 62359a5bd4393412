package table

import (
	"math"
	"strconv"

	"github.com/tally-network/tally/core/tensor"
)

// Number is a number as text has it, read so far as an element needs.
type Number struct {
	mantissa uint64
	exponent int32 // of ten
	negative bool
	long     bool // the mantissa has more digits than a word
	whole    bool // digits alone
}

// ScanNumber reads a number from b[at] on: a sign or none, digits among which may be a point, and
// an exponent or none. It returns where the number ends: at, if there is none.
func ScanNumber(b []byte, at int) (n Number, end int) {
	i := at
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		n.negative = b[i] == '-'
		i++
	}
	n.whole = true
	first, m := i, uint64(0)
	for i < len(b) && b[i]-'0' < 10 {
		m = m*10 + uint64(b[i]-'0')
		i++
	}
	count := i - first
	if i < len(b) && b[i] == '.' {
		n.whole = false
		i++
		point := i
		for i < len(b) && b[i]-'0' < 10 {
			m = m*10 + uint64(b[i]-'0')
			i++
		}
		count += i - point
		n.exponent = int32(min(i-point, math.MaxInt32)) * -1
	}
	if count == 0 {
		return n, at
	}
	n.mantissa, n.long = m, count > 19
	if i < len(b) && b[i]|0x20 == 'e' {
		j, sign, e := i+1, int32(1), int32(0)
		if j < len(b) && (b[j] == '-' || b[j] == '+') {
			if b[j] == '-' {
				sign = -1
			}
			j++
		}
		from := j
		for j < len(b) && b[j]-'0' < 10 {
			e = min(e*10+int32(b[j]-'0'), 1<<20)
			j++
		}
		if j > from {
			n.whole = false
			n.exponent += sign * e
			i = j
		}
	}
	return n, i
}

// Int64 returns a whole number, and whether it is one that int64 holds.
func (n Number) Int64() (int64, bool) {
	if !n.whole || n.long || n.mantissa > math.MaxInt64 {
		return math.MinInt64, n.whole && !n.long && n.negative && n.mantissa == 1<<63
	}
	if n.negative {
		return -int64(n.mantissa), true
	}
	return int64(n.mantissa), true
}

// powers are those of ten that float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Float64 returns the number rounded once, to nearest, and whether it lies in the range of
// float64. Text is what it was scanned from.
func (n Number) Float64(text []byte) (float64, bool) {
	// Both factors are exact, and so one rounding is all (Clinger, 1990).
	if e := n.exponent; n.mantissa <= 1<<53 && !n.long && -22 <= e && e <= 22 {
		x := float64(n.mantissa)
		if e < 0 {
			x /= powers[-e]
		} else {
			x *= powers[e]
		}
		if n.negative {
			x = -x
		}
		return x, true
	}
	x, err := strconv.ParseFloat(view(text), 64)
	return x, err == nil
}

// number returns the shortest digits that give an element back.
func number(t tensor.DType, w tensor.Word) string {
	switch {
	case t == tensor.Bool:
		return strconv.FormatBool(w != 0)
	case t.Unsigned():
		return strconv.FormatUint(w, 10)
	case t.Integer():
		return strconv.FormatInt(int64(w), 10)
	case t == tensor.Float64:
		return digits(tensor.FloatOf(t, w), 64)
	}
	return digits(tensor.FloatOf(t, w), 32)
}

// digits returns the shortest digits of a float, with an exponent where JSON has one.
func digits(x float64, bits int) string {
	if a := math.Abs(x); a == 0 || 1e-6 <= a && a < 1e21 {
		return strconv.FormatFloat(x, 'f', -1, bits)
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}
