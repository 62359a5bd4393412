// Package quantity reads what an order file says of memory, speed and power: numbers with a unit.
//
// Have a field be [Bytes], [Speed] or [Power].
//
// Invariants: a number without a unit is refused, for nobody can tell which is meant. What is written of a quantity is read as the same.
//
// Source: docs/glossary.md.
package quantity

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// unit is a unit of a quantity.
type unit struct {
	name string
	size uint64
}

var (
	byteUnits  = []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}}
	speedUnits = []unit{{"TFLOP/s", 1e12}, {"TFLOPS", 1e12}, {"GFLOP/s", 1e9}, {"GFLOPS", 1e9}}
	powerUnits = []unit{{"ut", 1e6}}
)

// Bytes is an amount of memory, written like 16GiB or 16GB.
type Bytes uint64

// Speed is in FLOP/s, written like 5TFLOP/s or 800GFLOP/s.
type Speed uint64

// Power is computing power in millionths of a ut, written like 2.5ut.
type Power uint64

// UnmarshalJSON reads a text with a unit.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	return unmarshalQuantity((*uint64)(b), text, "16GiB", byteUnits)
}

// UnmarshalJSON reads a text with a unit.
func (s *Speed) UnmarshalJSON(text []byte) error {
	return unmarshalQuantity((*uint64)(s), text, "5TFLOP/s", speedUnits)
}

// UnmarshalJSON reads a text with a unit.
func (p *Power) UnmarshalJSON(text []byte) error {
	return unmarshalQuantity((*uint64)(p), text, "2.5ut", powerUnits)
}

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) {
	return quantityText(uint64(b), byteUnits[len(byteUnits)-1]), nil
}

// MarshalText implements encoding.TextMarshaler.
func (s Speed) MarshalText() ([]byte, error) { return quantityText(uint64(s), speedUnits[2]), nil }

// MarshalText implements encoding.TextMarshaler.
func (p Power) MarshalText() ([]byte, error) { return quantityText(uint64(p), powerUnits[0]), nil }

// unmarshalQuantity reads a JSON text. It refuses a number: nobody can tell which unit is meant.
func unmarshalQuantity(to *uint64, text []byte, example string, units []unit) error {
	bad := fmt.Errorf("%.40s: write it like %s", text, example)
	said, err := strconv.Unquote(string(text))
	if err != nil {
		return bad
	}
	v, ok := parseQuantity(said, units)
	if !ok {
		return bad
	}
	*to = v
	return nil
}

// parseQuantity reads a decimal number and its unit. Parts of the smallest unit are dropped.
func parseQuantity(said string, units []unit) (v uint64, ok bool) {
	i := slices.IndexFunc(units, func(u unit) bool { return strings.HasSuffix(said, u.name) })
	if i < 0 {
		return 0, false
	}
	whole, part, dot := strings.Cut(strings.TrimSpace(strings.TrimSuffix(said, units[i].name)), ".")
	if !dot {
		part = "0"
	}
	const digits = 12
	w, err := strconv.ParseUint(whole, 10, 64)
	f, errPart := strconv.ParseUint((part + strings.Repeat("0", digits))[:digits], 10, 64)
	if err != nil || errPart != nil || part == "" || len(part) > digits {
		return 0, false
	}
	over, high := bits.Mul64(w, units[i].size)
	hi, lo := bits.Mul64(f, units[i].size)
	low, _ := bits.Div64(hi, lo, 1e12) // f is below that, so the quotient is below a unit
	if over != 0 || low > math.MaxUint64-high {
		return 0, false
	}
	return high + low, true
}

// quantityText writes a quantity in a unit of a power of ten, exactly.
func quantityText(v uint64, u unit) []byte {
	digits := len(strconv.FormatUint(u.size, 10)) - 1
	s := fmt.Sprintf("%d.%0*d", v/u.size, digits, v%u.size)
	return []byte(strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + u.name)
}
