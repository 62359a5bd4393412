package bench

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// classifier writes networks that tell ten kinds of images apart.
type classifier struct {
	*graph.Builder
	random *rand.Rand
	params []string
	start  map[string]*tensor.Tensor
}

// param is a parameter of normal numbers.
func (c *classifier) param(deviation float64, shape ...int) string {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		t.Set(i, tensor.F32(float32(deviation*c.random.NormFloat64())))
	}
	return c.given(t)
}

func (c *classifier) constant(x float32, shape ...int) string {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		t.Set(i, tensor.F32(x))
	}
	return c.given(t)
}

func (c *classifier) given(t *tensor.Tensor) string {
	name := c.Input(fmt.Sprintf("p%03d", len(c.params)), t.Type, t.Shape)
	c.params = append(c.params, name)
	c.start[name] = t
	return name
}

func (c *classifier) conv(x string, in, out, kernel, stride, pad int, bias bool) string {
	inputs := []string{x, c.param(math.Sqrt(2/float64(in*kernel*kernel)), out, in, kernel, kernel)}
	if bias {
		inputs = append(inputs, c.constant(0, out))
	}
	return c.With(graph.Ints("pads", pad, pad, pad, pad), graph.Ints("strides", stride, stride)).Op("Conv", inputs...)
}

func (c *classifier) linear(x string, in, out int) string {
	return c.Op("Gemm", x, c.param(math.Sqrt(1/float64(in)), in, out), c.constant(0, out))
}

func (c *classifier) pool(x string) string {
	return c.With(graph.Ints("kernel_shape", 2, 2), graph.Ints("strides", 2, 2)).Op("MaxPool", x)
}

// norm standardises each channel over the batch.
func (c *classifier) norm(x string, channels int) string {
	scale, shift := c.constant(1, 1, channels, 1, 1), c.constant(0, 1, channels, 1, 1)
	over := func(v string) string { return c.With(graph.Int("keepdims", 1)).Op("ReduceMean", v, c.Ints(0, 2, 3)) }
	d := c.Op("Sub", x, over(x))
	deviation := c.Op("Sqrt", c.Op("Add", over(c.Op("Mul", d, d)), c.Scalar(1e-5)))
	return c.Op("Add", c.Op("Mul", c.Op("Div", d, deviation), scale), shift)
}

// leNet is LeNet-5 with rectifiers, for images [batch 1 28 28].
func leNet(c *classifier, x string) string {
	x = c.pool(c.Op("Relu", c.conv(x, 1, 6, 5, 1, 2, true)))
	x = c.pool(c.Op("Relu", c.conv(x, 6, 16, 5, 1, 0, true)))
	x = c.Op("Relu", c.linear(c.Op("Flatten", x), 400, 120))
	return c.linear(c.Op("Relu", c.linear(x, 120, 84)), 84, 10)
}

// resNet has the shape of ResNet-18 for images [batch 3 32 32].
func resNet(c *classifier, x string) string {
	x = c.Op("Relu", c.norm(c.conv(x, 3, 64, 3, 1, 1, false), 64))
	in := 64
	for stage, out := range []int{64, 128, 256, 512} {
		for block := range 2 {
			stride := 1
			if stage > 0 && block == 0 {
				stride = 2
			}
			y := c.Op("Relu", c.norm(c.conv(x, in, out, 3, stride, 1, false), out))
			y = c.norm(c.conv(y, out, out, 3, 1, 1, false), out)
			if in != out {
				x = c.norm(c.conv(x, in, out, 1, stride, 0, false), out)
			}
			x, in = c.Op("Relu", c.Op("Add", x, y)), out
		}
	}
	return c.linear(c.Op("Flatten", c.Op("GlobalAveragePool", x)), 512, 10)
}

func leNetStep() (*graph.Program, graph.Inputs, error) {
	return imageStep(leNet, tensor.Shape{64, 1, 28, 28})
}

func resNetStep() (*graph.Program, graph.Inputs, error) {
	return imageStep(resNet, tensor.Shape{32, 3, 32, 32})
}

// imageStep returns a step of gradient descent with momentum: every parameter p
// with its velocity v becomes p − 0.01·v′, where v′ = 0.9·v + gradient.
func imageStep(network func(*classifier, string) string, images tensor.Shape) (*graph.Program, graph.Inputs, error) {
	fail := func(err error) (*graph.Program, graph.Inputs, error) { return nil, graph.Inputs{}, err }
	c := &classifier{Builder: graph.NewBuilder("images"), random: rand.New(rand.NewPCG(3, 4)), start: map[string]*tensor.Tensor{}}
	x := c.Input("images", tensor.Float32, images)
	labels := c.Input("labels", tensor.Int32, images[:1])
	loss := c.With(graph.String("reduction", "mean")).Op("SoftmaxCrossEntropyLoss", network(c, x), labels)
	c.Output(loss, tensor.Float32, nil)
	forward, err := op.Infer(c.Graph(), lower.FP32)
	if err != nil {
		return fail(err)
	}
	plain, calls := forward.Differentiable()
	b := graph.Extend(plain)
	grads, err := train.Gradients(b, calls, plain.Outputs[0].Name, c.params, 1)
	if err != nil {
		return fail(err)
	}
	for _, p := range c.params {
		shape := c.start[p].Shape
		v := b.Input("v/"+p, tensor.Float32, shape)
		next := b.Op("Add", b.Op("Mul", v, b.Scalar(0.9)), grads[p])
		b.Output(next, tensor.Float32, shape)
		b.Output(b.Op("Sub", p, b.Op("Mul", next, b.Scalar(0.01))), tensor.Float32, shape)
	}
	step, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		return fail(err)
	}
	program, err := step.Function()
	if err != nil {
		return fail(err)
	}
	state := &graph.State{Slots: program.Slots}
	for _, s := range program.Slots {
		t := tensor.Must(tensor.New(s.Type, s.Shape))
		switch name := s.Name; {
		case name == x:
			t = normal(s.Type, s.Shape)
		case name == labels:
			for i := range t.Len() {
				t.Set(i, tensor.Word(c.random.IntN(10)))
			}
		case c.start[name] != nil:
			t = c.start[name]
		}
		state.Tensors = append(state.Tensors, t)
	}
	return program, graph.Inputs{States: []*graph.State{state}}, nil
}
