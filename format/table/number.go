package table

import (
	"encoding/binary"
	"math"
	"math/bits"
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
	m, next := digitsFrom(b, i, 0)
	count := next - i
	i = next
	if i < len(b) && b[i] == '.' {
		n.whole = false
		i++
		m, next = digitsFrom(b, i, m)
		count += next - i
		n.exponent = -int32(min(next-i, math.MaxInt32))
		i = next
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

// digitsFrom reads the digits that b has from i on as the lower ones of a number, whose upper ones are m.
func digitsFrom(b []byte, i int, m uint64) (uint64, int) {
	for i+8 <= len(b) {
		// Eight bytes are digits up to the first that is above 9 without the digit 0. The digits
		// move to the end, behind zeros; then two, four and eight of them become one number.
		const high = 0x8080808080808080
		w := binary.LittleEndian.Uint64(b[i:]) ^ 0x3030303030303030
		n := 8
		if other := (w + 0x7676767676767676 | w) & high; other != 0 {
			if n = bits.TrailingZeros64(other) / 8; n == 0 {
				return m, i
			}
			w <<= 64 - 8*uint(n)
		}
		w = w * (10<<8 + 1) >> 8 & 0x00ff00ff00ff00ff
		w = w * (100<<16 + 1) >> 16 & 0x0000ffff0000ffff
		w = w * (10000<<32 + 1) >> 32
		m = m*tens[n] + w
		if i += n; n < 8 {
			return m, i
		}
	}
	for i < len(b) && b[i]-'0' < 10 {
		m = m*10 + uint64(b[i]-'0')
		i++
	}
	return m, i
}

// tens are powers of ten.
var tens = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8}

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
	if e := n.exponent; !n.long && -22 <= e && e <= 22 {
		if n.mantissa <= 1<<53 { // both factors are exact, and so one rounding is all (Clinger, 1990)
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
		if -19 <= e && e < 0 {
			x := quotient(n.mantissa, uint64(powers[-e]))
			if n.negative {
				x = -x
			}
			return x, true
		}
	}
	x, err := strconv.ParseFloat(view(text), 64)
	return x, err == nil
}

// quotient returns a/b rounded once. Both are shifted until their highest bits are set, so that 64
// bits of the quotient and whether anything is left over come of one division.
func quotient(a, b uint64) float64 {
	shift := bits.LeadingZeros64(b) - bits.LeadingZeros64(a)
	a <<= bits.LeadingZeros64(a)
	b <<= bits.LeadingZeros64(b)
	high, low := a, uint64(0)
	if shift -= 64; a >= b {
		high, low = a>>1, a<<63
		shift++
	}
	q, rest := bits.Div64(high, low, b)
	const dropped = 64 - 53
	kept, half := q>>dropped, q&(1<<dropped-1)
	if tie := uint64(1) << (dropped - 1); half > tie || half == tie && (rest > 0 || kept&1 == 1) {
		kept++
	}
	return float64(kept) * math.Float64frombits(uint64(1023+dropped+shift)<<52)
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
