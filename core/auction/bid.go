package auction

// What a chain asks of those who bid, beside what a book takes.

// Handicap returns by how many bps a provider's asks count for more than they are. It is doubt bps for a stranger, and
// falls with record, the valid units since its last failure.
func Handicap(doubt uint32, record uint64) uint32 {
	return uint32(uint64(doubt) / (min(record, 1<<32) + 1))
}

// Score is what an ask of a provider with a handicap in bps counts as, in the order of sellers and against budgets.
func Score(ask uint64, handicap uint32) uint64 { return ask + (ask*uint64(handicap)+bps-1)/bps }

// A provider may have on sale what it computes in saleSeconds. One measured below slow, or not at all, counts as slow.
const (
	saleSeconds = 4 * 3600
	slow        = 100 // units of 10⁹ operations a second
)

// Sellable returns how many units of 10⁹ operations a provider may have on sale at once that was measured at so many
// operations a second. So nobody sells everything to everybody.
func Sellable(speed uint64) uint64 { return max(speed/1_000_000_000, slow) * saleSeconds }

// maxDoublings is how often the time that a task sits out is doubled.
const maxDoublings = 10

// SitOut returns for how many ms a task stays out of clearings after it won and could not be served: else it would keep
// what it wins from others. period is in ms, at most a week so that this fits; failed counts earlier failures.
func SitOut(period int64, failed uint32) int64 { return period << min(failed, maxDoublings) }

// leastLeft is the percentage of what was sold to a task that must still be there when it is served.
const leastLeft = 90

// Enough reports whether so much of what was sold to a task is left that it can be served: a crumb must not be all of it.
func Enough(left, sold uint64) bool { return left*100 >= sold*leastLeft } // both at most MaxUnits
