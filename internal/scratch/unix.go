//go:build unix

package scratch

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

type file = *os.File

func (m *Mapping) open(folder string, size int) error {
	return m.openBy(folder, size, unix.PROT_READ, func() error { return m.file.Truncate(int64(size)) })
}

func (m *Mapping) openAllocated(folder string, size int) error {
	return m.openBy(folder, size, unix.PROT_READ|unix.PROT_WRITE, func() error { return allocate(m.file, int64(size)) })
}

// openBy maps a file without a name, once it has its size.
func (m *Mapping) openBy(folder string, size, protection int, extend func() error) (err error) {
	if m.file, err = os.CreateTemp(folder, "scratch-"); err != nil {
		return err
	}
	if err = errors.Join(os.Remove(m.file.Name()), extend()); err == nil {
		m.bytes, err = unix.Mmap(int(m.file.Fd()), 0, size, protection, unix.MAP_SHARED)
	}
	if err != nil {
		return errors.Join(err, m.file.Close())
	}
	runtime.AddCleanup(m, func(b []byte) { _ = unix.Munmap(b) }, m.bytes)
	return nil
}

func (m *Mapping) write(b []byte, at int64) (int, error) { return m.file.WriteAt(b, at) }

// fill gives a file space by zeros that are written.
func fill(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}
