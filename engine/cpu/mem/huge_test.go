package mem_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/engine/cpu/mem"
)

// What lies in a buffer stays, whatever its place and length, written before or
// not.
func TestHugePagesKeepWhatIsThere(t *testing.T) {
	const page = 2 << 20
	for _, size := range []int{0, 1, page - 1, page, page + 1, 2*page - 1, 5*page + 12345} {
		for _, skip := range []int{0, 1, 4096} {
			t.Run(fmt.Sprintf("%d+%d", skip, size), func(t *testing.T) {
				all := make([]byte, skip+size)
				b := all[skip:]
				for i := range b[:size/2] {
					b[i] = byte(i * 31)
				}
				mem.HugePages(b)
				mem.SharedHugePages(b)
				for i, x := range b {
					if want := byte(i * 31); i < size/2 && x != want || i >= size/2 && x != 0 {
						t.Fatalf("byte %d is %d", i, x)
					}
				}
			})
		}
	}
}
