package mem

import "golang.org/x/sys/unix"

// Physical returns the bytes of memory that the machine has.
func Physical() int {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil || i.Totalram == 0 {
		return unknownPhysical
	}
	return int(uint64(i.Totalram) * uint64(i.Unit))
}
