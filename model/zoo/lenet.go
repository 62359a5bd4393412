package zoo

import "github.com/tally-network/tally/core/tensor"

// LeCun et al., Gradient-based learning applied to document recognition, 1998: with 2 of padding, so that images
// of 28 do, and a full second convolution.
var lenet = Architecture{
	Name: "lenet", About: "LeNet-5: two convolutions and three layers, for small images such as digits",
	Settings: join([]Setting{batch(32)}, pictures(1, 28, 12), []Setting{
		word("activation", "between layers", "relu", "tanh", "gelu", "sigmoid"),
		word("pooling", "what is taken of each 2 × 2 window", "max", "average"),
		dropout("behind fc1 and fc2"),
	}, predicts(10)),
	build: buildLeNet,
}

func buildLeNet(n *net) error {
	records, channels, size := n.int("batch"), n.int("channels"), n.int("size")
	x, err := n.input("image", tensor.Float32, records, channels, size, size)
	if err != nil {
		return err
	}
	name, out, err := n.target()
	if err != nil {
		return err
	}
	pool := map[string]string{"max": "MaxPool", "average": "AveragePool"}[n.word("pooling")]
	x = n.convolve("conv1", "conv1", x, conv{in: channels, out: 6, kernel: 5, stride: 1, pad: 2, bias: true})
	x = n.pool(pool, n.activate(x), 2, 2, 0)
	x = n.convolve("conv2", "conv2", x, conv{in: 6, out: 16, kernel: 5, stride: 1, bias: true})
	x = n.pool(pool, n.activate(x), 2, 2, 0)
	side := (size/2 - 4) / 2
	x = n.Op("Flatten", x)
	x = n.drop(n.activate(n.linear("fc1", "fc1", x, 16*side*side, 120)))
	x = n.drop(n.activate(n.linear("fc2", "fc2", x, 120, 84)))
	n.Output(n.linear(name, "fc3", x, 84, out), tensor.Float32, tensor.Shape{records, out})
	return nil
}
