package mem

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tally-network/tally/engine/cpu/tuning"
)

// HugePages asks for huge pages for the part of b that consists of whole ones. Those
// that have been written to are moved. Smaller buffers stay as they are.
func HugePages(b []byte) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int(-at % hugePage)
	if len(b) >= skip+hugePage {
		advise(at+uintptr(skip), (len(b)-skip)/hugePage*hugePage)
		runtime.KeepAlive(b)
	}
}

// SharedHugePages asks for huge pages for all of b. Those at both ends it shares with its neighbours in Go's heap, whose memory stays what
// it is. Small buffers stay as they are.
func SharedHugePages(b []byte) {
	if len(b) >= tuning.LeastHuge {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		before := at % hugePage
		advise(at-before, RoundUp(int(before)+len(b), hugePage))
		runtime.KeepAlive(b)
	}
}

// advise asks for huge pages from an address on. It is no pointer here: what lies at the ends may be no object. Either call may be
// refused: an older system, no such memory left, or pages at an end that are nobody's.
func advise(at uintptr, size int) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, uintptr(size), unix.MADV_HUGEPAGE)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, uintptr(size), unix.MADV_COLLAPSE)
}
