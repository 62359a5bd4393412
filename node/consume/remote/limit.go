package remote

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tally-network/tally/store"
)

const limitName = "TALLY_DATA_LIMIT"

// defaultLimit bounds a source in bytes, unless the user names another limit: as many as records of an order
// have, at most. A stranger's order file fills no disk with it.
const defaultLimit = store.MaxSize

var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

// limitOf reads a limit as people write it: bytes, or with a unit.
func limitOf(text string) (int64, error) {
	if text == "" {
		return defaultLimit, nil
	}
	digits, unit := text, int64(1)
	for _, u := range units {
		if d, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = strings.TrimSpace(d), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%s is %.40q: write bytes, or a number with a unit, as in 64GiB", limitName, text)
	}
	return n * unit, nil
}

// tooLarge says that a source has more bytes than the limit.
func tooLarge(bytes, limit int64) error {
	size := "more"
	if bytes >= 0 {
		size = fmt.Sprintf("%d bytes, more", bytes)
	}
	return fmt.Errorf("it has %s than the limit of %d: name a part of it, or set %s, as in %[3]s=64GiB", size, limit, limitName)
}
