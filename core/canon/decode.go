package canon

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by every decoding error.
var ErrMalformed = errors.New("not a canonical encoding")

// Decoder reads canonical encodings from untrusted bytes. The first error
// sticks and makes every later read return a zero value, so a caller checks
// once, with Done or Err.
type Decoder struct {
	b   []byte
	off int
	err error

	room    int // bytes that lists and strings may still take
	bounded bool
}

// NewDecoder reads from b, which must not change while it is in use.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Decode runs read over the whole of b: an error, or bytes left over, fail.
func Decode(b []byte, read func(*Decoder)) error {
	d := NewDecoder(b)
	read(d)
	return d.Done()
}

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Fail records an error unless there is one already. Readers call it for
// values that are well-formed and not allowed.
func (d *Decoder) Fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: at byte %d: %s", ErrMalformed, d.off, fmt.Sprintf(format, args...))
	}
}

// Left returns the number of bytes not read yet.
func (d *Decoder) Left() int { return len(d.b) - d.off }

// Done returns the first error, or an error if bytes are left.
func (d *Decoder) Done() error {
	if d.err == nil && d.Left() != 0 {
		d.Fail("%d bytes left over", d.Left())
	}
	return d.err
}

// Raw reads n bytes. The result aliases the input.
func (d *Decoder) Raw(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n < 0 || n > d.Left() {
		d.Fail("%d bytes wanted, %d left", n, d.Left())
		return nil
	}
	d.off += n
	return d.b[d.off-n : d.off : d.off]
}

// U8 reads one byte.
func (d *Decoder) U8() uint8 {
	if b := d.Raw(1); b != nil {
		return b[0]
	}
	return 0
}

// Bool reads 0 or 1.
func (d *Decoder) Bool() bool {
	v := d.U8()
	if v > 1 {
		d.Fail("boolean is %d", v)
	}
	return v == 1
}

// Uint reads an unsigned integer of at most max.
func (d *Decoder) Uint(max uint64) uint64 {
	v := d.uvarint()
	if v > max {
		d.Fail("%d is above the limit %d", v, max)
		return 0
	}
	return v
}

// Int reads a signed integer.
func (d *Decoder) Int() int64 {
	u := d.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return v
}

func (d *Decoder) uvarint() uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 {
		d.Fail("broken integer")
		return 0
	}
	if n > 1 && d.b[d.off+n-1] == 0 {
		d.Fail("integer is not in its shortest form")
		return 0
	}
	d.off += n
	return v
}

// Fixed64 reads eight little-endian bytes.
func (d *Decoder) Fixed64() uint64 {
	if b := d.Raw(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Blob reads a byte string of at most max bytes. The result aliases the input.
func (d *Decoder) Blob(max int) []byte {
	return d.Raw(int(d.Uint(uint64(max))))
}

// String reads a string of at most max bytes.
func (d *Decoder) String(max int) string {
	b := d.Blob(max)
	afford[byte](d, len(b))
	return string(b)
}

// Hash reads 32 bytes.
func (d *Decoder) Hash() (h Hash) {
	copy(h[:], d.Raw(HashSize))
	return h
}

// Hashes reads a list of at most max hashes.
func (d *Decoder) Hashes(max int) []Hash {
	return ReadList(d, max, HashSize, (*Decoder).Hash)
}

// ReadList reads a list of at most max items, each of at least size bytes, so
// that a claimed length cannot make it allocate more than the input warrants.
func ReadList[T any](d *Decoder, max, size int, read func(*Decoder) T) []T {
	n := int(d.Uint(uint64(max)))
	if size < 1 {
		size = 1
	}
	if n > d.Left()/size {
		d.Fail("list of %d items cannot fit in %d bytes", n, d.Left())
	}
	afford[T](d, n)
	if d.err != nil || n == 0 {
		return nil
	}
	out := make([]T, 0, n)
	for range n {
		out = append(out, read(d))
		if d.err != nil {
			return nil
		}
	}
	return out
}
