package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/format/delimited"
)

// work is one thing that the engine is measured by.
type work struct {
	name  string // before the threads
	unit  string
	whole bool // a program, not a primitive
	// prepare returns what is repeated and, of its time in seconds, the figure.
	prepare func(ctx context.Context, threads int) (do func() error, figure func(seconds float64) float64, err error)
}

// engineRows measures every work whose name has the given part.
func engineRows(ctx context.Context, o Options) (rows []Row, err error) {
	all := engineWorks()
	if o.Models != "" {
		more, err := inferences(o.Models)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	for _, w := range all {
		for t := 1; t <= 2; t++ {
			name := fmt.Sprintf("%s/t%d", w.name, t)
			if !strings.Contains(name, o.Only) {
				continue
			}
			o.Tell("%s", name)
			measured, err := w.measure(ctx, name, t)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			rows = append(rows, measured...)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("nothing that is measured is called %q", o.Only)
	}
	return rows, nil
}

// measure returns the figure and, if there is a whole program at work, the memory
// of the process at most.
func (w *work) measure(ctx context.Context, name string, threads int) ([]Row, error) {
	fresh := forgetPeak()
	do, figure, err := w.prepare(ctx, threads)
	if err != nil {
		return nil, err
	}
	seconds, err := median(ctx, do)
	if err != nil {
		return nil, err
	}
	rows := []Row{row(name, w.unit, figure(seconds))}
	if mb, ok := peakMemory(); ok && fresh && w.whole {
		rows = append(rows, row(name+"/memory", "MB", mb))
	}
	return rows, nil
}

func engineWorks() (out []work) {
	for _, kind := range []string{"/fp32/", changing} {
		for _, n := range []int{512, 1024, 2048} {
			out = append(out, product(fmt.Sprintf("gemm%s%d", kind, n), tensor.Float32, n, n, n))
		}
		out = append(out,
			product("gemm"+kind+"16x4096x4096", tensor.Float32, 16, 4096, 4096),
			vectorProduct("gemv"+kind+"4096", 4096),
		)
	}
	out = append(out,
		product("gemm/mixed/1024", tensor.BFloat16, 1024, 1024, 1024),
		product("gemm/int8/1024", tensor.Int8, 1024, 1024, 1024),
		batched("gemm/batched/64x128x64x128", 64, 128, 64, 128),
		batched("gemm/batched/changing/64x128x64x128", 64, 128, 64, 128),
		hashing("root/sha256", 4096),
		readingText("csv/integers", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(100_000)) }),
		readingText("csv/rounded", func(r *rand.Rand) string { return fmt.Sprintf("%.3f", 100*r.NormFloat64()) }),
		readingText("csv/doubles", func(r *rand.Rand) string { return fmt.Sprint(r.Float64()) }),
		readingText("csv/categories", func(r *rand.Rand) string { return fmt.Sprintf("category %d", r.IntN(100)) }),
		training("train/demo/step_ms", "ms", demoStep, milliseconds),
		training("train/gpt/tokens_per_s", "tokens/s", gptStep, func(s float64) float64 { return gptBatch * gptContext / s }),
		training("train/lenet/step_ms", "ms", leNetStep, milliseconds),
		training("train/resnet/step_ms", "ms", resNetStep, milliseconds),
	)
	return out
}

func milliseconds(s float64) float64 { return s * 1e3 }

// changing is the part of a row's name that says that operands may change from run to run;
// they are constants in other rows.
const changing = "/changing/"

// primitive is the work of one primitive over normal operands: operations at a time, in
// units of 10⁹ a second.
func primitive(name, unit string, p *tensor.Primitive, operations float64) work {
	return work{name: name, unit: unit, prepare: func(ctx context.Context, threads int) (func() error, func(float64) float64, error) {
		var args []*tensor.Tensor
		for _, a := range p.Args {
			args = append(args, normal(a.Type, a.Shape))
		}
		prog, in := alone(p, strings.Contains(name, changing), args)
		do, err := runner(ctx, prog, in, threads)
		return do, func(s float64) float64 { return operations / s / 1e9 }, err
	}}
}

func dims(axes ...int) (out []tensor.Dim) {
	for _, a := range axes {
		out = append(out, tensor.Dim{Terms: []tensor.Term{{Axis: a, Step: 1}}})
	}
	return out
}

// product multiplies an m×k with a k×n matrix.
func product(name string, t tensor.DType, m, k, n int) work {
	out, unit := t, "GFLOP/s"
	switch t {
	case tensor.BFloat16:
		out = tensor.Float32
	case tensor.Int8:
		out, unit = tensor.Int32, "GOP/s"
	}
	return primitive(name, unit, &tensor.Primitive{Fn: tensor.Dot, Type: out, Shape: tensor.Shape{m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: t, Shape: tensor.Shape{m, k}, Dims: dims(0, 2)},
		{Type: t, Shape: tensor.Shape{k, n}, Dims: dims(2, 1)},
	}}, 2*float64(m)*float64(k)*float64(n))
}

// batched is so many products of m×k and k×n, as in attention.
func batched(name string, b, m, k, n int) work {
	return primitive(name, "GFLOP/s", &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{b, m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{b, m, k}, Dims: dims(0, 1, 3)},
		{Type: tensor.Float32, Shape: tensor.Shape{b, k, n}, Dims: dims(0, 3, 2)},
	}}, 2*float64(b)*float64(m)*float64(k)*float64(n))
}

// vectorProduct multiplies an n×n matrix with a vector; what counts is reading
// the matrix.
func vectorProduct(name string, n int) work {
	return primitive(name, "GB/s", &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{n}, Fold: []int{n}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{n, n}, Dims: dims(0, 1)},
		{Type: tensor.Float32, Shape: tensor.Shape{n}, Dims: dims(1)},
	}}, 4*float64(n)*float64(n))
}

// hashing takes the root of an n×n matrix.
func hashing(name string, n int) work {
	return work{name: name, unit: "GB/s", prepare: func(_ context.Context, threads int) (func() error, func(float64) float64, error) {
		x := normal(tensor.Float32, tensor.Shape{n, n})
		do := func() error {
			merkle.Root(x, threads)
			return nil
		}
		return do, func(s float64) float64 { return float64(len(x.Bytes())) / s / 1e9 }, nil
	}}
}

// readingText reads half a million cells, in ten columns of comma-separated values.
func readingText(name string, cell func(*rand.Rand) string) work {
	return work{name: name, unit: "GB/s", prepare: func(context.Context, int) (func() error, func(float64) float64, error) {
		r, b := rand.New(rand.NewPCG(1, 2)), []byte("a,b,c,d,e,f,g,h,i,j\n")
		for i := range 500_000 {
			b = append(b, cell(r)...)
			if b = append(b, ','); i%10 == 9 {
				b[len(b)-1] = '\n'
			}
		}
		do := func() error {
			_, err := delimited.Read(b, delimited.Options{})
			return err
		}
		return do, func(s float64) float64 { return float64(len(b)) / s / 1e9 }, nil
	}}
}

// training is the work of a step.
func training(name, unit string, step func() (*graph.Program, graph.Inputs, error), figure func(float64) float64) work {
	return work{name: name, unit: unit, whole: true, prepare: func(ctx context.Context, threads int) (func() error, func(float64) float64, error) {
		p, in, err := step()
		if err != nil {
			return nil, nil, err
		}
		do, err := trainer(ctx, p, in, threads)
		return do, figure, err
	}}
}

// normal returns a tensor of normal numbers, rounded to what type t holds.
func normal(t tensor.DType, s tensor.Shape) *tensor.Tensor {
	r := rand.New(rand.NewPCG(1, 2))
	x := tensor.Must(tensor.New(t, s))
	for i := range x.Len() {
		if t.Float() {
			x.Set(i, tensor.FloatWord(t, r.NormFloat64()))
		} else {
			x.Set(i, tensor.Word(int64(r.NormFloat64()*32)))
		}
	}
	return x
}
