package mem

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tally-network/tally/engine/cpu/tuning"
)

// HugePages asks for huge pages for b. At both ends b shares them with its neighbours in Go's heap, whose memory stays what it is.
// Pages that have been written to are moved. Small buffers stay as they are.
func HugePages(b []byte) {
	if len(b) < tuning.LeastHuge {
		return
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	from := at &^ (hugePage - 1)
	size := uintptr(RoundUp(int(at-from)+len(b), hugePage))
	// Either may be refused: an older system, no such memory left, or pages at an end that are nobody's. Addresses are no pointers here, for what lies
	// at the ends may be no object.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, size, unix.MADV_HUGEPAGE)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, size, unix.MADV_COLLAPSE)
	runtime.KeepAlive(b)
}
