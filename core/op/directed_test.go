package op_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
)

// Numbers at which implementations part.
var (
	inf, nan = math.Inf(1), math.NaN()
	minus    = math.Copysign(0, -1)
	ulp      = math.Ldexp(1, -23) // of 1
	tiny     = math.Ldexp(1, -149)
	normal   = math.Ldexp(1, -126) // the least that is not denormal
)

// f32 is a list of floats, i64 one of integers.
func f32(v ...float64) arg { return given(tensor.Float32, []int{len(v)}, v...) }
func i64(v ...float64) arg { return given(tensor.Int64, []int{len(v)}, v...) }

func shapedAs(a arg, shape ...int) arg {
	a.shape = shape
	return a
}

// directed are cases chosen by hand. What is wanted follows from the definition
// alone: IEEE 754 for one operation, the order of terms for several.
var directed = []struct {
	name  string
	op    string
	attrs []graph.Attr
	in    []arg
	want  []arg
}{
	// 1+ulp + (2⁻²⁴ − 2⁻⁶⁰) lies below the middle; rounded to float64 first it is the middle.
	{"double rounding: MatMul", "MatMul", nil, []arg{shapedAs(f32(1+ulp, math.Ldexp(1+math.Ldexp(1, -18), -24)), 1, 2), shapedAs(f32(1, 1-math.Ldexp(1, -18)), 2, 1)}, []arg{shapedAs(f32(1+ulp), 1, 1)}},
	{"double rounding: Conv", "Conv", nil, []arg{shapedAs(f32(1+ulp, math.Ldexp(1+math.Ldexp(1, -18), -24)), 1, 1, 2), shapedAs(f32(1, 1-math.Ldexp(1, -18)), 1, 1, 2)}, []arg{shapedAs(f32(1+ulp), 1, 1, 1)}},
	// 1 + 2⁻¹¹ + 2⁻²⁵ in float16 through float32 would be a tie.
	{"double rounding: Cast float64 to float16", "Cast", to(tensor.Float16), []arg{given(tensor.Float64, []int{2}, 1+math.Ldexp(1, -11)+math.Ldexp(1, -25), 1+math.Ldexp(1, -11))}, []arg{given(tensor.Float16, []int{2}, 1+math.Ldexp(1, -10), 1)}},

	{"ties: Add", "Add", nil, []arg{f32(1, 1+ulp, -1, -1-ulp), f32(ulp/2, ulp/2, -ulp/2, -ulp/2)}, []arg{f32(1, 1+2*ulp, -1, -1-2*ulp)}},
	{"ties: Mul", "Mul", nil, []arg{f32(1+ulp, 1+3*ulp), f32(1.5, 1.5)}, []arg{f32(1.5+2*ulp, 1.5+4*ulp)}},
	{"ties: Round", "Round", nil, []arg{f32(0.5, 1.5, 2.5, -0.5, -1.5, 8388607.5)}, []arg{f32(0, 2, 2, minus, -2, 8388608)}},
	{"ties: Cast to float16", "Cast", to(tensor.Float16), []arg{f32(1+math.Ldexp(1, -11), 1+3*math.Ldexp(1, -11), 65519, 65520)}, []arg{given(tensor.Float16, []int{4}, 1, 1+math.Ldexp(1, -9), 65504, inf)}},
	{"ties: Cast to bfloat16", "Cast", to(tensor.BFloat16), []arg{f32(1+math.Ldexp(1, -8), 1+3*math.Ldexp(1, -8))}, []arg{given(tensor.BFloat16, []int{2}, 1, 1+math.Ldexp(1, -6))}},
	{"ties: Cast int64 to float32", "Cast", to(tensor.Float32), []arg{i64(1<<24+1, 1<<24+3, -(1<<24 + 1))}, []arg{f32(1<<24, 1<<24+4, -(1 << 24))}},
	{"ties: QuantizeLinear", "QuantizeLinear", nil, []arg{f32(1, 3, 5, 7, 600), shapedAs(f32(2))}, []arg{given(tensor.Uint8, []int{5}, 0, 2, 2, 4, 255)}},

	{"denormals: Mul", "Mul", nil, []arg{f32(normal, tiny, 3*tiny, normal), f32(0.5, 0.5, 0.5, normal)}, []arg{f32(normal/2, 0, 2*tiny, 0)}},
	{"denormals: Add and Sub", "Sub", nil, []arg{f32(normal, normal+tiny), f32(tiny, normal)}, []arg{f32(normal-tiny, tiny)}},
	{"denormals: Div", "Div", nil, []arg{f32(normal, 1, tiny), f32(4, tiny, tiny)}, []arg{f32(normal/4, inf, 1)}},
	{"denormals: Sqrt", "Sqrt", nil, []arg{f32(4*tiny, math.Ldexp(1, -128))}, []arg{f32(float64(float32(math.Sqrt(4*tiny))), math.Ldexp(1, -64))}},
	{"denormals: MatMul", "MatMul", nil, []arg{shapedAs(f32(tiny, tiny, normal/2), 1, 3), shapedAs(f32(1, 2, 1), 3, 1)}, []arg{shapedAs(f32(normal/2+3*tiny), 1, 1)}},
	{"denormals: ReduceSum", "ReduceSum", []graph.Attr{graph.Int("keepdims", 0)}, []arg{f32(tiny, tiny, normal/2)}, []arg{shapedAs(f32(normal/2 + 2*tiny))}},
	{"denormals: Cast to float16", "Cast", to(tensor.Float16), []arg{f32(math.Ldexp(1, -24), math.Ldexp(1, -25), math.Ldexp(3, -26))}, []arg{given(tensor.Float16, []int{3}, math.Ldexp(1, -24), 0, math.Ldexp(1, -24))}},

	{"zeros: Add", "Add", nil, []arg{f32(minus, minus, 0, 1), f32(minus, 0, minus, -1)}, []arg{f32(minus, 0, 0, 0)}},
	{"zeros: Mul", "Mul", nil, []arg{f32(0, minus, minus), f32(-1, -1, 1)}, []arg{f32(minus, 0, minus)}},
	{"zeros: Neg", "Neg", nil, []arg{f32(0, minus)}, []arg{f32(minus, 0)}},
	{"zeros: Sqrt", "Sqrt", nil, []arg{f32(0, minus)}, []arg{f32(0, minus)}},
	{"zeros: Max", "Max", nil, []arg{f32(minus, 0), f32(0, minus)}, []arg{f32(0, 0)}},
	{"zeros: Min", "Min", nil, []arg{f32(minus, 0), f32(0, minus)}, []arg{f32(minus, minus)}},
	{"zeros: ReduceMax", "ReduceMax", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(f32(minus, 0, minus, minus), 2, 2), list(1)}, []arg{f32(0, minus)}},
	{"zeros: ReduceMin", "ReduceMin", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(f32(0, minus, 0, 0), 2, 2), list(1)}, []arg{f32(minus, 0)}},
	{"zeros: MatMul", "MatMul", nil, []arg{shapedAs(f32(minus), 1, 1), shapedAs(f32(1), 1, 1)}, []arg{shapedAs(f32(0), 1, 1)}},
	{"zeros: Equal", "Equal", nil, []arg{f32(0), f32(minus)}, []arg{given(tensor.Bool, []int{1}, 1)}},
	{"zeros: ArgMax", "ArgMax", []graph.Attr{graph.Int("keepdims", 0)}, []arg{f32(minus, 0, minus)}, []arg{shapedAs(i64(0))}},

	{"NaN: Add", "Add", nil, []arg{f32(inf, nan, 1), f32(-inf, 1, nan)}, []arg{f32(nan, nan, nan)}},
	{"NaN: Max", "Max", nil, []arg{f32(nan, 1), f32(inf, nan)}, []arg{f32(nan, nan)}},
	{"NaN: Relu", "Relu", nil, []arg{f32(nan)}, []arg{f32(nan)}},
	{"NaN: ReduceMin", "ReduceMin", []graph.Attr{graph.Int("keepdims", 0)}, []arg{f32(1, nan, -inf)}, []arg{shapedAs(f32(nan))}},
	{"NaN: ArgMax", "ArgMax", []graph.Attr{graph.Int("keepdims", 0)}, []arg{f32(inf, nan, nan)}, []arg{shapedAs(i64(1))}},
	{"NaN: Less", "Less", nil, []arg{f32(nan, 1), f32(1, nan)}, []arg{given(tensor.Bool, []int{2}, 0, 0)}},
	{"NaN: Cast to int32", "Cast", to(tensor.Int32), []arg{f32(nan, inf, -inf)}, []arg{given(tensor.Int32, []int{3}, 0, math.MaxInt32, math.MinInt32)}},
	{"NaN: MatMul", "MatMul", nil, []arg{shapedAs(f32(inf, 1), 1, 2), shapedAs(f32(0, 1), 2, 1)}, []arg{shapedAs(f32(nan), 1, 1)}},
	{"NaN: TopK", "TopK", nil, []arg{f32(inf, nan, -inf), list(2)}, []arg{f32(nan, inf), i64(1, 0)}},

	{"empty: ReduceSum", "ReduceSum", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(f32(), 2, 0), list(1)}, []arg{f32(0, 0)}},
	{"empty: ReduceProd", "ReduceProd", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(f32(), 2, 0), list(1)}, []arg{f32(1, 1)}},
	{"empty: ReduceMax", "ReduceMax", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(f32(), 1, 0), list(1)}, []arg{f32(-inf)}},
	{"empty: ReduceMin of int64", "ReduceMin", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(i64(), 1, 0), list(1)}, []arg{i64(math.MaxInt64)}},
	{"empty: ReduceMean", "ReduceMean", []graph.Attr{graph.Int("keepdims", 0)}, []arg{shapedAs(f32(), 1, 0), list(1)}, []arg{f32(nan)}},
	{"empty: MatMul", "MatMul", nil, []arg{shapedAs(f32(), 2, 0), shapedAs(f32(), 0, 1)}, []arg{shapedAs(f32(0, 0), 2, 1)}},
	{"empty: Softmax", "Softmax", nil, []arg{shapedAs(f32(), 2, 0)}, []arg{shapedAs(f32(), 2, 0)}},
	{"empty: Concat", "Concat", axisIs(0), []arg{f32(), f32(3), f32()}, []arg{f32(3)}},

	// Updates of one place are taken in the order of the indices: 2²⁴ + 1 is 2²⁴.
	{"scattered twice: add", "ScatterElements", []graph.Attr{graph.String("reduction", "add")}, []arg{f32(0, 0), i64(0, 0, 0, 1, 1, 1), f32(1<<24, 1, -(1 << 24), 1<<24, -(1 << 24), 1)}, []arg{f32(0, 1)}},
	{"scattered twice: none", "ScatterElements", nil, []arg{f32(5, 6), i64(1, -1, 1), f32(7, 8, 9)}, []arg{f32(5, 9)}},
	{"scattered twice: mul", "ScatterElements", []graph.Attr{graph.String("reduction", "mul")}, []arg{f32(1), i64(0, 0, 0), f32(math.Ldexp(1, 100), math.Ldexp(1, 100), 0)}, []arg{f32(nan)}},
	{"scattered twice: max", "ScatterElements", []graph.Attr{graph.String("reduction", "max")}, []arg{f32(minus), i64(0, 0), f32(minus, 0)}, []arg{f32(0)}},
	{"scattered twice: rows", "ScatterND", []graph.Attr{graph.String("reduction", "add")}, []arg{shapedAs(f32(0, 0, 1, 1), 2, 2), shapedAs(i64(1, 1), 2, 1), shapedAs(f32(1<<24, 2, 1, 3), 2, 2)}, []arg{shapedAs(f32(0, 0, 1<<24, 6), 2, 2)}},
}

// show writes a tensor as its type, shape and words.
func show(x *tensor.Tensor) string {
	out := fmt.Sprintf("%v%v", x.Type, x.Shape)
	for i := range x.Len() {
		out += fmt.Sprintf(" %0*x", 2*x.Type.Size(), uint64(x.At(i))<<(64-8*x.Type.Size())>>(64-8*x.Type.Size()))
	}
	return out
}

func shown(list []*tensor.Tensor) (out []string) {
	for _, x := range list {
		out = append(out, show(x))
	}
	return out
}

const directedFile = "../../vectors/directed.json"

// Every directed case gives what is wanted, bit by bit, by the definition and by
// engine/cpu. vectors/directed.json shows inputs and outputs as words.
func TestDirected(t *testing.T) {
	type entry struct {
		Operator                    string
		Attributes, Inputs, Outputs []string
	}
	got := map[string]entry{}
	for _, c := range directed {
		t.Run(c.name, func(t *testing.T) {
			s := sample{name: c.name, op: c.op, attrs: c.attrs, in: c.in, outs: len(c.want)}
			_, in := s.draw()
			_, want := sample{name: c.name, in: c.want}.draw()
			b, _, outputs := s.build(in)
			typed := infer(t, b, outputs...)
			e := entry{Operator: c.op, Inputs: shown(in), Outputs: shown(want)}
			for _, a := range c.attrs {
				e.Attributes = append(e.Attributes, fmt.Sprint(a.Name, "=", map[graph.AttrKind]any{graph.AttrInt: a.Int, graph.AttrString: a.String}[a.Kind]))
			}
			got[c.name] = e
			for _, x := range []engine.Executor{engine.Reference{}, cpu.New(2)} {
				for i, y := range evaluateBy(t, x, typed, s.free(in), nil) {
					if !y.Equal(want[i]) {
						t.Errorf("%s, output %d: %s, want %s", x.Name(), i, show(y), show(want[i]))
					}
				}
			}
		})
	}
	b, err := json.MarshalIndent(got, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(directedFile, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(directedFile); err != nil || string(have) != string(b) {
		t.Errorf("vectors/directed.json is not what the cases are (%v): go test ./core/op -run Directed -update", err)
	}
}
