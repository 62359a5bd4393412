package canon

import "math"

// Codec walks the fields of a value in their order and either writes or reads
// them, so that one function states both directions.
type Codec struct {
	enc *Encoder
	dec *Decoder
}

// Coded is a value whose fields a Codec can walk.
type Coded interface{ Code(*Codec) }

// Marshal returns the canonical encoding of v.
func Marshal(v Coded) []byte {
	var e Encoder
	v.Code(&Codec{enc: &e})
	return e.b
}

// Unmarshal reads the whole of b into v, which must be a zero value.
func Unmarshal(b []byte, v Coded) error {
	d := NewDecoder(b)
	v.Code(&Codec{dec: d})
	return d.Done()
}

// Writing reports whether the codec writes.
func (c *Codec) Writing() bool { return c.enc != nil }

// Fail makes reading fail; it does nothing when writing.
func (c *Codec) Fail(format string, args ...any) {
	if c.dec != nil {
		c.dec.Fail(format, args...)
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
	field(c, p, func(e *Encoder, v int) { e.Uint(uint64(v)) }, func(d *Decoder) int { return int(d.Uint(uint64(max))) })
}

// String codes a string of at most max bytes.
func (c *Codec) String(p *string, max int) {
	field(c, p, (*Encoder).String, func(d *Decoder) string { return d.String(max) })
}

// Blob codes a byte string of at most max bytes. What is read aliases the input.
func (c *Codec) Blob(p *[]byte, max int) {
	field(c, p, (*Encoder).Blob, func(d *Decoder) []byte { return d.Blob(max) })
}

// Hashes codes a list of at most max hashes.
func (c *Codec) Hashes(p *[]Hash, max int) {
	field(c, p, (*Encoder).Hashes, func(d *Decoder) []Hash { return d.Hashes(max) })
}

// Seq codes a list of at most max items, each of at least size bytes.
func Seq[T any](c *Codec, p *[]T, max, size int, item func(*Codec, *T)) {
	if c.enc != nil {
		c.enc.Uint(uint64(len(*p)))
		for i := range *p {
			item(c, &(*p)[i])
		}
		return
	}
	*p = ReadList(c.dec, max, size, func(*Decoder) (v T) {
		item(c, &v)
		return v
	})
}

// With codes a part that has its own encoder and decoder.
func With[T any](c *Codec, p *T, write func(T, *Encoder), read func(*Decoder) T) {
	field(c, p, func(e *Encoder, v T) { write(v, e) }, read)
}
