package cpu

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func conv(n, c, h, o, k, stride, pad, groups int) *tensor.Primitive {
	ho := (h+2*pad-k)/stride + 1
	window := func(out, kernel int) tensor.Dim {
		return tensor.Dim{Offset: -pad, Terms: []tensor.Term{{Axis: out, Step: stride}, {Axis: kernel, Step: 1}}}
	}
	if groups == 1 {
		return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{n, o, ho, ho}, Fold: []int{c, k, k}, Args: []tensor.Access{
			{Type: tensor.Float32, Shape: tensor.Shape{n, c, h, h}, Dims: []tensor.Dim{axis(0), axis(4), window(2, 5), window(3, 6)}},
			{Type: tensor.Float32, Shape: tensor.Shape{o, c, k, k}, Dims: axisDims(1, 4, 5, 6)},
		}}
	}
	ch := func(n, a int) tensor.Dim { return tensor.Dim{Terms: []tensor.Term{{Axis: 1, Step: n}, {Axis: a, Step: 1}}} }
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{n, groups, o / groups, ho, ho}, Fold: []int{c / groups, k, k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{n, c, h, h}, Dims: []tensor.Dim{axis(0), ch(c/groups, 5), window(3, 6), window(4, 7)}},
		{Type: tensor.Float32, Shape: tensor.Shape{o, c / groups, k, k}, Dims: append([]tensor.Dim{ch(o/groups, 2)}, axisDims(5, 6, 7)...)},
	}}
}

// dW as Conv
func convW(n, c, h, o, k, pad int) *tensor.Primitive {
	window := func(out, kernel int) tensor.Dim {
		return tensor.Dim{Offset: -pad, Terms: []tensor.Term{{Axis: out, Step: 1}, {Axis: kernel, Step: 1}}}
	}
	ho := h + 2*pad - k + 1
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c, o, k, k}, Fold: []int{n, ho, ho}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c, n, h, h}, Dims: []tensor.Dim{axis(0), axis(4), window(2, 5), window(3, 6)}},
		{Type: tensor.Float32, Shape: tensor.Shape{o, n, ho, ho}, Dims: axisDims(1, 4, 5, 6)},
	}}
}

func batched(b, m, k, n int) *tensor.Primitive {
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{b, m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{b, m, k}, Dims: axisDims(0, 1, 3)},
		{Type: tensor.Float32, Shape: tensor.Shape{b, k, n}, Dims: axisDims(0, 3, 2)},
	}}
}

func batchedT(b, m, k, n int) *tensor.Primitive {
	p := batched(b, m, k, n)
	p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{b, n, k}, Dims: axisDims(0, 2, 3)}
	return p
}

func TestZZ(t *testing.T) {
	only := os.Getenv("ONLY")
	if only == "" {
		t.Skip()
	}
	cases := []struct {
		name string
		p    *tensor.Primitive
	}{
		{"gemm512", matmul(512, 512, 512)}, {"gemm1024", matmul(1024, 1024, 1024)}, {"gemm2048", matmul(2048, 2048, 2048)},
		{"skinny16x4096", matmul(16, 4096, 4096)}, {"gemvRow", matmul(1, 4096, 4096)}, {"gemvCol", matmul(4096, 4096, 1)},
		{"batch128x64x128", batched(64, 128, 64, 128)}, {"batchT128x64x128", batchedT(64, 128, 64, 128)}, {"batch128x128x64", batched(64, 128, 128, 64)},
		{"gpt2048x256x768", matmul(2048, 256, 768)}, {"gpt256x2048x1024", matmul(256, 2048, 1024)},
		{"convL1", conv(64, 1, 28, 6, 5, 1, 2, 1)}, {"convL2", conv(64, 6, 14, 16, 5, 1, 0, 1)},
		{"convR64x56", conv(1, 64, 56, 64, 3, 1, 1, 1)}, {"convR128x28", conv(1, 128, 28, 128, 3, 1, 1, 1)}, {"convR256x14", conv(1, 256, 14, 256, 3, 1, 1, 1)}, {"convR512x7", conv(1, 512, 7, 512, 3, 1, 1, 1)},
		{"convR7x7s2", conv(1, 3, 224, 64, 7, 2, 3, 1)}, {"convR1x1", conv(1, 256, 56, 64, 1, 1, 0, 1)}, {"convS2", conv(1, 64, 56, 128, 3, 2, 1, 1)},
		{"convDW", conv(1, 128, 56, 128, 3, 1, 1, 128)}, {"convC32", conv(32, 64, 32, 64, 3, 1, 1, 1)},
		{"dW32", convW(32, 64, 32, 64, 3, 1)}, {"dWL1", convW(64, 1, 28, 6, 5, 2)},
	}
	set, _ := asm.Chosen()
	threads := 1
	if s := os.Getenv("THREADS"); s != "" {
		threads, _ = strconv.Atoi(s)
	}
	for _, c := range cases {
		if only != "all" && !strings.Contains(c.name, only) {
			continue
		}
		if s := os.Getenv("TYPE"); s == "bf16" {
			c.p.Args[0].Type, c.p.Args[1].Type = tensor.BFloat16, tensor.BFloat16
		} else if s == "int8" {
			c.p.Args[0].Type, c.p.Args[1].Type, c.p.Type = tensor.Int8, tensor.Int8, tensor.Int32
		}
		var args []*tensor.Tensor
		for _, a := range c.p.Args {
			x := normal(a.Shape)
			if a.Type != tensor.Float32 {
				y := tensor.Must(tensor.New(a.Type, a.Shape))
				for i := range x.Len() {
					if a.Type == tensor.BFloat16 {
						y.Set(i, tensor.FloatWord(a.Type, float64(tensor.AsF32(x.At(i)))))
					} else {
						y.Set(i, tensor.Word(int64(int8(tensor.AsF32(x.At(i))*40))))
					}
				}
				x = y
			}
			args = append(args, x)
		}
		prog, in := single(c.p, args...)
		prog.Outputs[0] = graph.Ref{Kind: graph.RefSlot}
		run, err := New(threads).Prepare(prog)
		if err != nil {
			t.Fatal(err)
		}
		work := 2 * float64(c.p.Shape.Elements()) * float64(c.p.Terms())
		inner := max(int(1e8/work), 1)
		var cpu, wall []float64
		begin := time.Now()
		for len(cpu) < 5 || time.Since(begin) < 600*time.Millisecond {
			s, w := cpuTime(), time.Now()
			for range inner {
				if _, err := run.Run(context.Background(), in, nil); err != nil {
					t.Fatal(err)
				}
			}
			cpu = append(cpu, (cpuTime()-s).Seconds()/float64(inner))
			wall = append(wall, time.Since(w).Seconds()/float64(inner))
		}
		sort.Float64s(cpu)
		sort.Float64s(wall)
		fmt.Printf("%-18s %s t%d: cpu %.1f (best %.1f), wall %.1f (best %.1f) GFLOP/s\n", c.name, set.Name, threads, work/cpu[len(cpu)/2]/1e9, work/cpu[0]/1e9, work/wall[len(wall)/2]/1e9, work/wall[0]/1e9)
	}
}
