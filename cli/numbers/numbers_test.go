package numbers_test

import (
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tally-network/tally/cli/numbers"
)

func TestNumber(t *testing.T) {
	small, all, pause := 3, uint64(7), time.Second
	for _, c := range []struct {
		flag pflag.Value
		text string
		ok   bool
	}{
		{numbers.Within(&small, 0, 5), "0", true}, {numbers.Within(&small, 0, 5), "5", true}, {numbers.Within(&small, 0, 5), "6", false}, {numbers.Within(&small, -2, 5), "-2", true},
		{numbers.Within(&all, 0, math.MaxUint64), "18446744073709551615", true}, {numbers.Within(&all, 0, math.MaxUint64), "18446744073709551616", false},
		{numbers.Within(new(uint32), 1, math.MaxUint32), "4294967296", false}, {numbers.Within(new(uint32), 1, math.MaxUint32), "4294967295", true},
		{numbers.Within(&pause, 0, time.Hour), "1m", true}, {numbers.Within(&pause, 0, time.Hour), "60", false}, {numbers.Within(&pause, 0, time.Hour), "-1s", false}, {numbers.Within(&pause, 0, time.Hour), "2h", false},
	} {
		before := c.flag.String()
		if err := c.flag.Set(c.text); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.text, err)
		} else if err != nil && c.flag.String() != before {
			t.Errorf("%s was refused and set", c.text)
		}
	}
}

func TestText(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 945: "945", 1.0005e6: "1000500", 12345.6: "12346", 0.187812: "0.1878", 9999.6: "10000", 0.00012345: "0.0001235", 3.14159: "3.142"} {
		if got := numbers.Text(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
