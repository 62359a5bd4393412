//go:build !unix

package weights

import (
	"fmt"
	"os"
)

// mapFile reads a file, which must have so many bytes.
func mapFile(name string, size int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || i.Size() != int64(size) {
		return nil, fmt.Errorf("%s has not %d bytes", name, size)
	}
	all := bytesOf(make([]uint64, (size+7)/8))[:size]
	_, err = f.ReadAt(all, 0)
	return all, err
}

// newMapped returns what follows the header of a file.
func newMapped(all []byte) *Packed { return &Packed{all[headerBytes:]} }
