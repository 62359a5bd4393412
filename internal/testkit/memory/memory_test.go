package memory

import (
	"runtime"
	"testing"
)

func TestPeakIsWhatIsHeldAtOnce(t *testing.T) {
	const MiB = 1 << 20
	var kept [][][]byte // what a run leaves behind the next must not let go of
	work := func() {
		for range 64 {
			garbage := make([]byte, MiB)
			runtime.KeepAlive(garbage)
		}
		var held [][]byte
		for range 24 {
			held = append(held, make([]byte, MiB))
		}
		held = held[:1:1]
		for range 64 {
			held[0] = make([]byte, MiB)
		}
		kept = append(kept, held)
	}
	if got := Peak(work, func(p int64) bool { return p <= 28*MiB }); got < 20*MiB || got > 28*MiB {
		t.Errorf("24 MiB are held at once, measured %d", got)
	}
	if got := Allocated(work); got < 152*MiB || got > 160*MiB {
		t.Errorf("152 MiB are allocated, measured %d", got)
	}
	runtime.KeepAlive(kept)
}
