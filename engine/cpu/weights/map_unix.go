//go:build unix

package weights

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mapFile maps the first bytes of a file, so many.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

// newMapped returns what follows the header of a mapped file, which is unmapped once nobody
// holds it.
func newMapped(all []byte) *Packed {
	p := &Packed{all[headerBytes:]}
	runtime.AddCleanup(p, func(all []byte) { _ = unix.Munmap(all) }, all)
	return p
}
