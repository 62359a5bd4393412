package zoo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/zoo"
)

func load[T any](t *testing.T, name string) (out T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func build(t *testing.T, name, settings string, seed uint64) *zoo.Model {
	t.Helper()
	a, err := zoo.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := zoo.Parse(settings)
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.New(chosen, seed)
	if err != nil {
		t.Fatalf("%s %s: %v", name, settings, err)
	}
	return m
}

// pattern is numbers between −1 and 1, as testdata/make.py has them.
func pattern(s tensor.Shape, step, period int) *tensor.Tensor {
	x := tensor.Must(tensor.New(tensor.Float32, s))
	for i := range x.Len() {
		x.Set(i, tensor.F32(float32(float64(i*step%period-period/2)/float64(period/2))))
	}
	return x
}

// differentiated extends a model by the gradients of a loss, the sum of its outputs times a pattern. It
// returns what the output is called, and the gradient of each parameter.
func differentiated(t *testing.T, g *graph.Graph) (*lower.Typed, map[string]string) {
	t.Helper()
	b := graph.Extend(g)
	y := g.Outputs[0]
	loss := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Op("Mul", y.Name, b.Init("pattern", pattern(y.Shape, 53, 97))))
	whole := *b.Graph()
	whole.Outputs = append([]graph.Value{{Name: loss, Type: tensor.Float32}}, g.Outputs...)
	typed, err := op.Infer(&whole, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	forward, calls := typed.Differentiable()
	var parameters []string
	for _, c := range g.Consts {
		if c.Tensor.Type == tensor.Float32 {
			parameters = append(parameters, c.Name)
		}
	}
	b = graph.Extend(forward)
	gradients, err := train.Gradients(b, calls, forward.Outputs[0].Name, parameters, 1)
	if err != nil {
		t.Fatal(err)
	}
	step := *b.Graph()
	step.Outputs = forward.Outputs[1:]
	names := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(gradients)) {
		names[name] = b.Op("Identity", gradients[name])
		step.Outputs = append(step.Outputs, graph.Value{Name: names[name], Type: tensor.Float32, Shape: g.Const(name).Shape})
	}
	step.Nodes, step.Consts = b.Graph().Nodes, b.Graph().Consts
	if typed, err = op.Infer(&step, lower.FP32); err != nil {
		t.Fatal(err)
	}
	return typed, names
}

func compute(t *testing.T, typed *lower.Typed, x *tensor.Tensor) *graph.State {
	t.Helper()
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	runner, err := cpu.New(1).Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := runner.Run(t.Context(), graph.Inputs{States: []*graph.State{{Slots: p.Slots, Tensors: []*tensor.Tensor{x}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func floats(t *tensor.Tensor) (out []float64) {
	for _, x := range tensor.Of[float32](t) {
		out = append(out, float64(x))
	}
	return out
}

// within bounds errors of float32 against float64, relative to the greatest number of a tensor.
const within = 2e-5

// Forward and backward are those of PyTorch, torchvision and timm with the same weights, which their modules take
// by our names. gpt's are those of PyTorch's transformers.
func TestEqualsPyTorch(t *testing.T) {
	type want struct {
		Output    []float64
		Gradients map[string][2]float64 // product with a pattern, and Euclidean norm
	}
	wants := load[map[string]want](t, "pytorch.json")
	for name, c := range load[map[string]struct{ Architecture, Settings string }](t, "cases.json") {
		t.Run(name, func(t *testing.T) {
			m := build(t, c.Architecture, c.Settings, 3)
			x := pattern(m.Graph.Inputs[0].Shape, 37, 101)
			if in := m.Graph.Inputs[0]; in.Type == tensor.Int32 {
				x = tensor.Must(tensor.New(tensor.Int32, in.Shape))
				for i := range x.Len() {
					x.Set(i, tensor.Word((i*7+3)%m.Graph.Outputs[0].Shape[2]))
				}
			}
			typed, gradients := differentiated(t, m.Graph)
			s := compute(t, typed, x)
			got, w := floats(s.Find(typed.Outputs[0].Name)), wants[name]
			scale := math.Max(slices.Max(w.Output), -slices.Min(w.Output))
			if len(got) != len(w.Output) {
				t.Fatalf("%d numbers, want %d", len(got), len(w.Output))
			}
			for i := range got {
				if math.Abs(got[i]-w.Output[i]) > within*scale {
					t.Errorf("output %d is %v, want %v", i, got[i], w.Output[i])
				}
			}
			if len(gradients) != len(w.Gradients) {
				t.Errorf("gradients of %q, want those of %q", slices.Sorted(maps.Keys(gradients)), slices.Sorted(maps.Keys(w.Gradients)))
			}
			for parameter, value := range gradients {
				g := s.Find(value)
				by := floats(pattern(tensor.Shape{g.Len()}, 29, 89))
				var product, square float64
				for i, x := range floats(g) {
					product += x * by[i]
					square += x * x
				}
				norm, w := math.Sqrt(square), w.Gradients[parameter]
				if math.Abs(norm-w[1]) > 5*within*w[1] || math.Abs(product-w[0]) > 5*within*w[1]*math.Sqrt(float64(g.Len())) {
					t.Errorf("gradient of %s: product %v, norm %v, want %v", parameter, product, norm, w)
				}
			}
		})
	}
}

// Every setting of every architecture, one at a time, gives a model that types, and of which each parameter has a gradient.
func TestEverySettingTrains(t *testing.T) {
	least := map[string]string{
		"gpt": "batch=2,vocabulary=5,context=4,width=8,layers=1,heads=2", "mlp": "batch=2,inputs=3,width=8", "lenet": "batch=2,size=12",
		"resnet": "batch=2,size=8,width=8,blocks=1", "vit": "batch=2,size=8,patch=4,width=8,layers=1,heads=2",
		"lstm": "batch=2,steps=3,inputs=2,width=4", "unet": "batch=1,size=16,width=8,depth=2",
	}
	for _, a := range zoo.Architectures {
		changes := []string{least[a.Name]}
		for _, s := range a.Settings {
			for _, w := range s.Words[min(1, len(s.Words)):] {
				changes = append(changes, s.Name+"="+w)
			}
			switch s.Name {
			case "dropout":
				changes = append(changes, "dropout=0.25")
			case "classes":
				changes = append(changes, "classes=0", "classes=0,outputs=3", "classes=7")
			case "layers", "channels":
				changes = append(changes, s.Name+"=2")
			}
		}
		for _, change := range changes {
			t.Run(a.Name+" "+change, func(t *testing.T) {
				settings, err := zoo.Parse(least[a.Name])
				if err != nil {
					t.Fatal(err)
				}
				changed, err := zoo.Parse(change)
				if err != nil {
					t.Fatal(err)
				}
				maps.Copy(settings, changed)
				m, err := a.New(settings, 1)
				if err != nil {
					t.Fatal(err)
				}
				typed, gradients := differentiated(t, m.Graph)
				if o := m.Graph.Outputs[0]; typed.Outputs[0].Type != o.Type || !typed.Outputs[0].Shape.Equal(o.Shape) {
					t.Errorf("output %v%v, said to be %v%v", typed.Outputs[0].Type, typed.Outputs[0].Shape, o.Type, o.Shape)
				}
				if want := map[bool]string{true: "value", false: "logits"}[settings["classes"] == "0"]; m.Graph.Outputs[0].Name != want {
					t.Errorf("the output is %q, want %q", m.Graph.Outputs[0].Name, want)
				}
				trained := 0
				for name := range gradients {
					trained += m.Graph.Const(name).Len()
				}
				if trained != m.Parameters {
					t.Errorf("%d numbers have gradients, said to be %d", trained, m.Parameters)
				}
				if change == "dropout=0.25" {
					share := 0
					for _, n := range m.Graph.Nodes {
						if n.Op == "Dropout" {
							share++
						}
					}
					if (share == 0) != (a.Name == "lstm") { // one layer has nothing between layers
						t.Errorf("%d nodes drop values", share)
					}
				}
			})
		}
	}
}

// Sizes are what papers and libraries say.
func TestParameters(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		want           int
	}{
		{"lenet", "", 61_706},
		{"resnet", "", 272_474},
		{"resnet", "stages=4,blocks=2,width=64,stem=large,size=224,classes=1000,batch=1", 11_689_512}, // torchvision's resnet18
		{"unet", "channels=3,width=64,depth=4,batch=1,norm=batch", 31_037_698},                        // milesial's
		{"vit", "size=224,patch=16,width=192,layers=12,heads=3,classes=1000,batch=1", 5_717_416},      // timm's vit_tiny_patch16_224
		{"lstm", "inputs=10,width=20,layers=2,classes=0", 5_941},                                      // nn.LSTM(10, 20, 2) and 21
	} {
		a, err := zoo.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := zoo.Parse(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := a.Outline(chosen); err != nil || m.Parameters != c.want {
			t.Errorf("%s %s: %v, want %d parameters, %v", c.name, c.settings, m, c.want, err)
		}
	}
}

// What is wrong is refused before it takes memory, and the error says which setting to change.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ name, settings, want string }{
		{"mlp", "width=0", "width=0: give a whole number from 1 to 65536"},
		{"mlp", "width=2.5", "give a whole number"},
		{"mlp", "width=0x10", "give a whole number"},
		{"mlp", "width=1e2", ""},
		{"mlp", "width=NaN", "give a whole number"},
		{"mlp", "dropout=1", "dropout=1: give a number from 0 to 0.9"},
		{"mlp", "dropout=Inf", "give a number from"},
		{"mlp", "activation=swish", "activation=swish: give one of relu, gelu, tanh, sigmoid"},
		{"mlp", "depth=3", `mlp has no setting "depth": there are batch, inputs, width`},
		{"mlp", "outputs=2", "outputs=2 is for numbers that are predicted: choose classes=0 too"},
		{"mlp", "inputs=65536,width=65536", "limit 268435456: choose smaller width, layers, inputs"},
		{"mlp", "batch=65536,inputs=65536", "choose a smaller batch"},
		{"gpt", "width=4096,layers=64", "choose smaller width, layers, vocabulary"},
		{"gpt", "heads=5", "heads=5 do not divide width=48: choose heads=4"},
		{"resnet", "width=12", "groups=8 do not divide width=12: choose groups=6, or norm=batch"},
		{"resnet", "width=1024,stages=5", "limit 268435456: choose smaller width, blocks, stages"},
		{"lenet", "size=11", "size=11: give a whole number from 12 to 1024"},
		{"vit", "patch=5", "patch=5 does not divide size=32: choose patch=4"},
		{"vit", "patch=64", "choose patch=32"},
		{"vit", "size=256,patch=2", "16384 patches are more than 4095: choose a larger patch, or a smaller size"},
		{"vit", "heads=3", "heads=3 do not divide width=64: choose heads=2"},
		{"unet", "size=20", "size=20 cannot be halved depth=3 times: choose size=24, or a smaller depth"},
		{"unet", "width=1024,depth=6,size=64", "limit 268435456: choose smaller width, depth"},
		{"lstm", "width=4096,layers=16", "choose smaller width, layers"},
		{"lstm", "steps=1025", "steps=1025: give a whole number from 1 to 1024"},
	} {
		a, err := zoo.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := zoo.Parse(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.New(chosen, 1); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.name, c.settings, err, c.want)
		}
	}
	if _, err := zoo.Find("alexnet"); err == nil || !strings.Contains(err.Error(), "there are gpt, mlp, lenet") {
		t.Error(err)
	}
	for text, want := range map[string]string{"width": "is no name=value", "width=": "is no name=value", "=3": "is no name=value", "a=1,a=2": "a is given twice"} {
		if _, err := zoo.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if got, err := zoo.Parse(" a = 1, ,b=x=y", "c=3"); err != nil || fmt.Sprint(got) != "map[a:1 b:x=y c:3]" {
		t.Errorf("%v, %v", got, err)
	}
}

// Long sequences and deep stacks stay within what lowering may take.
func TestLargeModelsLower(t *testing.T) {
	for name, settings := range map[string]string{"lstm": "steps=1024,batch=1,width=8,inputs=2", "gpt": "layers=64,width=8,heads=1,context=16", "resnet": "blocks=32,width=8,size=8,batch=1"} {
		if _, err := op.Infer(build(t, name, settings, 1).Graph, lower.FP32); err != nil {
			t.Errorf("%s %s: %v", name, settings, err)
		}
	}
}

// Weights follow from name and seed alone, and are spread as PyTorch's are.
func TestDraws(t *testing.T) {
	v := make([]float32, 10_001)
	for _, c := range []struct {
		name      string
		draw      func()
		deviation float64
		most      float64
	}{
		{"uniform", func() { zoo.Uniform(v, 1, "w", 0.25) }, 0.25 / math.Sqrt(3), 0.25},
		{"normal", func() { zoo.Normal(v, 1, "w", 0.5) }, 0.5, 0.5 * 3.4641},
	} {
		c.draw()
		var sum, square, most float64
		for _, x := range v {
			sum += float64(x)
			square += float64(x) * float64(x)
			most = math.Max(most, math.Abs(float64(x)))
		}
		n := float64(len(v))
		if d := math.Sqrt(square / n); math.Abs(sum/n) > 3*c.deviation/math.Sqrt(n) || math.Abs(d-c.deviation) > 0.02*c.deviation || most > c.most {
			t.Errorf("%s: mean %v, deviation %v, greatest %v", c.name, sum/n, d, most)
		}
		again := slices.Clone(v)
		if c.draw(); !slices.Equal(v, again) {
			t.Errorf("%s: the numbers are others the second time", c.name)
		}
	}
	a, b := build(t, "vit", "batch=1", 1), build(t, "vit", "batch=5", 1)
	for _, c := range a.Graph.Consts {
		if w := b.Graph.Const(c.Name); c.Tensor.Type == tensor.Float32 && (w == nil || !w.Equal(c.Tensor)) {
			t.Errorf("%s depends on the batch", c.Name)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, a := range zoo.Architectures {
		b.Run(a.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.New(nil, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
