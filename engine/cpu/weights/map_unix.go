//go:build unix

package weights

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mapFile maps a file, which must have so many bytes.
func mapFile(name string, size int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || i.Size() != int64(size) {
		return nil, fmt.Errorf("%s has not %d bytes", name, size)
	}
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

// newMapped returns what follows the header of a mapped file, which is unmapped once nobody
// holds it.
func newMapped(all []byte) *Packed {
	p := &Packed{all[headerBytes:]}
	runtime.AddCleanup(p, func(all []byte) { _ = unix.Munmap(all) }, all)
	return p
}
