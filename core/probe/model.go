package probe

import (
	"encoding/binary"
	"strconv"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

const (
	width      = 1024 // rows and columns of what goes through the layers
	layers     = 32
	sums       = 64 // of a run's result
	numberBits = 24 // of a number that enters, with its sign
)

// Model returns the model that each run applies to one record: from [1, 4] of int32 to sums [1, 64] of float32. It makes a
// square matrix of the record, which goes through many layers. Each is a product with the same weights, a sum and a ReLU.
// What comes out are sums over all of the last matrix. So each element of each layer has to be right to the last bit, and
// no run helps with another. Source: He and others, ICCV 2015, for weights that keep the variance through ReLU.
//
// float: constants that are the same everywhere
func Model() *graph.Graph {
	const ofRecord, ofLayer = 1.2247449, 0.076546554 // bounds √(6 / rows), of 4 and of 1,024 rows
	b := graph.NewBuilder("probe")
	in := b.Input(Input, tensor.Int32, tensor.Shape{1, Numbers})
	x := b.Op("Mul", b.Cast(in, tensor.Float32), b.Scalar(1.0/(1<<(numberBits-1))))

	column := b.Op("Reshape", b.Op("MatMul", x, weights(b, "column", Numbers, width, ofRecord)), b.Ints(width, 1))
	row := b.Op("MatMul", x, weights(b, "row", Numbers, width, ofRecord))
	layer, shift := weights(b, "layer", width, width, ofLayer), weights(b, "shift", width, width, ofLayer)
	h := b.Op("Relu", b.Op("Add", b.Op("Mul", column, row), shift)) // of more than one rank
	for range layers {
		h = b.Op("Relu", b.Op("Add", b.Op("MatMul", h, layer), shift)) // the shift keeps rows apart
	}
	all := b.Op("Reshape", h, b.Ints(width*width/sums, sums))
	out := b.With(graph.Int("keepdims", 1)).As("sums").Op("ReduceSum", all, b.Ints(0))
	b.Output(out, tensor.Float32, tensor.Shape{1, sums})
	return b.Graph()
}

// weights returns the name of a matrix of numbers that follow from its name, uniform from −bound to bound.
//
// float: each is rounded twice, alike on every machine
func weights(b *graph.Builder, name string, rows, columns int, bound float32) string {
	v := make([]float32, rows*columns)
	for i := 0; i < len(v); i += 8 {
		h := canon.Sum(canon.DomainInit, []byte("probe "+name+" "+strconv.Itoa(i)))
		for j := range min(8, len(v)-i) {
			v[i+j] = float32(float32(int32(binary.LittleEndian.Uint32(h[4*j:]))) / (1 << 31) * bound)
		}
	}
	return b.Init(name, tensor.Must(tensor.From(tensor.Shape{rows, columns}, v)))
}
