package canon

import (
	"errors"
	"fmt"
	"math"
)

// ErrUnreadable is wrapped by the errors of Encoded.
var ErrUnreadable = errors.New("it could not be read again")

// Codec walks the fields of a value in their order and either writes or reads
// them, so that one function states both directions. Both have the same limits,
// and of each the first error sticks.
type Codec struct {
	enc *Encoder
	dec *Decoder

	strict bool  // in writing: keep to the limits of parts with their own encoder, too
	err    error // of writing
}

// Coded is a value whose fields a Codec can walk.
type Coded interface{ Code(*Codec) }

// Marshal returns the canonical encoding of v, which keeps its limits: it was
// read, or checked. Of another it returns bytes that Unmarshal refuses.
func Marshal(v Coded) []byte {
	var e Encoder
	v.Code(&Codec{enc: &e})
	return e.b
}

// Encoded returns the canonical encoding of v, or an error if Unmarshal would
// refuse it. What is stored is encoded by it.
func Encoded(v Coded) ([]byte, error) {
	var e Encoder
	c := Codec{enc: &e, strict: true}
	v.Code(&c)
	return e.b, c.err
}

// Unmarshal reads the whole of b into v, which must be a zero value.
func Unmarshal(b []byte, v Coded) error {
	d := NewDecoder(b)
	v.Code(&Codec{dec: d})
	return d.Done()
}

// Reading reports whether fields are read, not written.
func (c *Codec) Reading() bool { return c.dec != nil }

// Tail reports whether a last part follows, which values without it leave out: so what was encoded before
// there was such a part is still read. In writing it is there if the value has it, in reading if bytes are
// left. Whoever reads it refuses an empty one, so that there is one encoding of each value.
func (c *Codec) Tail(has bool) bool {
	if c.dec != nil {
		return c.dec.Left() > 0
	}
	return has
}

// Fail records an error unless there is one already.
func (c *Codec) Fail(format string, args ...any) {
	switch {
	case c.dec != nil:
		c.dec.Fail(format, args...)
	case c.err == nil:
		c.err = fmt.Errorf("%w: at byte %d: %s", ErrUnreadable, len(c.enc.b), fmt.Sprintf(format, args...))
	}
}

// limit fails if more than max is about to be written.
func (c *Codec) limit(n, max int) {
	if c.enc != nil && (n < 0 || n > max) {
		c.Fail("%d is not within the limit %d", n, max)
	}
}

// field writes or reads one field.
func field[T any](c *Codec, p *T, write func(*Encoder, T), read func(*Decoder) T) {
	if c.enc != nil {
		write(c.enc, *p)
	} else {
		*p = read(c.dec)
	}
}

// U8 codes one byte.
func (c *Codec) U8(p *uint8) { field(c, p, (*Encoder).U8, (*Decoder).U8) }

// Bool codes a boolean.
func (c *Codec) Bool(p *bool) { field(c, p, (*Encoder).Bool, (*Decoder).Bool) }

// Hash codes a hash.
func (c *Codec) Hash(p *Hash) { field(c, p, (*Encoder).Hash, (*Decoder).Hash) }

// U64 codes an unsigned integer.
func (c *Codec) U64(p *uint64) {
	field(c, p, (*Encoder).Uint, func(d *Decoder) uint64 { return d.Uint(math.MaxUint64) })
}

// I64 codes a signed integer.
func (c *Codec) I64(p *int64) { field(c, p, (*Encoder).Int, (*Decoder).Int) }

// Int codes an int between 0 and max.
func (c *Codec) Int(p *int, max int) {
	c.limit(*p, max)
	field(c, p, func(e *Encoder, v int) { e.Uint(uint64(v)) }, func(d *Decoder) int { return int(d.Uint(uint64(max))) })
}

// String codes a string of at most max bytes.
func (c *Codec) String(p *string, max int) {
	c.limit(len(*p), max)
	field(c, p, (*Encoder).String, func(d *Decoder) string { return d.String(max) })
}

// Blob codes a byte string of at most max bytes. What is read aliases the input.
func (c *Codec) Blob(p *[]byte, max int) {
	c.limit(len(*p), max)
	field(c, p, (*Encoder).Blob, func(d *Decoder) []byte { return d.Blob(max) })
}

// Hashes codes a list of at most max hashes.
func (c *Codec) Hashes(p *[]Hash, max int) {
	c.limit(len(*p), max)
	field(c, p, (*Encoder).Hashes, func(d *Decoder) []Hash { return d.Hashes(max) })
}

// Seq codes a list of at most max items, each of at least size bytes.
func Seq[T any](c *Codec, p *[]T, max, size int, item func(*Codec, *T)) {
	if c.enc != nil {
		c.limit(len(*p), max)
		c.enc.Uint(uint64(len(*p)))
		first := len(c.enc.b)
		for i := range *p {
			item(c, &(*p)[i])
		}
		if got := len(c.enc.b) - first; got < len(*p)*size {
			c.Fail("%d items of %d bytes are shorter than %d each", len(*p), got, size)
		}
		return
	}
	*p = ReadList(c.dec, max, size, func(*Decoder) (v T) {
		item(c, &v)
		return v
	})
}

// With codes a part that has its own encoder and decoder, whose limits only the
// decoder knows.
func With[T any](c *Codec, p *T, write func(T, *Encoder), read func(*Decoder) T) {
	first := 0
	if c.enc != nil {
		first = len(c.enc.b)
	}
	field(c, p, func(e *Encoder, v T) { write(v, e) }, read)
	if c.strict && c.err == nil {
		d := NewDecoder(c.enc.b[first:])
		read(d)
		if err := d.Done(); err != nil {
			c.Fail("%v", err)
		}
	}
}
