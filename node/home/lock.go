package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tally-network/tally/internal/filelock"
)

const lockFile = "lock"

// Lock keeps other processes out of a directory. It ends with the process.
type Lock struct{ file *os.File }

// BusyError says that another process uses a directory.
type BusyError struct {
	Dir string
	PID int // zero if it is not known
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("%s is in use by process %d", e.Dir, e.PID)
}

// Acquire locks a directory, or returns a *BusyError.
func Acquire(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if taken, err := filelock.Try(f); taken || err != nil {
		if taken {
			err = &BusyError{dir, holder(f)}
		} else {
			err = fmt.Errorf("lock %s: %w", dir, err)
		}
		return nil, errors.Join(err, f.Close())
	}
	// For people and messages alone; the lock is the kernel's.
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return &Lock{f}, nil
}

// Release unlocks the directory.
func (l *Lock) Release() error { return l.file.Close() }

func holder(f *os.File) int {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	return pid
}
