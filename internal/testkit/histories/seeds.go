package histories

import (
	"os"
	"strconv"
	"testing"
)

// few are the histories that each test plays unless it is asked for more.
const few = 1

// Seeds are the first seed to play, and how many: TALLY_SEED and TALLY_HISTORIES ask for others.
func Seeds(tb testing.TB) (first, n uint64) {
	tb.Helper()
	n = few
	for name, to := range map[string]*uint64{"TALLY_SEED": &first, "TALLY_HISTORIES": &n} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		var err error
		if *to, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatal(err)
		}
	}
	return first, n
}
