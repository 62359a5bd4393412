//go:build unix && !linux

package scratch

import "os"

// allocate gives an empty file space for so many bytes.
func allocate(f *os.File, size int64) error { return fill(f, size) }
