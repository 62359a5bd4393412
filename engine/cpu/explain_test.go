package cpu_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Every kernel says what it is, every output is of one task, and the result is that of any
// run.
func TestExplainTellsOfEveryTask(t *testing.T) {
	single := func(p *tensor.Primitive) (*graph.Program, graph.Inputs) {
		var args []*tensor.Tensor
		for _, a := range p.Args {
			args = append(args, kerneltest.Normal(a.Type, a.Shape))
		}
		return kerneltest.Single(p, args...)
	}
	rows := &tensor.Primitive{
		Fn: tensor.FoldSum, Type: tensor.Float32, Shape: tensor.Shape{4}, Fold: []int{5000},
		Args: []tensor.Access{{Type: tensor.Float32, Shape: tensor.Shape{4, 5000}, Dims: kerneltest.Dims(0, 1)}},
	}
	cases := map[string]func() (*graph.Program, graph.Inputs){
		"gemm": func() (*graph.Program, graph.Inputs) { return single(kerneltest.MatMul(64, 96, 80)) },
		"gemv": func() (*graph.Program, graph.Inputs) { return single(kerneltest.MatMul(1, 512, 512)) },
		"plain gemm": func() (*graph.Program, graph.Inputs) {
			return single(kerneltest.Typed(kerneltest.MatMul(4, 5, 6), tensor.Int32))
		},
		"depthwise": func() (*graph.Program, graph.Inputs) {
			return single(kerneltest.Convolution{Batch: 1, In: 8, Size: 16, Out: 8, Kernel: 3, Stride: 1, Pad: 1, Groups: 8}.Primitive())
		},
		"igemm": func() (*graph.Program, graph.Inputs) {
			return single(kerneltest.Convolution{Batch: 1, In: 8, Size: 32, Out: 16, Kernel: 3, Stride: 1, Pad: 1, Groups: 1}.Primitive())
		},
		"fold": func() (*graph.Program, graph.Inputs) { return single(rows) },
		"elementwise": func() (*graph.Program, graph.Inputs) {
			p, start := fibonacci(1000)
			return p, graph.Inputs{States: []*graph.State{start}}
		},
	}
	if set, _ := asm.Chosen(); set.DotGEMM == nil {
		delete(cases, "gemv")
	}
	for name, make := range cases {
		p, in := make()
		r, err := cpu.New(2).Prepare(p)
		if err != nil {
			t.Fatal(name, err)
		}
		want, err := r.Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		got, tasks, err := r.(engine.Explainer).Explain(t.Context(), in)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range want.Tensors {
			if !got.Tensors[i].Equal(want.Tensors[i]) {
				t.Errorf("%s: %s is another when it is explained", name, want.Slots[i].Name)
			}
		}
		checkTasks(t, name, p, tasks)
	}
}

func checkTasks(t *testing.T, name string, p *graph.Program, tasks []engine.Task) {
	t.Helper()
	flops, written := 0, map[int]bool{}
	for i, x := range tasks {
		flops += x.FLOPs
		if i == 0 && !strings.HasPrefix(x.Kernel, name) || x.Blocking == "" || x.Bytes <= 0 || x.Blocks <= 0 || x.Took <= 0 {
			t.Errorf("%s: task %d says %+v", name, i, x)
		}
		if i > 0 && x.Begin < tasks[i-1].Begin+tasks[i-1].Took {
			t.Errorf("%s: task %d begins at %v, before task %d has ended", name, i, x.Begin, i-1)
		}
		for _, o := range x.Outputs {
			if written[o.Node] || !slices.Contains(x.Nodes, o.Node) {
				t.Errorf("%s: task %d of nodes %v writes node %d", name, i, x.Nodes, o.Node)
			}
			written[o.Node] = true
		}
	}
	for _, ref := range p.Outputs {
		if ref.Kind == graph.RefNode && !written[ref.Index] {
			t.Errorf("%s: nothing is said of node %d, which is an output", name, ref.Index)
		}
	}
	if flops == 0 {
		t.Errorf("%s takes no FLOP", name)
	}
}
