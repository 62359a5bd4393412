package mem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// HugePages asks for huge pages for the part of b that consists of whole ones. Those
// that have been written to are moved. Smaller buffers stay as they are.
func HugePages(b []byte) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	if len(b) < skip+hugePage {
		return
	}
	b = b[skip:]
	b = b[:len(b)/hugePage*hugePage]
	// Either may be refused: an older system, or no such memory left.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(b, unix.MADV_COLLAPSE)
}
