package scratch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives an empty file space for so many bytes.
func allocate(f *os.File, size int64) error {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fill(f, size)
	}
	return err
}
