//go:build unix

package library

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes the disk of a folder takes.
func freeSpace(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
