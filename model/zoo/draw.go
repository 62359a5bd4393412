package zoo

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strings"
)

// fill gives a parameter, by its name, its first values.
type fill func(v []float32, seed uint64, name string)

// all fills with one number.
func all(x float32) fill {
	return func(v []float32, _ uint64, _ string) {
		for i := range v {
			v[i] = x
		}
	}
}

// normal fills with nearly normal numbers.
func normal(deviation float64) fill {
	return func(v []float32, seed uint64, name string) { Normal(v, seed, name, deviation) }
}

// uniform fills with numbers below 1/√terms, as PyTorch does for sums of so many terms.
func uniform(terms int) fill {
	return func(v []float32, seed uint64, name string) { Uniform(v, seed, name, 1/math.Sqrt(float64(terms))) }
}

// Normal fills v with nearly normal numbers: each is the sum of four uniform 16-bit
// numbers, taken from SHA-256 of seed, name and a counter, and is rounded once when it
// is scaled.
func Normal(v []float32, seed uint64, name string, deviation float64) {
	const unit = 37837.227 // deviation of the sum: √(4·(2³² − 1)/12)
	scale := float32(deviation / unit)
	words(seed, name, len(v), 4, func(i int, h []byte) {
		sum := -4 * 65535 / 2
		for k := range 4 {
			sum += int(binary.LittleEndian.Uint16(h[2*k:]))
		}
		v[i] = float32(float32(sum) * scale)
	})
}

// Uniform fills v with numbers between ±bound, which are odd multiples of bound/2²⁴. They are drawn as those of
// Normal are.
func Uniform(v []float32, seed uint64, name string, bound float64) {
	scale := float32(bound / (1 << 24))
	words(seed, name, len(v), 8, func(i int, h []byte) {
		u := int(binary.LittleEndian.Uint32(h) >> 8)
		v[i] = float32(float32(2*u+1-1<<24) * scale) // the first is exact
	})
}

// words gives each of n numbers its part of a hash, which serves several.
func words(seed uint64, name string, n, several int, use func(i int, h []byte)) {
	counted := make([]byte, 16, 16+len(name))
	binary.LittleEndian.PutUint64(counted, seed)
	counted = append(counted, name...)
	size := sha256.Size / several
	var h [sha256.Size]byte
	for i := 0; i < n; i += several {
		binary.LittleEndian.PutUint64(counted[8:], uint64(i/several))
		h = sha256.Sum256(counted)
		for j := range min(several, n-i) {
			use(i+j, h[j*size:])
		}
	}
}

// weights draws matrices from nearly normal numbers; what is added to products is zero.
func weights(deviation float64) fill {
	return func(v []float32, seed uint64, name string) {
		if strings.HasSuffix(name, ".bias") {
			return
		}
		Normal(v, seed, name, deviation)
	}
}
