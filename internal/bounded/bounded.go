// Package bounded reads files that people name. ReadFile returns at most as many bytes as
// its caller takes, and never holds more. What a file system says of a file's size is not
// believed: devices and pipes say none, and a file may grow while it is read.
package bounded

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most limit bytes. A longer one is refused once so many have
// been read.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is longer than %d bytes: name another file", name, limit)
	}
	return b, nil
}
