package train_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// pytorch is what PyTorch makes of the same models, in float64.
type pytorch struct {
	Gradients map[string]struct {
		Loss      float64
		Float32   float64 // how far PyTorch's own float32 is from float64, relative to the norm of all gradients
		Gradients map[string][]float64
	}
	Runs map[string][]float64 // the losses of 50 steps
}

func readPyTorch(t *testing.T) (p pytorch) {
	t.Helper()
	b, err := os.ReadFile("testdata/pytorch.json")
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small is the language model of the script, and its data.
var small = gpt{vocabulary: 11, context: 8, width: 12, heads: 2, layers: 2}

const smallRecords, smallBatch = 24, 4

func smallText() *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{smallRecords, small.context + 1}))
	for i := range t.Len() {
		r, c := i/(small.context+1), i%(small.context+1)
		t.Set(i, tensor.Word((r+c*(r%3+1)+c*c*r%2)%small.vocabulary))
	}
	return t
}

func smallRows(step int) []int64 {
	rows := make([]int64, smallBatch)
	for i := range rows {
		rows[i] = int64((step*smallBatch + i) % smallRecords)
	}
	return rows
}

// The models of the script up to their losses.
var compared = map[string]func() (n *network, loss string){
	"mlp": func() (*network, string) {
		n := newNetwork("mlp")
		x := n.Op("Tanh", n.linear("first", n.Init("x", numbers("x", 1, 0, 8, 12)), 12, 24))
		y := n.linear("third", n.Op("Relu", n.linear("second", x, 24, 24)), 24, 5)
		off := n.Op("Sub", y, n.Init("target", numbers("target", 1, 0, 8, 5)))
		return n, n.With(graph.Int("keepdims", 0)).Op("ReduceMean", n.Op("Mul", off, off))
	},
	"cnn": func() (*network, string) {
		n := newNetwork("cnn")
		x := n.pool("MaxPool", n.Op("Relu", n.conv("conv1", n.Init("image", numbers("image", 1, 0, 4, 1, 12, 12)), 1, 4)))
		x = n.pool("AveragePool", n.Op("Gelu", n.conv("conv2", x, 4, 6)))
		y := n.linear("head", n.Op("Flatten", x), 54, 10)
		labels := n.Init("labels", tensor.Must(tensor.From(tensor.Shape{4}, []int64{3, 1, 4, 1})))
		return n, n.Op("SoftmaxCrossEntropyLoss", y, labels)
	},
	"gpt": func() (*network, string) {
		n := newNetwork("gpt")
		g := small.graph(smallBatch)
		for _, c := range g.Consts {
			if c.Tensor.Type == tensor.Float32 {
				n.params = append(n.params, n.Init(c.Name, c.Tensor))
			}
		}
		tokens, labels := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{smallBatch, small.context})), tensor.Must(tensor.New(tensor.Int32, tensor.Shape{smallBatch * small.context}))
		text := tensor.Of[int32](smallText())
		for i := range labels.Len() {
			at := i/small.context*(small.context+1) + i%small.context
			tensor.Of[int32](tokens)[i], tensor.Of[int32](labels)[i] = text[at], text[at+1]
		}
		bind := map[string]string{"tokens": n.Init("tokens", tokens)}
		for _, p := range n.params {
			bind[p] = p
		}
		logits := n.Import("model/", g, bind)[g.Outputs[0].Name]
		logits = n.Op("Reshape", logits, n.Ints(-1, small.vocabulary))
		return n, n.Op("SoftmaxCrossEntropyLoss", logits, n.Init("labels", labels))
	},
}

// gradientsOf returns the loss of a model and its gradients, which are those of
// its parameters.
func gradientsOf(t *testing.T, n *network, loss string) (float64, map[string]*tensor.Tensor) {
	t.Helper()
	g := n.Graph()
	start := &graph.State{}
	free := &graph.Graph{Name: g.Name, Nodes: g.Nodes, Outputs: []graph.Value{{Name: loss, Type: tensor.Float32}}}
	trained := map[string]bool{}
	for _, p := range n.params {
		trained[p] = true
	}
	for _, c := range g.Consts {
		if trained[c.Name] {
			free.Inputs = append(free.Inputs, graph.Value{Name: c.Name, Type: c.Tensor.Type, Shape: c.Tensor.Shape})
		} else {
			free.Consts = append(free.Consts, c)
		}
	}
	typed, err := op.Infer(free, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	forward, calls := typed.Differentiable()
	b := graph.Extend(forward)
	grads, err := train.Gradients(b, calls, forward.Outputs[0].Name, n.params, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range n.params {
		b.Output(grads[p], tensor.Float32, g.Const(p).Shape)
	}
	if typed, err = op.Infer(b.Graph(), lower.FP32); err != nil {
		t.Fatal(err)
	}
	program, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range program.Slots {
		start.Slots, start.Tensors = append(start.Slots, s), append(start.Tensors, g.Const(s.Name))
	}
	out, err := program.Run(graph.Inputs{States: []*graph.State{start}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*tensor.Tensor{}
	for _, p := range n.params {
		found[p] = out.Find(grads[p])
	}
	return float64(tensor.Of[float32](out.Find(forward.Outputs[0].Name))[0]), found
}

// The gradients of whole models are those of PyTorch in float64 within 10⁻⁶ of
// their norm, which is what float32 can hold.
func TestGradientsEqualPyTorch(t *testing.T) {
	for name, want := range readPyTorch(t).Gradients {
		t.Run(name, func(t *testing.T) {
			n, loss := compared[name]()
			got, grads := gradientsOf(t, n, loss)
			if math.Abs(got/want.Loss-1) > 1e-6 {
				t.Errorf("loss %v, PyTorch %v", got, want.Loss)
			}
			var apart, norm float64
			for p, w := range want.Gradients {
				if grads[p] == nil || grads[p].Len() != len(w) {
					t.Fatalf("%s has gradient %v, PyTorch %d elements", p, grads[p], len(w))
				}
				for i, v := range tensor.Of[float32](grads[p]) {
					d := float64(v) - w[i]
					apart, norm = apart+float64(d*d), norm+float64(w[i]*w[i])
				}
			}
			off := math.Sqrt(apart / norm)
			t.Logf("%.2g of the norm apart; PyTorch in float32 %.2g", off, want.Float32)
			if !(off < 1e-6) || len(grads) != len(want.Gradients) {
				t.Errorf("%.2g of the norm apart, with %d of %d gradients", off, len(grads), len(want.Gradients))
			}
		})
	}
}

// A run of 50 steps has the losses of PyTorch's, in float64, within 10⁻⁵.
func TestRunsEqualPyTorch(t *testing.T) {
	recipes := map[string]train.Recipe{
		"sgd":      {Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.1}, Momentum: 0.9, ClipNorm: 1},
		"nesterov": {Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.05}, Momentum: 0.9, Nesterov: true},
		"adam":     {Optimizer: "adam", Rate: train.Rate{LearningRate: 0.003}, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-6},
		"adamw": {
			Optimizer: "adamw", Rate: train.Rate{LearningRate: 0.01, Warmup: 10, Schedule: "cosine", Decay: 40},
			Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-6, WeightDecay: 0.1, ClipNorm: 1,
		},
		"adagrad": {Optimizer: "adagrad", Rate: train.Rate{LearningRate: 0.02}, Epsilon: 1e-6},
	}
	for name, losses := range readPyTorch(t).Runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recipes[name]
			r.Loss, r.Batch = "next-token-cross-entropy", smallBatch
			data := smallText()
			tr, err := train.New(small.graph(smallBatch), r, data.Shape)
			if err != nil {
				t.Fatal(err)
			}
			s, most := tr.Start, 0.0
			for step, want := range losses {
				in := graph.Inputs{States: []*graph.State{s}, Data: data, Rows: smallRows(step)}
				if s, err = tr.Program.Run(in, graph.Reference, nil); err != nil {
					t.Fatal(err)
				}
				got := float64(tensor.Of[float32](s.Find("loss"))[0])
				if most = max(most, math.Abs(got/want-1)); most > 1e-5 {
					t.Fatalf("step %d: loss %v, PyTorch %v", step, got, want)
				}
			}
			t.Logf("losses of %d steps at most %.2g apart, of themselves", len(losses), most)
		})
	}
}
