package zoo

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Ronneberger, Fischer and Brox, U-Net, 2015; with padding, so that every pixel gets logits. Names are those of
// milesial/Pytorch-UNet.
var unet = Architecture{
	Name: "unet", About: "U-Net: a class, or numbers, for every pixel of an image",
	Settings: join([]Setting{batch(8)}, pictures(3, 64, 1), []Setting{
		number("width", 16, 1, 1024, "channels at full size; each halving doubles them"),
		number("depth", 3, 1, 6, "halvings; 2 to this power divides the size"),
	}, normalized(), []Setting{dropout("at the smallest size")}, predicts(2)),
	build: buildUNet,
}

func buildUNet(n *net) error {
	records, channels, size, width, depth := n.int("batch"), n.int("channels"), n.int("size"), n.int("width"), n.int("depth")
	if err := n.groupsDivide(width); err != nil {
		return err
	}
	if size%(1<<depth) != 0 {
		return fmt.Errorf("size=%d cannot be halved depth=%d times: choose size=%d, or a smaller depth", size, depth, (size>>depth+1)<<depth)
	}
	x, err := n.input("image", tensor.Float32, records, channels, size, size)
	if err != nil {
		return err
	}
	name, out, err := n.target()
	if err != nil {
		return err
	}
	x = n.twice("inc.double_conv", x, channels, width)
	var skips []string
	for l := range depth {
		skips = append(skips, x)
		x = n.twice(fmt.Sprintf("down%d.maxpool_conv.1.double_conv", l+1), n.pool("MaxPool", x, 2, 2, 0), width<<l, width<<(l+1))
	}
	x = n.drop(x)
	for l := range depth {
		in := width << (depth - l)
		up := fmt.Sprintf("up%d.", l+1)
		x = n.With(graph.Int("axis", 1)).Op("Concat", skips[depth-1-l], n.enlarge(up+"up", x, in))
		x = n.twice(up+"conv.double_conv", x, in, in/2)
	}
	x = n.convolve(name, "outc.conv", x, conv{in: width, out: out, kernel: 1, stride: 1, bias: true})
	n.Output(x, tensor.Float32, tensor.Shape{records, out, size, size})
	return nil
}

// twice is two convolutions, with norm and ReLU behind each.
func (n *net) twice(at, x string, in, out int) string {
	for i := range 2 {
		c, norm := fmt.Sprintf("%s.%d", at, 3*i), fmt.Sprintf("%s.%d", at, 3*i+1)
		x = n.Op("Relu", n.norm(norm, n.convolve(c, c, x, conv{in: in, out: out, kernel: 3, stride: 1, pad: 1}), out))
		in = out
	}
	return x
}

// enlarge doubles height and width, and halves the channels.
func (n *net) enlarge(name, x string, in int) string {
	first := uniform(in / 2 * 2 * 2)
	w, b := n.parameter(name+".weight", first, in, in/2, 2, 2), n.parameter(name+".bias", first, in/2)
	return n.With(graph.Ints("kernel_shape", 2, 2), graph.Ints("strides", 2, 2)).As(name).Op("ConvTranspose", x, w, b)
}
