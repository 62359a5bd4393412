//go:build !unix

package weights

import "os"

// mapFile reads the first bytes of a file, so many.
func mapFile(f *os.File, size int) ([]byte, error) {
	all := bytesOf(make([]uint64, (size+7)/8))[:size]
	_, err := f.ReadAt(all, 0)
	return all, err
}

// newMapped returns what follows the header of a file.
func newMapped(all []byte) *Packed { return &Packed{all[headerBytes:]} }
