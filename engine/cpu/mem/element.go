package mem

// Float is the element types that compute in floating point.
type Float interface{ float32 | float64 }

// Integer is the element types that wrap; halves and booleans, too, are moved as such.
type Integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// Ordered is every element type that loops in Go compute with.
type Ordered interface{ Float | Integer }
