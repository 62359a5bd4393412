package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// forgetPeak lets the peak of memory begin anew, where the system can.
func forgetPeak() bool {
	debug.FreeOSMemory()
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
}

// peakMemory returns the most memory that the process held since forgetPeak, in
// MB, where the system tells.
func peakMemory() (mb float64, ok bool) { return peakOf("self") }

// peakOf returns the most memory that a process has held, in MB, where the system tells.
func peakOf(pid string) (mb float64, ok bool) {
	f, err := os.Open("/proc/" + pid + "/status")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			var kB float64
			_, err := fmt.Sscan(text, &kB)
			return kB * 1024 / 1e6, err == nil
		}
	}
	return 0, false
}

// ranWith runs a command and returns the most memory that it held, in MB, and how it
// ended. It looks every other millisecond, and so may miss what came after.
func ranWith(cmd *exec.Cmd) (mb float64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-over:
			return mb, err
		case <-tick.C:
			if now, ok := peakOf(strconv.Itoa(cmd.Process.Pid)); ok {
				mb = max(mb, now)
			}
		}
	}
}
