package cpu_test

import (
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

func BenchmarkMap(b *testing.B) {
	s := tensor.Shape{512, 256}
	n := float64(s.Elements())
	full := tensor.Access{Type: tensor.Float32, Shape: s, Dims: kerneltest.Dims(0, 1)}
	row := tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{256}, Dims: kerneltest.Dims(1)}
	for name, p := range map[string]*tensor.Primitive{
		"add":       {Fn: tensor.Add, Args: []tensor.Access{full, full}},
		"broadcast": {Fn: tensor.Add, Args: []tensor.Access{full, row}},
		"div":       {Fn: tensor.Div, Args: []tensor.Access{full, full}},
		"max":       {Fn: tensor.Max, Args: []tensor.Access{full, row}},
		"exp":       {Fn: tensor.ExpF, Args: []tensor.Access{full}},
		"tanh":      {Fn: tensor.TanhF, Args: []tensor.Access{full}},
		"erf":       {Fn: tensor.ErfF, Args: []tensor.Access{full}},
		"abs":       {Fn: tensor.Abs, Args: []tensor.Access{full}},
	} {
		p.Type, p.Shape = tensor.Float32, s
		b.Run(name, func(b *testing.B) { kerneltest.Bench(b, p, n, "Gelt/s") })
	}
}

func BenchmarkFold(b *testing.B) {
	s := tensor.Shape{512, 256}
	n := float64(s.Elements())
	for _, fn := range []tensor.Fn{tensor.FoldSum, tensor.FoldMax} {
		for name, p := range map[string]*tensor.Primitive{
			"rows":    {Shape: s[:1], Fold: []int{s[1]}, Args: []tensor.Access{{Dims: kerneltest.Dims(0, 1)}}},
			"columns": {Shape: s[1:], Fold: []int{s[0]}, Args: []tensor.Access{{Dims: kerneltest.Dims(1, 0)}}},
			"all":     {Fold: []int{s[0], s[1]}, Args: []tensor.Access{{Dims: kerneltest.Dims(0, 1)}}},
		} {
			p.Fn, p.Type = fn, tensor.Float32
			p.Args[0].Type, p.Args[0].Shape = tensor.Float32, s
			b.Run(fn.String()+"/"+name, func(b *testing.B) { kerneltest.Bench(b, p, n, "Gelt/s") })
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	for name, dims := range map[string][]tensor.Dim{"heads": kerneltest.Dims(0, 2, 1, 3), "transpose": kerneltest.Dims(0, 1, 3, 2)} {
		s := tensor.Shape{8, 4, 64, 64}
		p := &tensor.Primitive{Fn: tensor.Copy, Type: tensor.Float32, Shape: s, Imm: []tensor.Word{0}}
		a := tensor.Access{Type: tensor.Float32, Dims: dims}
		for _, d := range dims {
			a.Shape = append(a.Shape, s[d.Terms[0].Axis])
		}
		p.Args = []tensor.Access{a}
		b.Run(name, func(b *testing.B) { kerneltest.Bench(b, p, float64(s.Elements()), "Gelt/s") })
	}
}
