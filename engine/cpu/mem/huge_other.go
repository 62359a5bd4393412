//go:build !linux

package mem

// HugePages does nothing here.
func HugePages([]byte) {}

// SharedHugePages does nothing here.
func SharedHugePages([]byte) {}
