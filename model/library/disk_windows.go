package library

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// freeSpace returns how many bytes the disk of a folder takes.
func freeSpace(folder string) (int64, error) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(min(free, 1<<62)), err
}

// inodeOf numbers a file on its disk, which Windows does not tell by its name.
func inodeOf(fs.FileInfo) uint64 { return 0 }
