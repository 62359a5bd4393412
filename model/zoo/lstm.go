package zoo

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Hochreiter and Schmidhuber, Long short-term memory, 1997; with forget gates.
var lstm = Architecture{
	Name: "lstm", About: "recurrent net: sequences of vectors to classes or numbers, by the state behind the last step",
	Settings: join([]Setting{
		batch(32),
		number("steps", 32, 1, 1024, "vectors of a sequence"),
		number("inputs", 16, 1, MaxExtent, "features of a vector"),
		number("width", 64, 1, MaxExtent, "of the state"),
		number("layers", 1, 1, 16, "one reading the states of the other"),
		dropout("between layers"),
	}, predicts(10)),
	build: buildLSTM,
}

func buildLSTM(n *net) error {
	records, in, width, layers := n.int("batch"), n.int("inputs"), n.int("width"), n.int("layers")
	x, err := n.input("sequence", tensor.Float32, records, n.int("steps"), in)
	if err != nil {
		return err
	}
	name, out, err := n.target()
	if err != nil {
		return err
	}
	x = n.With(graph.Ints("perm", 1, 0, 2)).Op("Transpose", x)
	last := ""
	for l := range layers {
		states := n.recur(l, x, in, width)
		last, in = states[1], width
		if l+1 < layers {
			x = n.drop(n.Op("Squeeze", states[0], n.Ints(1)))
		}
	}
	x = n.Op("Squeeze", last, n.Ints(0))
	n.Output(n.linear(name, "fc", x, width, out), tensor.Float32, tensor.Shape{records, out})
	return nil
}

// recur is a layer of LSTM over [steps batch in]. It returns the states of all steps, [steps 1 batch width], and the
// last, [1 batch width].
func (n *net) recur(layer int, x string, in, width int) []string {
	gates := func(name string, shape ...int) string {
		return n.reorder(n.parameter(fmt.Sprintf("lstm.%s_l%d", name, layer), uniform(width), shape...))
	}
	one := n.Ints(0)
	w := n.Op("Unsqueeze", gates("weight_ih", 4*width, in), one)
	r := n.Op("Unsqueeze", gates("weight_hh", 4*width, width), one)
	b := n.With(graph.Int("axis", 0)).Op("Concat", gates("bias_ih", 4*width), gates("bias_hh", 4*width))
	return n.With(graph.Int("hidden_size", width)).As(fmt.Sprintf("lstm.%d", layer)).Ops("LSTM", 2, x, w, r, n.Op("Unsqueeze", b, one))
}

// reorder brings gates from PyTorch's order (input, forget, cell, output) to ONNX's (input, output, forget, cell).
func (n *net) reorder(w string) string {
	g := n.With(graph.Int("axis", 0), graph.Int("num_outputs", 4)).Ops("Split", 4, w)
	return n.With(graph.Int("axis", 0)).Op("Concat", g[0], g[3], g[1], g[2])
}
