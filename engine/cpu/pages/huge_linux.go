package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Huge asks for huge pages for the part of b that consists of whole ones. Those
// that have been written to are moved. Smaller buffers stay as they are.
func Huge(b []byte) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % size)
	if len(b) < skip+size {
		return
	}
	b = b[skip:]
	b = b[:len(b)/size*size]
	// Either may be refused: an older system, or no such memory left.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(b, unix.MADV_COLLAPSE)
}
