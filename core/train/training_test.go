package train_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// close fails unless a slot holds the given numbers.
func closeTo(t *testing.T, s *graph.State, slot string, want []float64) {
	t.Helper()
	x := s.Find(slot)
	if x == nil {
		t.Fatalf("no slot %q", slot)
	}
	for i, v := range tensor.Of[float32](x) {
		if math.Abs(float64(v)-want[i]) > 2e-5*(1+math.Abs(want[i])) {
			t.Fatalf("%s[%d] = %v, want %v", slot, i, v, want[i])
		}
	}
}

func TestStepsEqualTheFormulas(t *testing.T) {
	sgd := func(change func(*train.Recipe)) func(*train.Recipe) {
		return func(r *train.Recipe) { r.Optimizer = "sgd"; change(r) }
	}
	for name, change := range map[string]func(*train.Recipe){
		"adamw":                  func(*train.Recipe) {},
		"adamw, no warm-up":      func(r *train.Recipe) { r.Warmup = 0 },
		"adamw, no decay":        func(r *train.Recipe) { r.WeightDecay = 0 },
		"adam":                   func(r *train.Recipe) { r.Optimizer = "adam" },
		"adagrad":                func(r *train.Recipe) { r.Optimizer = "adagrad" },
		"sgd":                    sgd(func(*train.Recipe) {}),
		"sgd, momentum":          sgd(func(r *train.Recipe) { r.Momentum = 0.75 }),
		"sgd, nesterov":          sgd(func(r *train.Recipe) { r.Momentum, r.Nesterov = 0.75, true }),
		"a constant rate":        func(r *train.Recipe) { r.Schedule = "constant" },
		"a rate that falls":      func(r *train.Recipe) { r.Schedule, r.Decay = "linear", 5 },
		"linear, not to nothing": func(r *train.Recipe) { r.Schedule, r.Decay, r.Final = "linear", 5, 0.25 },
		"cosine":                 sgd(func(r *train.Recipe) { r.Schedule, r.Decay, r.Final = "cosine", 8, 0.1 }),
		"cosine, no warm-up":     sgd(func(r *train.Recipe) { r.Schedule, r.Decay, r.Warmup = "cosine", 8, 0 }),
		"clipped":                sgd(func(r *train.Recipe) { r.ClipNorm = 0.25 }),
		"clipped, but short":     func(r *train.Recipe) { r.ClipNorm = 100 },
		"accumulated":            sgd(func(r *train.Recipe) { r.Accumulate, r.Momentum = 3, 0.5 }),
		"accumulated, clipped":   func(r *train.Recipe) { r.Accumulate, r.ClipNorm = 2, 0.25 },
		"a frozen embedding":     func(r *train.Recipe) { r.Frozen = []string{"em*"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := recipe()
			change(&r)
			x, tr := newReference(r), begin(t, bigram(), r)
			x.embed = len(r.Frozen) == 0
			s := tr.Start
			for step := range 10 {
				rows := order().Rows(0, step)
				x.step(rows)
				s = run(t, tr.Program, rows, s)
				closeTo(t, s, "loss", []float64{x.loss})
				if got := tensor.Of[int64](s.Find("step"))[0]; got != int64(step+1) {
					t.Fatalf("step is %d", got)
				}
			}
			for p := range x.p {
				if p == "embedding" && !x.embed {
					if s.Find("p/"+p) != nil {
						t.Fatal("a frozen parameter has a slot")
					}
					continue
				}
				closeTo(t, s, "p/"+p, x.p[p])
				for kind, moment := range map[string][]float64{"m": x.m[p], "v": x.v[p], "g": x.sum[p]} {
					if s.Find(kind+"/"+p) != nil {
						closeTo(t, s, kind+"/"+p, moment)
					}
				}
			}
			if strings.HasPrefix(r.Optimizer, "adam") {
				closeTo(t, s, "power/beta1", []float64{math.Pow(float64(r.Beta1), x.t)})
			}
		})
	}
}

// Adapters alone are trained; an adapted model begins as it was, and what is
// exported computes what was trained.
func TestAdapters(t *testing.T) {
	r := recipe()
	r.Adapters = train.Adapters{Rank: 2, Alpha: 4, Of: []string{"head", "emb*"}}
	plain, tr := begin(t, bigram(), recipe()), begin(t, bigram(), r)
	rows := order().Rows(0, 0)
	first, adapted := run(t, plain.Program, rows, plain.Start), run(t, tr.Program, rows, tr.Start)
	closeTo(t, adapted, "loss", []float64{float64(tensor.Of[float32](first.Find("loss"))[0])})
	s := tr.Start
	for step := range 60 {
		s = run(t, tr.Program, order().Rows(0, step), s)
	}
	for _, slot := range s.Slots {
		if name, ok := strings.CutPrefix(slot.Name, "p/"); ok && !strings.HasPrefix(name, "head.lora_") && !strings.HasPrefix(name, "embedding.lora_") {
			t.Errorf("%s is trained", name)
		}
	}
	if a, b := tensor.Of[float32](first.Find("loss"))[0], tensor.Of[float32](s.Find("loss"))[0]; !(b < a/2) {
		t.Errorf("the loss went from %v to %v", a, b)
	}
	g, err := train.Export(s, bigram(), r)
	if err != nil {
		t.Fatal(err)
	}
	frozen := recipe()
	frozen.Frozen = []string{"bias", "head", "embedding"}
	again := begin(t, g, frozen)
	eval := func(tr *train.Training, s *graph.State) *graph.State {
		e, err := tr.Evaluate(tensor.Shape{records, context + 1})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, e.Batch, rows, s)
	}
	if x, y := eval(tr, s).Find("losses"), eval(again, again.Start).Find("losses"); !x.Equal(y) {
		t.Errorf("trained with losses %v, exported with %v", tensor.Of[float64](x), tensor.Of[float64](y))
	}
	if _, err := op.Infer(g, lower.FP32); err != nil {
		t.Error(err)
	}
}

func TestAdaptersRefuse(t *testing.T) {
	for want, a := range map[string]train.Adapters{
		"need a rank":             {Rank: 2, Alpha: 1},
		"need a rank and the":     {Alpha: 1, Of: []string{"head"}},
		"the weight 0 of":         {Rank: 2, Of: []string{"head"}},
		"are not between 1 and":   {Rank: -1, Alpha: 1, Of: []string{"head"}},
		"are for matrices":        {Rank: 1, Alpha: 1, Of: []string{"bias"}},
		"as many rows and column": {Rank: 4, Alpha: 1, Of: []string{"head"}},
		"chooses nothing":         {Rank: 2, Alpha: 1, Of: []string{"tail"}},
		"syntax error":            {Rank: 2, Alpha: 1, Of: []string{"["}},
	} {
		r := recipe()
		r.Adapters = a
		if _, err := train.New(bigram(), r, tensor.Shape{records, context + 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

func TestLossFalls(t *testing.T) {
	r := recipe()
	r.WeightDecay = 0
	tr := begin(t, bigram(), r)
	s := tr.Start
	var first, last float32
	for step := range 150 {
		s = run(t, tr.Program, order().Rows(0, step), s)
		if last = tensor.Of[float32](s.Find("loss"))[0]; step == 0 {
			first = last
		}
	}
	if first < 1 || last > 0.1 {
		t.Fatalf("loss went from %v to %v", first, last)
	}
}

// Evaluation gives the loss that a step on the same batch reports, and takes a forward pass.
func TestEvaluationIsTheLossOfAStep(t *testing.T) {
	tr := begin(t, bigram(), recipe())
	eval, err := tr.Evaluate(tensor.Shape{records, context + 1})
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, tr.Program, []int64{3, 1}, tr.Start)
	rows := []int64{4, 0}
	next, seen := run(t, tr.Program, rows, s), run(t, eval.Batch, rows, s)
	closeTo(t, next, "loss", []float64{tensor.Of[float64](seen.Find("losses"))[0] / tensor.Of[float64](seen.Find("counts"))[0]})
	if all, some := tr.Program.Cost().FLOPs, eval.Batch.Cost().FLOPs; some >= all/2 {
		t.Errorf("evaluation takes %d FLOP of %d", some, all)
	}
	if _, err := tr.Evaluate(tensor.Shape{records, context}); err == nil {
		t.Error("records with a missing column were taken")
	}
}

// A step graph is a graph like any other: its inputs are the slots and the
// batch, and typing it again gives the same program.
func TestStepGraphStandsAlone(t *testing.T) {
	tr := begin(t, bigram(), recipe())
	var names []string
	for i, slot := range tr.Start.Slots {
		names = append(names, slot.Name)
		in, out := tr.Graph.Inputs[i], tr.Graph.Outputs[i]
		if in.Name != slot.Name || in.Type != slot.Type || !in.Shape.Equal(slot.Shape) || out.Name != "next/"+slot.Name {
			t.Errorf("slot %q has input %q and output %q", slot.Name, in.Name, out.Name)
		}
	}
	want := []string{
		"loss", "m/bias", "m/embedding", "m/head", "p/bias", "p/embedding", "p/head",
		"power/beta1", "power/beta2", "step", "v/bias", "v/embedding", "v/head",
	}
	if !slices.Equal(names, want) {
		t.Fatalf("slots %v, want %v", names, want)
	}
	last := tr.Graph.Inputs[len(names)]
	if last.Name != "batch" || last.Type != tensor.Int32 || !last.Shape.Equal(tensor.Shape{batch, context + 1}) {
		t.Fatalf("the last input is %v", last)
	}
	known := op.Names()
	for _, n := range tr.Graph.Nodes {
		if !slices.Contains(known, n.Op) {
			t.Errorf("node %q is a %s", n.Name, n.Op)
		}
	}
	p, err := train.Step(tr.Graph, lower.FP32, tr.Program.Data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	if p.Commit().Root() != tr.Program.Commit().Root() {
		t.Fatal("typing the step graph again gives another program")
	}
	for i, n := range p.Nodes {
		if i > 0 && tr.Graph.Nodes[n.Origin.Node].Op != n.Origin.Op {
			t.Fatalf("node %d comes from %v, which is a %s", i, n.Origin, tr.Graph.Nodes[n.Origin.Node].Op)
		}
	}
}

func TestStepRefusesOtherGraphs(t *testing.T) {
	shape := tensor.Shape{records, context + 1}
	tr := begin(t, bigram(), recipe())
	for want, bend := range map[string]func(*graph.Graph){
		"last input of a step graph": func(g *graph.Graph) { slices.Reverse(g.Inputs) },
		"in ascending order":         func(g *graph.Graph) { g.Inputs[0], g.Inputs[1] = g.Inputs[1], g.Inputs[0] },
		"are bound":                  func(g *graph.Graph) { g.Outputs = g.Outputs[1:] },
		`slot "loss" gets`:           func(g *graph.Graph) { slices.Reverse(g.Outputs) },
		"step graph: node":           func(g *graph.Graph) { g.Nodes[0].Op = "Convolve" },
	} {
		g := *tr.Graph
		g.Inputs, g.Outputs, g.Nodes = slices.Clone(g.Inputs), slices.Clone(g.Outputs), slices.Clone(g.Nodes)
		bend(&g)
		if _, err := train.Step(&g, lower.FP32, shape); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	if _, err := train.Step(bigram(), lower.FP32, shape); err == nil {
		t.Error("a forward graph was taken for a step graph")
	}
}

func TestExportPutsWeightsBack(t *testing.T) {
	tr := begin(t, bigram(), recipe())
	s := run(t, tr.Program, []int64{0, 1}, tr.Start)
	g, err := train.Export(s, bigram(), recipe())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Consts {
		if !c.Tensor.Equal(s.Find("p/"+c.Name)) || c.Tensor.Equal(bigram().Const(c.Name)) {
			t.Errorf("%s is not what was trained", c.Name)
		}
	}
	// Training goes on from there as a fresh start.
	if again := begin(t, g, recipe()); !again.Start.Find("p/head").Equal(s.Find("p/head")) {
		t.Error("exported weights are not where training starts")
	}
	other := bigram()
	other.Consts[0].Tensor = pattern(1, 2, 2)
	if _, err := train.Export(s, other, recipe()); err == nil {
		t.Error("weights of another shape were taken")
	}
}

// The batch is the recipe's, whatever the graph was exported with.
func TestRecipeSetsTheBatch(t *testing.T) {
	r := recipe()
	r.Batch = 3
	tr := begin(t, bigram(), r)
	if tr.Program.Rows != 3 {
		t.Fatalf("a step reads %d records", tr.Program.Rows)
	}
	x := newReference(r)
	rows := []int64{5, 0, 2}
	x.step(rows)
	closeTo(t, run(t, tr.Program, rows, tr.Start), "loss", []float64{x.loss})
}

// An initializer that cannot influence the loss by a gradient is a constant.
func TestWhatNoGradientReachesStaysConstant(t *testing.T) {
	b := graph.NewBuilder("constants")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{batch, context})
	x := b.Op("Gather", b.Init("embedding", pattern(1, vocab, vocab)), tokens)
	x = b.Op("Pow", x, b.Init("exponent", tensor.Scalar[float32](2)))
	x = b.Op("Clip", x, b.Init("least", tensor.Scalar[float32](-1)), b.Init("greatest", tensor.Scalar[float32](1)))
	x = b.Op("Dropout", x, b.Init("ratio", tensor.Scalar[float32](0.5)))
	b.Output(x, tensor.Float32, nil)
	tr := begin(t, b.Graph(), recipe())
	for _, slot := range tr.Start.Slots {
		if slices.Contains([]string{"p/exponent", "p/least", "p/greatest", "p/ratio"}, slot.Name) {
			t.Errorf("slot %q", slot.Name)
		}
	}
	if tr.Start.Find("p/embedding") == nil {
		t.Error("the embedding is not trained")
	}
}

func TestNewRefuses(t *testing.T) {
	shape := tensor.Shape{records, context + 1}
	for want, change := range map[string]func(g *graph.Graph, r *train.Recipe){
		"or next-token-cross-entropy or":      func(_ *graph.Graph, r *train.Recipe) { r.Loss = "hinge" },
		"use adagrad or adam or adamw or sgd": func(_ *graph.Graph, r *train.Recipe) { r.Optimizer = "lion" },
		"learning rate NaN":                   func(_ *graph.Graph, r *train.Recipe) { r.LearningRate = float32(math.NaN()) },
		"learning rate 0":                     func(_ *graph.Graph, r *train.Recipe) { r.LearningRate = 0 },
		"warm-up of -1":                       func(_ *graph.Graph, r *train.Recipe) { r.Warmup = -1 },
		"decay rates 1":                       func(_ *graph.Graph, r *train.Recipe) { r.Beta1 = 1 },
		"greatest norm of -1":                 func(_ *graph.Graph, r *train.Recipe) { r.ClipNorm = -1 },
		"schedule \"zigzag\"":                 func(_ *graph.Graph, r *train.Recipe) { r.Schedule = "zigzag" },
		"falls over 0 steps":                  func(_ *graph.Graph, r *train.Recipe) { r.Schedule = "cosine" },
		"falls to 2 of itself":                func(_ *graph.Graph, r *train.Recipe) { r.Final = 2 },
		"not for adamw":                       func(_ *graph.Graph, r *train.Recipe) { r.Momentum = 0.9 },
		"looks along the momentum":            func(_ *graph.Graph, r *train.Recipe) { r.Nesterov = true },
		"gradients of -1 steps":               func(_ *graph.Graph, r *train.Recipe) { r.Accumulate = -1 },
		"pass of -1 parts":                    func(_ *graph.Graph, r *train.Recipe) { r.Recompute = -1 },
		"epsilon 0":                           func(_ *graph.Graph, r *train.Recipe) { r.Epsilon = 0 },
		"weight decay -1":                     func(_ *graph.Graph, r *train.Recipe) { r.WeightDecay = -1 },
		"batch of 0":                          func(_ *graph.Graph, r *train.Recipe) { r.Batch = 0 },
		"syntax error in pattern":             func(_ *graph.Graph, r *train.Recipe) { r.Frozen = []string{"["} },
		"chooses nothing":                     func(_ *graph.Graph, r *train.Recipe) { r.Frozen = []string{"tabel"} },
		"not frozen has an influence":         func(_ *graph.Graph, r *train.Recipe) { r.Frozen = []string{"*"} },
		`no field for input "more"`: func(g *graph.Graph, _ *train.Recipe) {
			g.Inputs = append(g.Inputs, g.Inputs[0])
			g.Inputs[1].Name = "more"
		},
		"should be integers [batch 4]": func(g *graph.Graph, _ *train.Recipe) { g.Inputs[0].Shape = tensor.Shape{batch, context + 1} },
		"should be float32 [2 4":       func(g *graph.Graph, _ *train.Recipe) { g.Outputs[0].Name = g.Nodes[0].Inputs[0] },
		"model with batches of 2":      func(g *graph.Graph, _ *train.Recipe) { g.Nodes[1].Op = "Convolve" },
		"is not defined":               func(g *graph.Graph, _ *train.Recipe) { g.Nodes[1].Inputs[0] = "nothing" },
	} {
		g, r := bigram(), recipe()
		change(g, &r)
		if _, err := train.New(g, r, shape); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	for _, bad := range []tensor.Shape{nil, {records}, {0, context + 1}, {records, 1}, {records, -1}} {
		if _, err := train.New(bigram(), recipe(), bad); err == nil {
			t.Errorf("records of shape %v were taken", bad)
		}
	}
}

// A profile changes the program and, slightly, the course of training.
// A pattern of 240 wildcards and a name of 510 bytes took 100,000 steps, 16 such patterns and
// 40,000 names seven minutes, before any other limit of an order was looked at.
func TestPatternsTakeBoundedWork(t *testing.T) {
	hard := func(n int) string { return "*" + strings.Repeat("?", n-2) + "b" }
	many := slices.Repeat([]string{hard(128)}, 1<<10)
	for want, patterns := range map[string][]string{
		"has 129 bytes":               {hard(129)},
		"1025 patterns":               append(many, "b"),
		"use fewer or shorter ones":   many,
		"shorter ones":                append(slices.Clip(many[:1023]), "z*"),
		`"*??b" chooses nothing`:      {"*e*", "*??b"},
		`"*/*" chooses nothing`:       {"*/*"},
		"not frozen has an influence": {"[b-h]*d*", "?ias"},
	} {
		g, shape := bigram(), tensor.Shape{records, context + 1}
		for i := range 5 {
			g.Consts = append(g.Consts, graph.Const{Name: strings.Repeat("z", 510) + string(rune('0'+i)), Tensor: pattern(1, 1)})
		}
		frozen, adapted := recipe(), recipe()
		frozen.Frozen = patterns
		if _, err := train.New(g, frozen, shape); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("frozen: want %q, got: %.200v", want, err)
		}
		if adapted.Adapters = (train.Adapters{Rank: 1, Alpha: 1, Of: patterns}); strings.Contains(want, "influence") {
			want = "are for matrices"
		}
		if _, err := train.New(g, adapted, shape); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("adapted: want %q, got: %.200v", want, err)
		}
	}
}

func TestProfilesTrainAlike(t *testing.T) {
	loss := func(s *graph.State) float64 { return float64(tensor.Of[float32](s.Find("loss"))[0]) }
	final := map[lower.Profile]float64{}
	roots := map[string]lower.Profile{}
	for _, p := range []lower.Profile{lower.FP32, lower.Mixed, lower.Int8} {
		r := recipe()
		r.Profile = p
		tr := begin(t, bigram(), r)
		s := tr.Start
		for step := range 30 {
			s = run(t, tr.Program, order().Rows(0, step), s)
		}
		final[p] = loss(s)
		root := tr.Program.Commit().Root().String()
		if other, ok := roots[root]; ok {
			t.Errorf("profiles %v and %v have one program", p, other)
		}
		roots[root] = p
		again, err := train.Step(tr.Graph, p, tr.Program.Data.Shape)
		if err != nil || again.Commit().Root().String() != root {
			t.Errorf("profile %v: the step graph read back has another program (%v)", p, err)
		}
	}
	if start := loss(run(t, begin(t, bigram(), recipe()).Program, order().Rows(0, 0), begin(t, bigram(), recipe()).Start)); !(final[lower.FP32] < start/1.5) {
		t.Fatalf("the loss went from %v to %v", start, final[lower.FP32])
	}
	for p, within := range map[lower.Profile]float64{lower.Mixed: 0.02, lower.Int8: 0.1} {
		if off := math.Abs(final[p]/final[lower.FP32] - 1); !(off < within) {
			t.Errorf("profile %v ends at loss %v, fp32 at %v", p, final[p], final[lower.FP32])
		}
	}
}
