package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// HashSize is the length of a Hash in bytes.
const HashSize = sha256.Size

// Hash is a domain-separated SHA-256 digest.
type Hash [HashSize]byte

// Sum hashes body under domain d: SHA-256(len(d) ‖ d ‖ body...). The parts of
// the body are concatenated, so they need fixed lengths or an Encoder.
func Sum(d Domain, body ...[]byte) Hash {
	// One buffer for the common small hashes spares the digest allocation.
	n := 1 + len(d)
	for _, b := range body {
		n += len(b)
	}
	var small [160]byte
	if n <= len(small) {
		buf := append(small[:0], byte(len(d)))
		buf = append(buf, d...)
		for _, b := range body {
			buf = append(buf, b...)
		}
		return sha256.Sum256(buf)
	}
	h := sha256.New()
	h.Write([]byte{byte(len(d))})
	h.Write([]byte(d))
	for _, b := range body {
		h.Write(b)
	}
	var out Hash
	h.Sum(out[:0])
	return out
}

// Begin appends what goes before a body under domain d, so that many bodies can
// be hashed from one buffer: Sum(d, body) is SumOf(append(Begin(nil, d), body...)).
func Begin(dst []byte, d Domain) []byte { return append(append(dst, byte(len(d))), d...) }

// SumOf hashes what Begin has begun.
func SumOf(message []byte) Hash { return sha256.Sum256(message) }

// IsZero reports whether h is the zero hash, which no value has.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns h in lower-case hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Short returns the first eight hexadecimal digits, for people.
func (h Hash) Short() string { return hex.EncodeToString(h[:4]) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	v, err := ParseHash(string(text))
	if err != nil {
		return err
	}
	*h = v
	return nil
}

// ParseHash reads 64 hexadecimal digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*HashSize {
		return h, fmt.Errorf("hash %.80q has %d digits, want %d", s, len(s), 2*HashSize)
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("hash %q: %w", s, err)
	}
	return h, nil
}

// HashOf reads a hash from its 32 bytes.
func HashOf(b []byte) (Hash, error) {
	var h Hash
	if len(b) != HashSize {
		return h, fmt.Errorf("hash has %d bytes, want %d", len(b), HashSize)
	}
	copy(h[:], b)
	return h, nil
}
