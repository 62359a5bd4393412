package train_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// earlier trains g for some steps.
func earlier(t *testing.T, g *graph.Graph, r train.Recipe) *train.Earlier {
	t.Helper()
	tr := begin(t, g, r)
	s := tr.Start
	for step := range 5 {
		s = run(t, tr.Program, order().Rows(0, step), s)
	}
	return &train.Earlier{Recipe: r, Records: tensor.Shape{records, context + 1}, Step: tr.Program.Commit().Root(), Last: s}
}

func byDefinition(p *graph.Program, s *graph.State) (*graph.State, error) {
	return p.Run(graph.Inputs{States: []*graph.State{s}}, graph.Reference, nil)
}

// proceed returns the model and the start of training that goes on.
func proceed(t *testing.T, e *train.Earlier, g *graph.Graph, r train.Recipe) (*graph.Graph, *train.Training) {
	t.Helper()
	model, err := e.Model(g, r, byDefinition)
	if err != nil {
		t.Fatal(err)
	}
	tr := begin(t, model, r)
	tr.Start = e.Start(tr.Start, r)
	return model, tr
}

func changed(changes ...func(*train.Recipe)) train.Recipe {
	r := recipe()
	for _, c := range changes {
		c(&r)
	}
	return r
}

func bySGD(r *train.Recipe)      { r.Optimizer, r.Momentum = "sgd", 0.5 }
func byAdaGrad(r *train.Recipe)  { r.Optimizer = "adagrad" }
func headFrozen(r *train.Recipe) { r.Frozen = []string{"head"} }
func biasFrozen(r *train.Recipe) { r.Frozen = []string{"bias"} }
func slower(r *train.Recipe)     { r.LearningRate /= 2 }
func inMixed(r *train.Recipe)    { r.Profile = lower.Mixed }
func adapted(rank int, alpha float32, of ...string) func(*train.Recipe) {
	return func(r *train.Recipe) { r.Adapters = train.Adapters{Rank: rank, Alpha: alpha, Of: of} }
}

// Whatever changes beside, training goes on with the function that was learnt; what the optimizer remembers
// goes on if it means the same, and begins afresh if not.
func TestTrainingGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		first, then []func(*train.Recipe)
		whole       bool // the state goes on as it is
	}{
		"the same":                   {whole: true},
		"another rate":               {then: []func(*train.Recipe){slower}, whole: true},
		"sgd, then adamw":            {first: []func(*train.Recipe){bySGD}},
		"adamw, then sgd":            {then: []func(*train.Recipe){bySGD}},
		"sgd, then adagrad":          {first: []func(*train.Recipe){bySGD}, then: []func(*train.Recipe){byAdaGrad}},
		"then frozen":                {then: []func(*train.Recipe){headFrozen}},
		"no longer frozen":           {first: []func(*train.Recipe){headFrozen}},
		"others frozen":              {first: []func(*train.Recipe){headFrozen}, then: []func(*train.Recipe){biasFrozen}},
		"then adapters":              {then: []func(*train.Recipe){adapted(2, 4, "head")}},
		"the same adapters":          {first: []func(*train.Recipe){adapted(2, 4, "head")}, then: []func(*train.Recipe){adapted(2, 4, "head")}, whole: true},
		"adapters, another way":      {first: []func(*train.Recipe){adapted(2, 4, "head")}, then: []func(*train.Recipe){adapted(2, 4, "head"), bySGD}},
		"adapters, then all":         {first: []func(*train.Recipe){adapted(2, 4, "head", "emb*")}},
		"adapters, of another rank":  {first: []func(*train.Recipe){adapted(2, 4, "head")}, then: []func(*train.Recipe){adapted(1, 4, "head")}},
		"adapters, of another kind":  {first: []func(*train.Recipe){adapted(2, 4, "head")}, then: []func(*train.Recipe){adapted(2, 4, "embedding")}},
		"adapters, of other weight":  {first: []func(*train.Recipe){adapted(2, 4, "head")}, then: []func(*train.Recipe){adapted(2, 8, "head")}},
		"adapters of mixed, merged":  {first: []func(*train.Recipe){adapted(2, 4, "head"), inMixed}, then: []func(*train.Recipe){inMixed}},
		"the same, but accumulating": {then: []func(*train.Recipe){func(r *train.Recipe) { r.Accumulate = 2 }}},
	} {
		t.Run(name, func(t *testing.T) {
			was, r := changed(c.first...), changed(c.then...)
			e := earlier(t, bigram(), was)
			_, tr := proceed(t, e, bigram(), r)
			if whole := tr.Start == e.Last; whole != c.whole {
				t.Errorf("the state goes on as it is: %v", whole)
			}
			fresh := begin(t, bigram(), r)
			for i, s := range tr.Start.Slots {
				if c.whole || strings.HasPrefix(s.Name, "p/") {
					continue
				}
				if !tr.Start.Tensors[i].Equal(fresh.Start.Tensors[i]) {
					t.Errorf("%s does not begin afresh", s.Name)
				}
			}
			if err := tr.Start.Fits(tr.Program.Slots); err != nil {
				t.Error(err)
			}
			rows := order().Rows(0, 9)
			want := run(t, begin(t, bigram(), was).Program, rows, e.Last).Find("loss")
			if got := run(t, tr.Program, rows, tr.Start).Find("loss"); !got.Equal(want) {
				t.Errorf("the first loss is %v, where the earlier training would have had %v", tensor.Of[float32](got), tensor.Of[float32](want))
			}
		})
	}
}

// What was frozen in the middle has the value that it had got before.
func TestTrainingGoesOnTwice(t *testing.T) {
	first := earlier(t, bigram(), recipe())
	middle, _ := proceed(t, first, bigram(), changed(adapted(2, 4, "head")))
	second := earlier(t, middle, changed(adapted(2, 4, "head")))
	_, last := proceed(t, second, middle, changed(bySGD))
	for _, name := range []string{"p/embedding", "p/bias"} {
		if !last.Start.Find(name).Equal(first.Last.Find(name)) {
			t.Errorf("%s is not as the first training left it", name)
		}
	}
	if last.Start.Find("p/head").Equal(first.Last.Find("p/head")) {
		t.Error("what adapters learnt was lost")
	}
	if _, err := second.Model(bigram(), recipe(), byDefinition); err == nil || !strings.Contains(err.Error(), "not that of the earlier order") {
		t.Errorf("with weights that the second training did not have: %v", err)
	}
}

// Statistics are not trained by gradients, and carry over all the same.
func TestStatisticsGoOn(t *testing.T) {
	o := normedObjective(0)
	tr, data := o.begin(t)
	r := o.recipe(record.Fields{{Name: "x", Type: tensor.Float32, Shape: features.Shape[1:]}, {Name: "y", Type: tensor.Float32, Shape: targets.Shape[1:]}})
	last := play(t, tr.Program, data, tr.Start, 0, 1, 2, 3)
	e := &train.Earlier{Recipe: r, Records: data.Shape, Step: tr.Program.Commit().Root(), Last: last}
	bySGD(&r)
	model, err := e.Model(o.model, r, byDefinition)
	if err != nil {
		t.Fatal(err)
	}
	next, err := train.New(model, r, data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	start := e.Start(next.Start, r)
	for _, name := range []string{"r/bn.running_mean", "r/bn.running_var", "p/w"} {
		if !start.Find(name).Equal(last.Find(name)) || start.Find(name).Equal(tr.Start.Find(name)) {
			t.Errorf("%s does not carry over", name)
		}
	}
}

func TestEarlierTrainingIsChecked(t *testing.T) {
	g := bigram()
	g.Consts = slices.Clone(g.Consts)
	at := slices.IndexFunc(g.Consts, func(c graph.Const) bool { return c.Name == "head" })
	g.Consts[at].Tensor = pattern(9, width, vocab)
	for want, c := range map[string]struct {
		of     train.Recipe
		g      *graph.Graph
		change func(*train.Earlier)
	}{
		"not that of the earlier order":            {of: changed(headFrozen), g: g},
		"that of the order 0000":                   {of: recipe(), g: bigram(), change: func(e *train.Earlier) { e.Step = [32]byte{} }},
		"not one of the earlier order":             {of: recipe(), g: bigram(), change: func(e *train.Earlier) { e.Last = &graph.State{} }},
		"cannot be trained as the earlier":         {of: recipe(), g: bigram(), change: func(e *train.Earlier) { e.Recipe.Loss = "pride" }},
		"that of the order":                        {of: recipe(), g: bigram(), change: func(e *train.Earlier) { e.Records = tensor.Shape{records + 1, context + 1} }},
		"records have shape":                       {of: recipe(), g: bigram(), change: func(e *train.Earlier) { e.Records = nil }},
		"not that of the earlier order: its step ": {of: recipe(), g: bigram(), change: func(e *train.Earlier) { e.Recipe.LearningRate = 1 }},
	} {
		e := earlier(t, bigram(), c.of)
		if c.change != nil {
			c.change(e)
		}
		if _, err := e.Model(c.g, recipe(), byDefinition); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	// The values of what was trained do not count: the last state has them.
	e := earlier(t, bigram(), recipe())
	model, err := e.Model(g, recipe(), byDefinition)
	if err != nil || !model.Consts[at].Tensor.Equal(e.Last.Find("p/head")) {
		t.Errorf("%v", err)
	}
	if _, err := train.Adapt(exported(t), changed(adapted(2, 4, "head"))); err == nil || !strings.Contains(err.Error(), "has adapters already") {
		t.Errorf("adapters beside adapters: %v", err)
	}
}

// exported is a model with its adapters.
func exported(t *testing.T) *graph.Graph {
	t.Helper()
	r := changed(adapted(2, 4, "head"))
	g, err := train.Export(begin(t, bigram(), r).Start, bigram(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A delivered model has its adapters as nodes. Those of another training are merged, and these stay what they are.
func TestOnlyAdaptersOfTheRecipeAreMerged(t *testing.T) {
	g := exported(t)
	was := changed(adapted(2, 4, "embedding"))
	e := earlier(t, g, was)
	rows := order().Rows(0, 9)
	want := run(t, begin(t, g, was).Program, rows, e.Last).Find("loss")
	for name, r := range map[string]train.Recipe{"all is trained": recipe(), "other adapters": changed(adapted(1, 4, "embedding"))} {
		model, err := e.Model(g, r, byDefinition)
		if err != nil {
			t.Fatal(name, err)
		}
		tr, err := train.New(model, r, e.Records)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := run(t, tr.Program, rows, e.Start(tr.Start, r)).Find("loss"); !got.Equal(want) {
			t.Errorf("%s: the model does not compute what it computed", name)
		}
	}
}

// Of outputs that were not trained nothing is known.
func TestAnotherOutputDoesNotGoOn(t *testing.T) {
	g := bigram()
	e := earlier(t, g, changed(func(r *train.Recipe) { r.Output = g.Outputs[0].Name }))
	b := graph.Extend(g)
	other := b.Op("Neg", b.Op("MatMul", b.Op("Gather", b.Init("unknown", pattern(4, vocab, width)), g.Inputs[0].Name), b.Init("unproved", pattern(5, width, vocab))))
	out := *b.Graph()
	out.Outputs = append(slices.Clone(out.Outputs), graph.Value{Name: other, Type: tensor.Float32, Shape: tensor.Shape{batch, context, vocab}})
	if _, err := e.Model(&out, changed(func(r *train.Recipe) { r.Output = other }), byDefinition); err == nil || !strings.Contains(err.Error(), "trained the model's output") {
		t.Errorf("%v", err)
	}
}
