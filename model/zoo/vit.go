package zoo

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Dosovitskiy et al., An Image is Worth 16x16 Words, 2020. Names are timm's.
var vit = Architecture{
	Name: "vit", About: "vision transformer: patches of an image as tokens, and one token for the class",
	Settings: join([]Setting{batch(32)}, pictures(3, 32, 1), []Setting{
		number("patch", 4, 1, 1024, "height and width of a patch, which divides the size"),
		number("width", 64, 1, MaxExtent, "of the residual stream"),
		number("layers", 4, 0, MaxLayers, "blocks of attention and feed-forward"),
		number("heads", 4, 1, MaxExtent, "attention heads, which divide the width"),
		dropout("behind positions, attention and feed-forward"),
	}, predicts(10)),
	build: buildViT,
}

const vitEpsilon = 1e-6 // timm's

// spread is the deviation of most of timm's first weights.
const spread = 0.02

func buildViT(n *net) error {
	records, channels, size, patch, width := n.int("batch"), n.int("channels"), n.int("size"), n.int("patch"), n.int("width")
	if err := headsDivide(n.int("heads"), width); err != nil {
		return err
	}
	if size%patch != 0 {
		return fmt.Errorf("patch=%d does not divide size=%d: choose patch=%d", patch, size, divisor(size, min(patch, size)))
	}
	tokens := (size/patch)*(size/patch) + 1
	if tokens > MaxExtent {
		return fmt.Errorf("%d patches are more than %d: choose a larger patch, or a smaller size", tokens-1, MaxExtent-1)
	}
	x, err := n.input("image", tensor.Float32, records, channels, size, size)
	if err != nil {
		return err
	}
	name, out, err := n.target()
	if err != nil {
		return err
	}
	x = n.convolve("patch_embed", "patch_embed.proj", x, conv{in: channels, out: width, kernel: patch, stride: patch, bias: true})
	x = n.With(graph.Ints("perm", 0, 2, 1)).Op("Transpose", n.Op("Reshape", x, n.Ints(records, width, tokens-1)))
	class := n.Op("Expand", n.parameter("cls_token", normal(spread), 1, 1, width), n.Ints(records, 1, width))
	x = n.With(graph.Int("axis", 1)).Op("Concat", class, x)
	x = n.drop(n.Op("Add", x, n.parameter("pos_embed", normal(spread), 1, tokens, width)))
	x = n.Op("Reshape", x, n.Ints(-1, width))
	for l := range n.int("layers") {
		x = n.encode(fmt.Sprintf("blocks.%d.", l), x, tokens, width)
	}
	x = n.Op("Reshape", x, n.Ints(-1, tokens, width))
	x = n.Op("Slice", x, n.Ints(0), n.Ints(1), n.Ints(1))
	x = n.layerNorm("norm.weight", "norm.bias", n.Op("Reshape", x, n.Ints(-1, width)), width, vitEpsilon)
	n.Output(n.gemm(name, "head", x, width, out, weights(spread)), tensor.Float32, tensor.Shape{records, out})
	return nil
}

// encode is a block of a transformer that sees all tokens.
func (n *net) encode(at, x string, tokens, width int) string {
	layer := func(name, x string, in, out int) string { return n.gemm(at+name, at+name, x, in, out, weights(spread)) }
	norm := func(name, x string) string {
		return n.layerNorm(at+name+".weight", at+name+".bias", x, width, vitEpsilon)
	}
	y := layer("attn.qkv", norm("norm1", x), width, 3*width)
	y = n.attend(mixer{name: at + "attn.", tokens: tokens, width: width, heads: n.int("heads")}, y)
	x = n.Op("Add", x, n.drop(layer("attn.proj", y, width, width)))
	y = n.Op("Gelu", layer("mlp.fc1", norm("norm2", x), width, 4*width))
	return n.Op("Add", x, n.drop(layer("mlp.fc2", y, 4*width, width)))
}
