//go:build unix

package cli

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// setNice lowers the priority of this process. Linux keeps one for each thread;
// new threads take that of their maker.
func setNice(n int) error {
	if n < 0 || n > 19 {
		return errors.New("give 0 to 19")
	}
	err := unix.Setpriority(unix.PRIO_PROCESS, 0, n)
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if id, e := strconv.Atoi(t.Name()); e == nil {
			err = errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, id, n))
		}
	}
	return err
}
