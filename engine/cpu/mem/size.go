package mem

// Sizes in bytes.
const (
	Word    = 4 // of a float32 or an int32, and of an element of packed panels
	IntSize = 8 // of a position in a table that micro-kernels read

	// CacheLine is what ranges of an arena are aligned to: a line of the cache, and
	// the widest register.
	CacheLine = 64

	// hugePage is the size of a huge page.
	hugePage = 2 << 20

	// unknownPhysical is the memory of a machine that does not tell.
	unknownPhysical = 4 << 30
)

// MaxLanes is the float32 values in the widest register of any set of kernels. A buffer
// whose last register may be written in full has as many elements to spare.
const MaxLanes = 16

// RoundUp returns the least multiple of unit that is not below x.
func RoundUp(x, unit int) int { return (x + unit - 1) / unit * unit }

// CeilDiv returns x/y rounded up, or 0 if x is negative; y is positive.
func CeilDiv(x, y int) int {
	if x <= 0 {
		return 0
	}
	return (x-1)/y + 1
}

// EvenPart returns the size of the next part when n rows or columns are cut into as few
// parts of at most most as possible. They are nearly equal, and all but the last are
// multiples of unit.
func EvenPart(n, most, unit int) int {
	return min(RoundUp(CeilDiv(n, CeilDiv(n, most)), unit), n)
}
