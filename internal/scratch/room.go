package scratch

import (
	"cmp"
	"os"
	"unsafe"
)

// least is the size in bytes from which on room lies in a file: less costs less than a file does.
const least = 16 << 20

// Room returns what gives room to write into, with what has to be held while it is used; it is a tensor.Memory. What is large lies in a
// file in the folder, which has space for all of it from the start: a full disk is an error here, and never of who writes. An empty folder
// is [Folder].
func Room(folder string) func(size int) (room []byte, owner any, err error) {
	return func(size int) ([]byte, any, error) {
		if size < least {
			return aligned(size), nil, nil
		}
		m := &Memory{}
		if err := m.openFull(cmp.Or(folder, Folder()), size); err != nil {
			return nil, nil, failed(size, err)
		}
		return m.bytes, m, nil
	}
}

// Folder returns where large files lie for a while: as TMPDIR says, or else not where many systems hold files in memory.
func Folder() string {
	const onDisk = "/var/tmp"
	if info, err := os.Stat(onDisk); os.Getenv("TMPDIR") == "" && err == nil && info.IsDir() {
		return onDisk
	}
	return os.TempDir()
}

// aligned returns zeros of Go's memory that are aligned for every element type.
func aligned(size int) []byte {
	words := make([]uint64, (size+7)/8)
	if size == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}
