// Package scratch gives memory of any extent that lies in a file without a name. What is never written
// takes no space, and what nobody reads leaves the machine's memory again.
//
// Call [New], write with [Mapping.WriteAt], and read [Mapping.Bytes]. [Allocator] gives memory that is written as any other is.
//
// Invariants: the file is gone with the process, however that ends. A full disk is an error of
// WriteAt or of an Allocator, and never of who reads. Systems that cannot map files hold all of it in memory.
package scratch

import "fmt"

// Mapping is so many bytes, of zeros at first. It must be held by whoever reads its bytes.
type Mapping struct {
	bytes []byte
	file  file
}

// New returns memory of the given size, in a folder.
func New(folder string, size int64) (*Mapping, error) {
	if size < 1 || int64(int(size)) != size {
		return nil, fmt.Errorf("scratch memory of %d bytes", size)
	}
	m := &Mapping{}
	if err := m.open(folder, int(size)); err != nil {
		return nil, failed(int(size), err)
	}
	return m, nil
}

func failed(size int, err error) error {
	return fmt.Errorf("scratch memory of %d bytes: %w", size, err)
}

// Bytes returns all of it, which only WriteAt may change.
func (m *Mapping) Bytes() []byte { return m.bytes }

// WriteAt implements io.WriterAt, within the size.
func (m *Mapping) WriteAt(b []byte, at int64) (int, error) {
	if at < 0 || at > int64(len(m.bytes)-len(b)) {
		return 0, fmt.Errorf("bytes %d to %d of scratch memory of %d", at, at+int64(len(b))-1, len(m.bytes))
	}
	return m.write(b, at)
}
