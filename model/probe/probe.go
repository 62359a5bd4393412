// Package probe writes the model that measures how fast a machine is: matrix products that nobody can have computed before.
//
// A run takes four numbers that follow from a seed, and makes a square matrix of them. This goes through many layers, each
// a product with the same weights, a sum and a ReLU. What comes out are sums over all of the last matrix. So each element of each
// layer has to be right to the last bit, and no run helps with another.
//
// Call [Graph]. Weights follow from their names, so that everybody has the same model: core/probe names it by its root.
//
// Invariants: the model is the same on every machine, in every bit. Values stay within a few powers of two, whatever the seed is.
//
// Sources: He and others, ICCV 2015, for weights that keep the variance through ReLU.
package probe

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/probe"
	"github.com/tally-network/tally/core/tensor"
)

const (
	width  = 1024 // rows and columns of what goes through the layers
	layers = 32
	sums   = 64 // of a run's result
	bits   = 24 // of a number that enters, its sign one of them
)

// Graph returns the model: from one record of core/probe, [1, 4] of int32, to sums [1, 64] of float32.
func Graph() *graph.Graph {
	b := graph.NewBuilder("probe")
	in := b.Input(probe.Input, tensor.Int32, tensor.Shape{1, probe.Numbers})
	x := b.Op("Mul", b.With(graph.Int("to", int(tensor.Float32))).Op("Cast", in), b.Scalar(1.0/(1<<(bits-1))))

	column := b.Op("Reshape", b.Op("MatMul", x, weights(b, "column", probe.Numbers, width)), b.Ints(width, 1))
	row := b.Op("MatMul", x, weights(b, "row", probe.Numbers, width))
	each, shift := weights(b, "layer", width, width), weights(b, "shift", width, width)
	h := b.Op("Relu", b.Op("Add", b.Op("Mul", column, row), shift)) // of more than one rank
	for range layers {
		h = b.Op("Relu", b.Op("Add", b.Op("MatMul", h, each), shift)) // the shift keeps rows apart
	}
	all := b.Op("Reshape", h, b.Ints(width*width/sums, sums))
	out := b.With(graph.Int("keepdims", 1)).As("sums").Op("ReduceSum", all, b.Ints(0))
	b.Output(out, tensor.Float32, tensor.Shape{1, sums})
	return b.Graph()
}

// weights returns the name of a matrix of uniform numbers that ReLU keeps the variance of.
func weights(b *graph.Builder, name string, in, out int) string {
	bound := float32(math.Sqrt(6 / float64(in)))
	v := make([]float32, in*out)
	for i := 0; i < len(v); i += 8 {
		h := canon.Sum(canon.DomainInit, []byte("probe "+name+" "+strconv.Itoa(i)))
		for j := range min(8, len(v)-i) {
			v[i+j] = float32(int32(binary.LittleEndian.Uint32(h[4*j:]))) / (1 << 31) * bound
		}
	}
	return b.Init(name, tensor.Must(tensor.From(tensor.Shape{in, out}, v)))
}
