// Package numbers reads numbers that people give as flags, and writes numbers for people. Declare each flag with [Within]; [Check]
// looks at flags of other programs. [Text] writes a number, [Several] a number of things.
//
// Invariant: what is no number, or is out of bounds, is refused, and the flag keeps what it had.
package numbers

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Number is a flag that takes a number, or a time, within bounds. All numeric
// flags of ours are of this type; a test holds that.
type Number[T ~int | ~int64 | ~uint32 | ~uint64 | ~float64] struct {
	to          *T
	least, most T
}

// Within returns the flag for a number between least and most, both included.
// What to holds is its default.
func Within[T ~int | ~int64 | ~uint32 | ~uint64 | ~float64](to *T, least, most T) pflag.Value {
	return &Number[T]{to, least, most}
}

// String implements pflag.Value.
func (n *Number[T]) String() string {
	if n.to == nil || *n.to == 0 {
		return "0"
	}
	return fmt.Sprint(*n.to)
}

// Type implements pflag.Value.
func (n *Number[T]) Type() string {
	if _, ok := any(n.least).(time.Duration); ok {
		return "duration"
	}
	return "number"
}

// Set implements pflag.Value.
func (n *Number[T]) Set(text string) error {
	var v T
	var err error
	switch to := any(&v).(type) {
	case *time.Duration:
		*to, err = time.ParseDuration(text)
	case *uint64:
		*to, err = strconv.ParseUint(text, 10, 64)
	case *float64:
		if *to, err = strconv.ParseFloat(text, 64); strings.ContainsAny(text, "xX_") {
			err = strconv.ErrSyntax
		}
	default:
		var i int64
		i, err = strconv.ParseInt(text, 10, 64)
		if v = T(i); int64(v) != i {
			err = strconv.ErrRange
		}
	}
	if err != nil || !(v >= n.least && v <= n.most) { // NaN is neither
		return fmt.Errorf("give a %s between %v and %v", n.Type(), n.least, n.most)
	}
	*n.to = v
	return nil
}

// Check refuses numbers below zero, and such that are none, in flags
// that are not ours: the SDK's commands take any.
func Check(f *pflag.FlagSet) (err error) {
	f.Visit(func(x *pflag.Flag) {
		var v float64
		switch x.Value.Type() {
		case "int", "int32", "int64", "float64":
			v, _ = strconv.ParseFloat(x.Value.String(), 64)
		case "duration":
			d, _ := time.ParseDuration(x.Value.String())
			v = float64(d)
		}
		if err == nil && (v < 0 || math.IsNaN(v) || math.IsInf(v, 0)) {
			err = fmt.Errorf("--%s %s: give a number that is not below zero", x.Name, x.Value)
		}
	})
	return err
}

// Text writes a number with four digits that count, and no exponent.
func Text(x float64) string {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return fmt.Sprint(x)
	}
	whole := int(math.Floor(math.Log10(math.Abs(x)))) + 1
	unit := math.Pow(10, float64(4-whole))
	if whole >= 4 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(math.Round(x*unit)/unit, 'f', -1, 64)
}

// Several is a number of things in words.
func Several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
