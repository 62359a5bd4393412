package zoo

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// Rumelhart, Hinton and Williams, Learning representations by back-propagating errors, 1986.
var mlp = Architecture{
	Name: "mlp", About: "multilayer perceptron: rows of a table to classes or numbers",
	Settings: join([]Setting{
		batch(32),
		number("inputs", 784, 1, maxWords, "features of a record"),
		number("width", 256, 1, maxWords, "of hidden layers"),
		number("layers", 2, 0, MaxLayers, "hidden layers"),
		activation(), dropout("behind each hidden layer"),
	}, predicts(10)),
	build: buildMLP,
}

func buildMLP(n *net) error {
	x, err := n.input("features", tensor.Float32, n.int("batch"), n.int("inputs"))
	if err != nil {
		return err
	}
	name, out, err := n.target()
	if err != nil {
		return err
	}
	in, layers := n.int("inputs"), n.int("layers")
	for l := range layers {
		fc := fmt.Sprintf("fc%d", l+1)
		x = n.drop(n.activate(n.linear(fc, fc, x, in, n.int("width"))))
		in = n.int("width")
	}
	n.Output(n.linear(name, fmt.Sprintf("fc%d", layers+1), x, in, out), tensor.Float32, tensor.Shape{n.int("batch"), out})
	return nil
}
