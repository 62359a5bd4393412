package auction

// What a chain asks of those who bid, beside what a book takes.

// Handicap returns that of a provider with so many valid units since it last failed: a stranger's asks count for doubt
// bps more than they are, and those of who has shown that it works for ever less.
func Handicap(doubt uint32, record uint64) uint32 {
	return uint32(uint64(doubt) / (min(record, 1<<32) + 1))
}

// Score is what an ask of a provider with a handicap in bps counts as, in the order of sellers and against budgets.
func Score(ask uint64, handicap uint32) uint64 { return ask + (ask*uint64(handicap)+bps-1)/bps }

// Whatever a provider has on sale at once it computes in so many seconds. Who was not measured counts as slow.
const (
	saleSeconds = 4 * 3600
	slow        = 100 // units of 10⁹ operations a second
)

// Sellable returns how many units of 10⁹ operations a provider may have on sale at once that was measured at so many
// operations a second. So nobody sells everything to everybody.
func Sellable(speed uint64) uint64 { return max(speed/1_000_000_000, slow) * saleSeconds }

// maxDoublings is how often the time that a task sits out is doubled.
const maxDoublings = 10

// SitOut returns for how many ms a task takes no part in clearings that has won in one, could not be served, and had failed so
// often before. Otherwise it would keep what it wins from others. The period is at most a week, so that this fits.
func SitOut(period int64, failed uint32) int64 { return period << min(failed, maxDoublings) }

// leastLeft is the percentage of what was sold to a task that must still be there when it is served.
const leastLeft = 90

// Enough reports whether so much of what was sold to a task is left that it can be served: a crumb must not be all of it.
func Enough(left, sold uint64) bool { return left*100 >= sold*leastLeft } // both at most MaxUnits
