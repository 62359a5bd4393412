package table_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/table"
)

// numerals are how numbers are written that readers must agree on.
func numerals(r *rand.Rand) string {
	sign := []string{"", "", "-", "+"}[r.IntN(4)]
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0123456789"[r.IntN(10)]
		}
		return string(b)
	}
	switch r.IntN(6) {
	case 0:
		return sign + strings.Repeat("0", r.IntN(3)) + digits(r.IntN(10))
	case 1:
		return sign + digits(r.IntN(10)) + "." + digits(r.IntN(26))
	case 2:
		return strconv.FormatFloat(r.NormFloat64(), 'f', -1, 64)
	case 3: // halfway between two floats, and beside it
		n := 1<<53 + 2*r.Uint64N(1<<55) + 1
		s := strconv.FormatUint(n+r.Uint64N(3)-1, 10)
		point := 1 + r.IntN(7)
		return s[:point] + "." + s[point:]
	case 4:
		return sign + "0." + strings.Repeat("0", r.IntN(8)) + strconv.FormatUint(1<<53+r.Uint64N(1<<60), 10)
	}
	return sign + digits(1) + strings.Repeat("e", r.IntN(2)) + digits(r.IntN(3))
}

// The quick readers of numbers give what strconv gives, or leave the number to others; and others agree.
func TestNumbersAreThoseOfStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	quick := 0
	for range 200_000 {
		s := numerals(r)
		text := append(append([]byte(s), ','), bytes.Repeat([]byte{"0,x."[r.IntN(4)]}, 40)...)
		want, err := strconv.ParseFloat(s, 64)
		if want == 0 && !strings.ContainsAny(s, ".e") {
			want = 0 // a whole number has no −0
		}
		if x, next := table.QuickFloat64(text, 0, ','); next > 0 {
			if quick++; err != nil || next != len(s)+1 || math.Float64bits(x) != math.Float64bits(want) {
				t.Fatalf("%s is %v, %d bytes, want %v (%v)", s, x, next, want, err)
			}
		}
		whole, err := strconv.ParseInt(s, 10, 64)
		if v, next := table.QuickInt64(text, 0, ','); next > 0 {
			if quick++; err != nil || next != len(s)+1 || v != whole {
				t.Fatalf("%s is %d, %d bytes, want %d (%v)", s, v, next, whole, err)
			}
		}
		if n, end := table.ScanNumber(text, 0); end == len(s) && end > 0 {
			if x, ok := n.Float64([]byte(s)); !ok || math.Float64bits(x) != math.Float64bits(want) {
				t.Fatalf("%s is %v (%v), want %v", s, x, ok, want)
			}
		}
	}
	if quick < 100_000 {
		t.Errorf("%d of the numbers were read the quick way", quick)
	}
}
