package zoo

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// He et al., Deep Residual Learning for Image Recognition, 2015. Names are torchvision's, also of norms over
// groups, as there.
var resnet = Architecture{
	Name: "resnet", About: "residual net for images: ResNet-20 for CIFAR, or ResNet-18 by stages=4,blocks=2,width=64,stem=large",
	Settings: join([]Setting{batch(32)}, pictures(3, 32, 8), []Setting{
		number("stages", 3, 1, 5, "groups of blocks; each but the first halves the image and doubles the width"),
		number("blocks", 3, 1, MaxLayers, "blocks of a stage, two convolutions each"),
		number("width", 16, 1, 1024, "channels of the first stage"),
		word("stem", "first convolution: 3 × 3, or 7 × 7 and pooling for large images", "small", "large"),
	}, normalized(), []Setting{dropout("before the last layer")}, predicts(10)),
	build: buildResNet,
}

func buildResNet(n *net) error {
	records, channels, size, width := n.int("batch"), n.int("channels"), n.int("size"), n.int("width")
	if err := n.groupsDivide(width); err != nil {
		return err
	}
	x, err := n.input("image", tensor.Float32, records, channels, size, size)
	if err != nil {
		return err
	}
	name, out, err := n.target()
	if err != nil {
		return err
	}
	stem := conv{in: channels, out: width, kernel: 3, stride: 1, pad: 1}
	if n.word("stem") == "large" {
		stem = conv{in: channels, out: width, kernel: 7, stride: 2, pad: 3}
	}
	x = n.Op("Relu", n.norm("bn1", n.convolve("conv1", "conv1", x, he(stem)), width))
	if n.word("stem") == "large" {
		x = n.pool("MaxPool", x, 3, 2, 1)
	}
	in := width
	for s := range n.int("stages") {
		for b := range n.int("blocks") {
			x = n.residual(fmt.Sprintf("layer%d.%d", s+1, b), x, in, width<<s)
			in = width << s
		}
	}
	x = n.drop(n.Op("Flatten", n.Op("GlobalAveragePool", x)))
	n.Output(n.linear(name, "fc", x, in, out), tensor.Float32, tensor.Shape{records, out})
	return nil
}

// he draws weights that keep the variance of gradients, as torchvision does.
func he(c conv) conv {
	c.first = normal(math.Sqrt(2 / float64(c.out*c.kernel*c.kernel)))
	return c
}

// residual adds two convolutions to what comes in. Where the width grows, the image is halved.
func (n *net) residual(at, x string, in, out int) string {
	stride := 1
	if in != out {
		stride = 2
	}
	layer := func(c, norm, x string, in, kernel, stride int) string {
		x = n.convolve(c, c, x, he(conv{in: in, out: out, kernel: kernel, stride: stride, pad: kernel / 2}))
		return n.norm(norm, x, out)
	}
	y := n.Op("Relu", layer(at+".conv1", at+".bn1", x, in, 3, stride))
	y = layer(at+".conv2", at+".bn2", y, out, 3, 1)
	if in != out {
		x = layer(at+".downsample.0", at+".downsample.1", x, in, 1, stride)
	}
	return n.Op("Relu", n.Op("Add", y, x))
}
