package op_test

import (
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/conform"
)

func TestEveryOperatorHasASample(t *testing.T) {
	seen := map[string]bool{}
	names := map[string]bool{}
	for _, s := range samples {
		seen[s.op] = true
		if names[s.name] {
			t.Errorf("two samples are called %q", s.name)
		}
		names[s.name] = true
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, op.Names()) {
		t.Fatalf("samples for %v, operators %v", got, op.Names())
	}
}

// Forward results agree with float64.
func TestSamplesEqualTheirMeaning(t *testing.T) {
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			arrays, tensors := s.draw()
			b, _, outputs := s.build(tensors)
			got := evaluate(t, infer(t, b, outputs...), s.free(tensors), nil)
			for i, want := range s.want(arrays) {
				x := read(got[i])
				if !slices.Equal(x.shape, want.shape) {
					t.Fatalf("output %d has shape %v, want %v", i, x.shape, want.shape)
				}
				for j := range want.v {
					if !near(x.v[j], want.v[j], tolerance(got[i].Type)) {
						t.Fatalf("output %d, element %d: %v, want %v", i, j, x.v[j], want.v[j])
					}
				}
			}
		})
	}
}

// weights of the outputs in the value that is differentiated.
func weight(output, element int) float64 { return float64((7*output+5*element)%11-4) / 4 }

// gradientGraph extends the graph of a sample by the gradients of the weighted
// sum of its float outputs with respect to its free float inputs.
func gradientGraph(t *testing.T, s sample, tensors []*tensor.Tensor) (typed *lower.Typed, of []int) {
	b, inputs, outputs := s.build(tensors)
	return differentiated(t, s, b, inputs, outputs, 1)
}

// differentiated is gradientGraph for a sample of which some parts are computed
// again.
func differentiated(t *testing.T, s sample, b *graph.Builder, inputs, outputs []string, parts int) (typed *lower.Typed, of []int) {
	forward := infer(t, graph.Extend(b.Graph()), outputs...)
	total := ""
	for i, o := range outputs {
		typ, shape := forward.Type(o)
		if typ != tensor.Float32 {
			continue
		}
		w := array{shape, make([]float64, shape.Elements())}
		for j := range w.v {
			w.v[j] = weight(i, j)
		}
		part := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Op("Mul", o, b.Const(w.tensor(typ))))
		if total != "" {
			part = b.Op("Add", total, part)
		}
		total = part
	}
	if total == "" {
		return nil, nil
	}
	var with []string
	for i, a := range s.in {
		if a.t == tensor.Float32 && !a.fixed {
			with, of = append(with, inputs[i]), append(of, i)
		}
	}
	g, calls := infer(t, b, total).Differentiable()
	b = graph.Extend(g)
	grads, err := train.Gradients(b, calls, g.Outputs[0].Name, with, parts)
	if err != nil {
		t.Fatal(err)
	}
	b.Graph().Outputs = nil
	var names []string
	var kept []int
	for i, w := range with {
		if grads[w] != "" {
			names, kept = append(names, grads[w]), append(kept, of[i])
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return infer(t, b, names...), kept
}

// Gradients are the same, bit for bit, if they read what is computed again.
func TestGradientsOfWhatIsComputedAgain(t *testing.T) {
	again := 0
	for _, s := range samples {
		_, tensors := s.draw()
		graphOf := func(parts int) *lower.Typed {
			b, inputs, outputs := s.build(tensors)
			for i := range outputs { // enough behind the operator that it is in an early part
				for range 16 {
					outputs[i] = b.Op("Identity", outputs[i])
				}
			}
			typed, _ := differentiated(t, s, b, inputs, outputs, parts)
			return typed
		}
		once := graphOf(1)
		if once == nil {
			continue
		}
		twice := graphOf(8)
		if function(t, once).Commit().Root() != function(t, twice).Commit().Root() {
			again++
		}
		want := evaluate(t, once, s.free(tensors), nil)
		for i, x := range evaluate(t, twice, s.free(tensors), nil) {
			if !x.Equal(want[i]) {
				t.Errorf("%s: output %d differs", s.name, i)
			}
		}
	}
	if again < 100 {
		t.Errorf("only the gradients of %d samples read what is computed again", again)
	}
	t.Logf("the gradients of %d samples read what is computed again", again)
}

// Gradients agree with central differences of the float64 meaning.
func TestGradientsEqualFiniteDifferences(t *testing.T) {
	const h = 1e-5
	checked := map[string]bool{}
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			arrays, tensors := s.draw()
			typed, of := gradientGraph(t, s, tensors)
			if typed == nil {
				return
			}
			checked[s.op] = true
			value := func() (sum float64) {
				for i, o := range s.want(arrays) {
					for j, v := range o.v {
						sum += weight(i, j) * v
					}
				}
				return sum
			}
			for k, got := range evaluate(t, typed, s.free(tensors), nil) {
				x := arrays[of[k]]
				if !slices.Equal(got.Shape, x.shape) {
					t.Fatalf("the gradient of input %d has shape %v, the input %v", of[k], got.Shape, x.shape)
				}
				for j, v := range x.v {
					x.v[j] = v + h
					up := value()
					x.v[j] = v - h
					down := value()
					x.v[j] = v
					want := (up - down) / (2 * h)
					if g := read(got).v[j]; !near(g, want, 2e-5) {
						t.Fatalf("input %d, element %d: gradient %v, want %v", of[k], j, g, want)
					}
				}
			}
		})
	}
	for _, name := range op.Names() {
		if checked[name] == flat[name] {
			t.Errorf("%s: gradient checked: %v", name, checked[name])
		}
	}
}

// programs calls f with the lowered forward and gradient graphs of each sample,
// in every profile in which they differ, and the tensors that flow through them.
func programs(t *testing.T, f func(t *testing.T, name string, p *graph.Program, outputs []*tensor.Tensor, values []*tensor.Tensor, get func(graph.Ref) *tensor.Tensor)) {
	for _, s := range samples {
		_, tensors := s.draw()
		b, _, outputs := s.build(tensors)
		in := func(name string, typed *lower.Typed, p *graph.Program) {
			t.Run(name, func(t *testing.T) {
				if err := p.Check(); err != nil {
					t.Fatal(err)
				}
				var values []*tensor.Tensor
				out := evaluate(t, typed, s.free(tensors), func(_ int, x *tensor.Tensor) error {
					values = append(values, x)
					return nil
				})
				f(t, name, p, out, values, func(r graph.Ref) *tensor.Tensor {
					switch r.Kind {
					case graph.RefNode:
						return values[r.Index]
					case graph.RefConst:
						return p.Consts[r.Index]
					}
					for i, in := range typed.Inputs {
						if in.Name == p.Slots[r.Index].Name {
							return s.free(tensors)[i]
						}
					}
					return nil
				})
			})
		}
		run := func(name string, typed *lower.Typed) {
			p := function(t, typed)
			in(name, typed, p)
			for _, profile := range []lower.Profile{lower.Mixed, lower.Int8} {
				other, err := op.Infer(typed.Graph, profile)
				if err != nil {
					t.Fatal(err)
				}
				if q := function(t, other); q.Commit().Root() != p.Commit().Root() {
					in(name+", "+profile.String(), other, q)
				}
			}
		}
		run(s.name, infer(t, b, outputs...))
		if typed, _ := gradientGraph(t, s, tensors); typed != nil {
			run(s.name+", gradient", typed)
		}
	}
}

// Any tile, row, element or fold block of any lowered node, recomputed alone as
// a referee does, equals the whole that engine/cpu computed. TALLY_BLOCKS says
// how many are drawn; all programs get as many, and each operator and function
// is counted.
func TestPartsRecomputedAloneEqualTheWhole(t *testing.T) {
	draws := 20000
	if s := os.Getenv("TALLY_BLOCKS"); s != "" {
		var err error
		if draws, err = strconv.Atoi(s); err != nil {
			t.Fatalf("TALLY_BLOCKS: %v", err)
		}
	}
	type execution struct {
		*conform.Execution
		name, op string
	}
	var all []execution
	programs(t, func(t *testing.T, name string, p *graph.Program, _, values []*tensor.Tensor, get func(graph.Ref) *tensor.Tensor) {
		s := &graph.State{Slots: p.Slots}
		for i, slot := range p.Slots {
			x := get(graph.Ref{Kind: graph.RefSlot, Index: i})
			if x == nil {
				x = tensor.Must(tensor.New(slot.Type, slot.Shape))
			}
			s.Tensors = append(s.Tensors, x)
		}
		x, err := conform.Execute(cpu.New(2), p, graph.Inputs{States: []*graph.State{s}})
		if err != nil {
			t.Fatal(err)
		}
		if len(values) == 0 {
			return // a constant
		}
		end := strings.IndexFunc(name+",", func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		all = append(all, execution{x, name, name[:end]}) // the sample's operator, gradient or not
	})
	counts := map[string]int{}
	r := rand.New(rand.NewPCG(5, 5))
	for i := range draws {
		x := all[i%len(all)]
		fn, kind, err := x.Part(r)
		if err != nil {
			t.Fatalf("%s, draw %d: %v", x.name, i, err)
		}
		if kind != "" {
			counts["kind "+kind]++
			counts["function "+fn.String()]++
			counts["operator "+x.op]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[name], name)
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

const golden = "../../vectors/operators.json"

// The bits of every result and of every lowered program are fixed.
func TestGolden(t *testing.T) {
	type entry struct {
		Program string
		Outputs []string
	}
	got := map[string]entry{}
	programs(t, func(t *testing.T, name string, p *graph.Program, outputs, _ []*tensor.Tensor, _ func(graph.Ref) *tensor.Tensor) {
		e := entry{Program: p.Commit().Root().String()}
		for _, o := range outputs {
			e.Outputs = append(e.Outputs, o.Root().String())
		}
		got[name] = e
	})
	if *update {
		b, err := json.MarshalIndent(got, "", "\t")
		if err == nil {
			err = os.WriteFile(golden, append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]entry{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, the file has %d", len(got), len(want))
	}
	for name, e := range got {
		if w := want[name]; e.Program != w.Program || !slices.Equal(e.Outputs, w.Outputs) {
			t.Errorf("%s: %+v, want %+v", name, e, w)
		}
	}
}
