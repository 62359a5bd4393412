package train

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// What a model does in training and not when it is applied. Models are mostly exported as they are applied:
//
//   - BatchNormalization takes mean and variance of the batch, and its running statistics follow them. They are slots,
//     r/<name>; shards are merged by the mean of theirs, which leaves out how their means differ.
//   - Dropout drops by a word that follows from the recipe's seed, the node, the step and the place of an element. Where a
//     model is applied, it drops nothing.
//
// Statistics that are frozen stay, and the batch's are not taken.

// statPrefix begins the slots of running statistics.
const statPrefix = "r/"

// statistics returns the initializers of g that are running statistics, each of one node.
func statistics(g *graph.Graph) map[string]bool {
	constant := map[string]bool{}
	for _, c := range g.Consts {
		constant[c.Name] = c.Tensor.Type == tensor.Float32
	}
	read := map[string]int{}
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs {
			read[in]++
		}
	}
	out := map[string]bool{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !applies(n) {
			continue
		}
		mean, variance := n.Inputs[3], n.Inputs[4]
		if constant[mean] && constant[variance] && read[mean] == 1 && read[variance] == 1 {
			out[mean], out[variance] = true, true
		}
	}
	return out
}

// applies reports whether a node is a BatchNormalization that is not in training mode.
func applies(n *graph.Node) bool {
	if n.Op != "BatchNormalization" || len(n.Inputs) != 5 || len(n.Outputs) != 1 {
		return false
	}
	a, m := n.Attr("training_mode"), n.Attr("momentum")
	return (a == nil || a.Kind == graph.AttrInt && a.Int == 0) && (m == nil || m.Kind == graph.AttrFloat && m.Float >= 0 && m.Float <= 1)
}

// mode is a model in training mode.
type mode struct {
	*graph.Graph
	step    string          // input that is the number of steps done; "" if nothing reads it
	running map[string]stat // by initializer
}

// stat is a running statistic: next ← momentum·before + (1 − momentum)·batch.
type stat struct {
	slot
	batch    string // name of the batch's
	momentum float32
}

// maxDrops bounds the Dropouts of a model: each becomes some forty nodes.
const maxDrops = 1 << 10

// inMode returns the model as it is trained, or as it is applied.
func (m *model) inMode(g *graph.Graph, trained bool) (mode, error) {
	b := graph.Extend(g)
	out := mode{running: map[string]stat{}}
	values := constants(g)
	var nodes []graph.Node
	count := 0
	for _, n := range g.Nodes {
		share, drops := drops(values, &n)
		if drops {
			if count++; count > maxDrops {
				return out, fmt.Errorf("the model has more than %d Dropouts", maxDrops)
			}
		}
		switch {
		case drops && !trained:
			n = graph.Node{Name: n.Name, Op: "Identity", Inputs: n.Inputs[:1], Outputs: n.Outputs[:1]}
		case !trained:
		case applies(&n) && m.stats[n.Inputs[3]] && m.stats[n.Inputs[4]]:
			momentum := float32(0.9)
			if a := n.Attr("momentum"); a != nil {
				momentum = a.Float
			}
			n.Attrs = slices.DeleteFunc(slices.Clone(n.Attrs), func(a graph.Attr) bool { return a.Name == "training_mode" || a.Name == "momentum" })
			n.Attrs = append(n.Attrs, graph.Float("momentum", 0), graph.Int("training_mode", 1)) // the last by name; they give the batch's
			mean, variance := b.Fresh(n.Inputs[3]+"/batch"), b.Fresh(n.Inputs[4]+"/batch")
			out.running[n.Inputs[3]], out.running[n.Inputs[4]] = stat{batch: mean, momentum: momentum}, stat{batch: variance, momentum: momentum}
			n.Outputs = []string{n.Outputs[0], mean, variance}
		case drops:
			if out.step == "" {
				out.step = b.Input("steps done", tensor.Int64, nil)
			}
			from := len(b.Graph().Nodes)
			dropped(b, out.step, n.Inputs[0], m.key("dropout/"+n.Outputs[0]), share)
			made := b.Graph().Nodes[from:]
			made[len(made)-1].Outputs = n.Outputs[:1]
			nodes = append(nodes, made...)
			continue
		}
		nodes = append(nodes, n)
	}
	out.Graph = b.Graph()
	out.Nodes = nodes
	return out, nil
}

// drops returns what share of elements a node drops, and whether it is a Dropout that does.
func drops(values map[string]*tensor.Tensor, n *graph.Node) (share float32, ok bool) {
	if n.Op != "Dropout" || len(n.Inputs) == 0 || n.Inputs[0] == "" || len(n.Outputs) == 0 || len(n.Outputs) > 1 && n.Outputs[1] != "" {
		return 0, false
	}
	share = 0.5
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		r := values[n.Inputs[1]]
		if r == nil || r.Type != tensor.Float32 || r.Len() != 1 {
			return 0, false
		}
		share = tensor.Of[float32](r)[0]
	}
	return share, share > 0 && share < 1
}

// constants returns the values of initializers and constants, by name.
func constants(g *graph.Graph) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for _, c := range g.Consts {
		out[c.Name] = c.Tensor
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Op == "Constant" && len(n.Outputs) > 0 {
			if a := n.Attr("value"); a != nil {
				out[n.Outputs[0]] = a.Tensor
			}
		}
	}
	return out
}

// key is what makes draws their own: of a node, or of an augmentation.
func (m *model) key(of string) uint32 {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], m.seed)
	h := canon.Sum(canon.DomainInit, append(seed[:], of...))
	return binary.LittleEndian.Uint32(h[:4])
}

// drawn writes a random word for each of so many places (a value) in a step.
func drawn(b *graph.Builder, step, places string, key uint32) string {
	turn := op.Words(b, b.Cast(step, tensor.Uint32), b.Const(tensor.Scalar(key)))
	at := b.Op("Range", b.Const(tensor.Scalar[int64](0)), places, b.Const(tensor.Scalar[int64](1)))
	return op.Words(b, b.Cast(at, tensor.Uint32), turn, b.Const(tensor.Scalar(op.Mix(key))))
}

// hits writes where words are among the lowest share of all.
func hits(b *graph.Builder, words string, share float32) string {
	top := b.With(graph.String("direction", "RIGHT")).Op("BitShift", words, b.Const(tensor.Scalar[uint32](8))) // 24 bits, as a float32 has
	return b.Op("Less", top, b.Const(tensor.Scalar(uint32(float32(share*(1<<24))))))
}

// dropped writes what drops a share of the elements of x, and scales the others by 1/(1 − share).
func dropped(b *graph.Builder, step, x string, key uint32, share float32) {
	words := b.Op("Reshape", drawn(b, step, b.Op("Size", x), key), b.Op("Shape", x))
	b.Op("Where", hits(b, words, share), b.Scalar(0), b.Op("Mul", x, b.Scalar(1/float32(1-share))))
}
