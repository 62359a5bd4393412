package train

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train/pattern"
)

// Adapters are trained in place of the matrices that they adapt (Hu et al.,
// "LoRA", 2021): W becomes W + Alpha/Rank · A·B, where A has Rank columns and B
// as many rows. B begins as zeros, and A as numbers that follow from the
// matrix's name. Everything else stays as it is.
type Adapters struct {
	Rank  int
	Alpha float32
	Of    []string // patterns of initializers with two axes
}

const (
	maxRank  = 1 << 12
	adapterA = ".lora_a"
	adapterB = ".lora_b"
)

// Adapting returns what the two matrices are called by which an initializer is adapted.
func Adapting(initializer string) (first, last string) {
	return initializer + adapterA, initializer + adapterB
}

func isAdapter(name string) bool {
	return strings.HasSuffix(name, adapterA) || strings.HasSuffix(name, adapterB)
}

func (a *Adapters) check() error {
	switch {
	case a.Rank < 0 || a.Rank > maxRank:
		return fmt.Errorf("adapters of rank %d are not between 1 and %d", a.Rank, maxRank)
	case (a.Rank == 0) != (len(a.Of) == 0):
		return fmt.Errorf("adapters need a rank and the initializers that they adapt")
	case a.Rank > 0 && !(a.Alpha > 0 && a.Alpha <= 1e6):
		return fmt.Errorf("the weight %v of adapters is not between 0 and a million", a.Alpha)
	}
	return nil
}

// write writes a matrix as its adapters change it.
func (a *Adapters) write(b *graph.Builder, matrix, first, last string) string {
	move := b.Op("MatMul", first, last)
	// float: the quotient of two numbers that the order holds
	return b.Op("Add", matrix, b.Op("Mul", move, b.Scalar(a.Alpha/float32(a.Rank))))
}

// Adapt returns g with the recipe's adapters, or g itself if it has none.
func Adapt(g *graph.Graph, r Recipe) (*graph.Graph, error) {
	if r.Adapters.Rank == 0 {
		return g, nil
	}
	chosen, err := pattern.Chosen(g, r.Adapters.Of)
	if err != nil {
		return nil, err
	}
	rank := r.Adapters.Rank
	b := graph.Extend(&graph.Graph{Name: g.Name, Inputs: g.Inputs, Outputs: g.Outputs, Consts: g.Consts, Nodes: g.Nodes})
	old, taken := len(g.Nodes), map[string]bool{}
	for _, c := range g.Consts {
		taken[c.Name] = true
	}
	adapted := map[string]string{}
	for _, c := range g.Consts {
		if !chosen[c.Name] {
			continue
		}
		s := c.Tensor.Shape
		if c.Tensor.Type != tensor.Float32 || len(s) != 2 || rank > min(s[0], s[1]) {
			return nil, fmt.Errorf("initializer %q is %v%v: adapters of rank %d are for matrices of float32 with at least as many rows and columns", c.Name, c.Tensor.Type, s, rank)
		}
		if taken[c.Name+adapterA] || taken[c.Name+adapterB] {
			return nil, fmt.Errorf("initializer %q has adapters already: go on from the order that trained them, which merges them, or leave them out", c.Name)
		}
		first, err := noise(c.Name, tensor.Shape{s[0], rank})
		if err != nil {
			return nil, err
		}
		last, err := tensor.New(tensor.Float32, tensor.Shape{rank, s[1]})
		if err != nil {
			return nil, err
		}
		adapted[c.Name] = r.Adapters.write(b, c.Name, b.Init(c.Name+adapterA, first), b.Init(c.Name+adapterB, last))
	}
	out := *b.Graph()
	out.Nodes = append([]graph.Node{}, out.Nodes...)
	for i := range out.Nodes[:old] {
		n := &out.Nodes[i]
		n.Inputs = append([]string{}, n.Inputs...)
		for j, in := range n.Inputs {
			if to, ok := adapted[in]; ok {
				n.Inputs[j] = to
			}
		}
	}
	return &out, nil
}

// noise returns numbers between −1/√rows and 1/√rows, or nearly: the bound is
// the power of two at or below it. They follow from a name alone.
func noise(name string, s tensor.Shape) (*tensor.Tensor, error) {
	t, err := tensor.New(tensor.Float32, s)
	if err != nil {
		return nil, err
	}
	var below uint32 // 2^−below ≤ 1/√rows
	for ; 1<<(2*below) < s[0]; below++ {
	}
	key := canon.Sum(canon.DomainInit, []byte(name))
	seed := binary.LittleEndian.Uint64(key[:])
	for i := range t.Len() {
		u := mix(seed + uint64(i)*0x9e3779b97f4a7c15)
		// A float in [1, 2), less 1½, times a power of two: all exact.
		x := tensor.AsF32(tensor.Word(127<<23|u>>41)) - 1.5
		t.Set(i, tensor.F32(float32(x*tensor.AsF32(tensor.Word((128-below)<<23)))))
	}
	return t, nil
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
