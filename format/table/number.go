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
		w, n := eightDigits(binary.LittleEndian.Uint64(b[i:]))
		if n == 0 {
			return m, i
		}
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

// eightDigits returns the number that the first of eight bytes write, as far as they are digits, and how many are.
func eightDigits(w uint64) (v uint64, n int) {
	// They are digits up to the first that is above 9 without the digit 0. The digits move to the
	// end, behind zeros; then two, four and eight of them become one number.
	const high = 0x8080808080808080
	w ^= 0x3030303030303030
	n = bits.TrailingZeros64((w+0x7676767676767676|w)&high) / 8
	w <<= 64 - 8*uint(n)
	w = w * (10<<8 + 1) >> 8 & 0x00ff00ff00ff00ff
	w = w * (100<<16 + 1) >> 16 & 0x0000ffff0000ffff
	return w * (10000<<32 + 1) >> 32, n
}

// ahead is how many bytes the quick readers of numbers look at, at most.
const ahead = 40

// QuickInt64 reads a whole number that a byte ends which is no digit, and returns what stands behind that byte. Most
// numbers are short: others it leaves to [ScanNumber], and returns at.
func QuickInt64(text []byte, at int, end byte) (v int64, next int) {
	if len(text)-at < ahead {
		return 0, at
	}
	w, sign := signed(binary.LittleEndian.Uint64(text[at:]))
	m, n := eightDigits(w)
	if n == 0 || n == 8 || byte(w>>(8*uint(n))) != end {
		return 0, at
	}
	return (int64(m) ^ -int64(sign)) + int64(sign), at + int(sign) + n + 1
}

// signed returns the bytes behind a minus, and 1 if there is one. What it decides is by chance, so it does not branch.
func signed(w uint64) (_, sign uint64) {
	if byte(w) == '-' {
		sign = 1
	}
	return w >> (8 * sign), sign
}

// QuickFloat64 is QuickInt64 for a number that may have a point: the one that [Number.Float64] gives.
func QuickFloat64(text []byte, at int, end byte) (x float64, next int) {
	if len(text)-at < ahead {
		return 0, at
	}
	w, sign := signed(binary.LittleEndian.Uint64(text[at:]))
	m, n := eightDigits(w)
	if n == 0 || n == 8 {
		return 0, at
	}
	next = at + int(sign) + n
	places := 0
	if text[next] == '.' {
		var v uint64
		v, places = eightDigits(binary.LittleEndian.Uint64(text[next+1:]))
		m = m*tens[places] + v
		if places == 8 { // then up to 24: whether it is 16 or fewer is by chance, so both words behind are read
			v, more := eightDigits(binary.LittleEndian.Uint64(text[next+9:]))
			u, last := eightDigits(binary.LittleEndian.Uint64(text[next+17:]))
			full := more / 8
			last *= full
			m = (m*tens[more]+v)*tens[last] + u*uint64(full)
			places = 8 + more + last
		}
		next += 1 + places
	} else if m == 0 {
		sign = 0
	}
	if n += places; n > 19 || text[next] != end {
		return 0, at
	}
	if n < 16 || m == 0 {
		x = float64(int64(m)) / powers[places] // both are exact, and so one rounding is all (Clinger, 1990)
	} else {
		x = quotient(m, tens[places])
	}
	return math.Float64frombits(math.Float64bits(x) | sign<<63), next + 1
}

// tens are powers of ten.
var tens = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

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
// float64. Text is what it was scanned from. A whole number has no −0: it would not have one in a column of integers, and
// what stands in a cell shall not depend on others.
func (n Number) Float64(text []byte) (float64, bool) {
	n.negative = n.negative && !(n.whole && n.mantissa == 0)
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
			x := quotient(n.mantissa, tens[-e])
			if n.negative {
				x = -x
			}
			return x, true
		}
	}
	x, err := strconv.ParseFloat(view(text), 64)
	if n.whole && x == 0 {
		x = 0
	}
	return x, err == nil
}

// quotient returns a/b rounded once; neither is 0, and b at most 1e19. Both are shifted until their highest bits are set. So one division
// gives 64 bits of the quotient, and tells whether anything is left over. Whether a is then the greater, and
// which way the quotient is rounded, is by chance: neither is a branch.
func quotient(a, b uint64) float64 {
	shift := bits.LeadingZeros64(b) - bits.LeadingZeros64(a)
	a <<= bits.LeadingZeros64(a)
	b <<= bits.LeadingZeros64(b)
	greater := 1 ^ below(a, b)
	q, rest := bits.Div64(a>>greater, a<<63&-greater, b)
	const dropped = 64 - 53
	kept := q >> dropped
	more := below(0, q&(1<<(dropped-1)-1)|rest) // than half of the last bit, if there is a half
	kept += q >> (dropped - 1) & (more | kept) & 1
	exponent := 1023 + 52 + dropped - 64 + shift + int(greater)
	return math.Float64frombits(uint64(exponent-1)<<52 + kept) // the highest bit of kept is one of the exponent
}

// below returns 1 if a lies below b, and 0 otherwise.
func below(a, b uint64) uint64 {
	_, borrow := bits.Sub64(a, b, 0)
	return borrow
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
