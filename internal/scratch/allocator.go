package scratch

import (
	"cmp"
	"os"
	"unsafe"
)

// least is the size in bytes from which on room lies in a file: less costs less than a file does.
const least = 16 << 20

// Allocator returns memory for tensors. From 16 MiB on it is mapped from an unlinked file in the folder; empty: [TempDir]. Its space is
// allocated first, so a full disk is an error here, and no SIGBUS later.
func Allocator(folder string) func(size int) (b []byte, owner any, err error) {
	return func(size int) ([]byte, any, error) {
		if size < least {
			return aligned(size), nil, nil
		}
		m := &Mapping{}
		if err := m.openAllocated(cmp.Or(folder, TempDir()), size); err != nil {
			return nil, nil, failed(size, err)
		}
		return m.bytes, m, nil
	}
}

// TempDir returns TMPDIR, or else /var/tmp: /tmp is often held in memory.
func TempDir() string {
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
