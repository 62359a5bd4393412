package cli

import (
	"errors"

	"golang.org/x/sys/windows"
)

// setNice lowers the priority of this process: Windows knows two steps.
func setNice(n int) error {
	if n < 0 || n > 19 {
		return errors.New("give 0 to 19")
	}
	class := uint32(windows.BELOW_NORMAL_PRIORITY_CLASS)
	if n >= 15 {
		class = windows.IDLE_PRIORITY_CLASS
	}
	return windows.SetPriorityClass(windows.CurrentProcess(), class)
}
