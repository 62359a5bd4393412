//go:build unix

package scratch

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

type file = *os.File

func (m *Memory) open(folder string, size int) (err error) {
	if m.file, err = os.CreateTemp(folder, "scratch-"); err != nil {
		return err
	}
	if err = errors.Join(os.Remove(m.file.Name()), m.file.Truncate(int64(size))); err == nil {
		m.bytes, err = unix.Mmap(int(m.file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return errors.Join(err, m.file.Close())
	}
	runtime.AddCleanup(m, func(b []byte) { _ = unix.Munmap(b) }, m.bytes)
	return nil
}

func (m *Memory) write(b []byte, at int64) (int, error) { return m.file.WriteAt(b, at) }
