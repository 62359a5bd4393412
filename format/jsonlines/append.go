package jsonlines

import (
	"math"
	"strconv"

	"github.com/tally-network/tally/core/tensor"
)

// Append appends the elements of t from one on that make up a shape, as nested lists of JSON.
func Append(b []byte, t *tensor.Tensor, s tensor.Shape, at int) []byte {
	if len(s) == 0 {
		return appendNumber(b, t, at)
	}
	b = append(b, '[')
	each := s[1:].Elements()
	for i := range s[0] {
		if i > 0 {
			b = append(b, ',')
		}
		b = Append(b, t, s[1:], at+i*each)
	}
	return append(b, ']')
}

// appendNumber appends the shortest digits that give an element back. What JSON has no number
// for is a string.
func appendNumber(b []byte, t *tensor.Tensor, i int) []byte {
	w := t.At(i)
	switch t.Type {
	case tensor.Bool:
		return strconv.AppendBool(b, w != 0)
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		return strconv.AppendUint(b, uint64(w), 10)
	}
	if t.Type.Integer() {
		return strconv.AppendInt(b, int64(w), 10)
	}
	x, bits := tensor.FloatOf(t.Type, w), 32
	if t.Type == tensor.Float64 {
		bits = 64
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return strconv.AppendQuote(b, strconv.FormatFloat(x, 'g', -1, bits))
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}
