//go:build !linux

package pages

// Huge does nothing here.
func Huge([]byte) {}
