package train_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// distilled is a linear model that learns five classes from a linear teacher and from labels.
func distilled(against train.LossOptions) objective {
	o := objectives()["cross-entropy, distilled"]
	o.against = against
	return o
}

func withTeacher(weight, temperature float32) train.LossOptions {
	return train.LossOptions{Teacher: "taught", Weight: weight, Temperature: temperature}
}

func lossAt(t *testing.T, tr *train.Training, data *tensor.Tensor) float64 {
	t.Helper()
	return float64(tensor.Of[float32](play(t, tr.Program, data, tr.Start, 0, 1, 2, 3).Find("loss"))[0])
}

// A teacher that weighs nothing is not there: the step is that of the loss without one, bit for bit. Scores are the
// student's whatever it weighs.
func TestWithoutWeightThereIsNoTeacher(t *testing.T) {
	alone, data := objectives()["cross-entropy"].begin(t)
	scores, err := alone.Evaluate(data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	for _, weight := range []float32{0, 0.5} {
		tr, _ := distilled(withTeacher(weight, 3)).begin(t)
		if same := tr.Program.Commit().Root() == alone.Program.Commit().Root(); same != (weight == 0) {
			t.Errorf("weight %v: the step is that of no teacher: %v", weight, same)
		}
		e, err := tr.Evaluate(data.Shape)
		if err != nil {
			t.Fatal(err)
		}
		if e.Batch.Commit().Root() != scores.Batch.Commit().Root() || !slices.Equal(e.Metrics, scores.Metrics) {
			t.Errorf("weight %v: a teacher takes part in scores", weight)
		}
	}
}

// Of logits z = x·W + b of n records with labels y and a teacher's logits t, the gradient is that of
// Hinton et al., for each record:
//
//	∂/∂z = ((1 − α)·(softmax z − y) + α·T·(softmax z/T − softmax t/T)) / n
func TestGradientsOfDistillation(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		alpha, temperature := rapid.Float32Range(0.01, 1).Draw(r, "weight"), rapid.Float32Range(0.5, 20).Draw(r, "temperature")
		o := distilled(withTeacher(alpha, temperature))
		tr, data := o.begin(t)
		next := play(t, tr.Program, data, tr.Start, 0, 1, 2, 3)
		x := tensor.Of[float32](features)
		logits := func(prefix string) (out [lossBatch][5]float64) {
			w, b := tensor.Of[float32](o.model.Const(prefix+"x.w")), tensor.Of[float32](o.model.Const(prefix+"x.b"))
			for i := range out {
				for k := range out[i] {
					out[i][k] = float64(b[k])
					for j := range 6 {
						out[i][k] += float64(x[i*6+j]) * float64(w[j*5+k])
					}
				}
			}
			return out
		}
		z, u := logits(""), logits("teacher.")
		var want [5]float64 // of the biases
		for i := range lossBatch {
			p, soft, q := softmax(z[i], 1), softmax(z[i], float64(temperature)), softmax(u[i], float64(temperature))
			p[classOf(i, 0)]--
			for k := range want {
				want[k] += ((1-float64(alpha))*p[k] + float64(alpha)*float64(temperature)*(soft[k]-q[k])) / lossBatch
			}
		}
		before, after := tensor.Of[float32](tr.Start.Find("p/x.b")), tensor.Of[float32](next.Find("p/x.b"))
		for k := range want {
			if got := float64(before[k]-after[k]) / lossRate; math.Abs(got-want[k]) > 1e-5 {
				r.Errorf("gradient %v of class %d, want %v", got, k, want[k])
			}
		}
	})
}

func softmax(z [5]float64, temperature float64) (out [5]float64) {
	var sum float64
	for k := range z {
		out[k] = math.Exp(z[k] / temperature)
		sum += out[k]
	}
	for k := range out {
		out[k] /= sum
	}
	return out
}

// Whoever predicts what its teacher does has nothing to learn from it.
func TestATeacherWithTheSameWeightsTeachesNothing(t *testing.T) {
	plain, data := objectives()["cross-entropy"].begin(t)
	o := distilled(withTeacher(0.25, 2))
	o.model = taught(objectives()["cross-entropy"].model, objectives()["cross-entropy"].model)
	tr, _ := o.begin(t)
	if got, want := lossAt(t, tr, data), 0.75*lossAt(t, plain, data); math.Abs(got-want) > 1e-6 {
		t.Errorf("loss %v, want %v", got, want)
	}
	o.against.Weight = 1
	tr, _ = o.begin(t)
	if got := lossAt(t, tr, data); math.Abs(got) > 1e-6 {
		t.Errorf("loss %v, want 0", got)
	}
}

// A teacher is applied: nothing is dropped, and its running statistics are constants. A step holds no slot of it, and what
// is exported nothing of it.
func TestATeacherIsAppliedAndNotTrained(t *testing.T) {
	y := whole(tensor.Uint8, func(r, c int) int { return (r + c) % 3 })
	o := objective{taught(linear(part{"x", 6, 3, 5}), normed(0.5)), map[string]*tensor.Tensor{"x": features, "y": y}, "cross-entropy", withTeacher(1, 2)}
	tr, data := o.begin(t)
	plain := o
	b := graph.NewBuilder("plain") // what normed is when it is applied
	x := b.Input("x", tensor.Float32, tensor.Shape{lossBatch, 6})
	b.Output(b.Op("MatMul", b.Op("Mul", x, b.Scalar(float32(1/math.Sqrt(1+1e-5)))), b.Init("w", spread(5, 6, 3))), tensor.Float32, nil)
	plain.model = taught(linear(part{"x", 6, 3, 5}), b.Graph())
	other, _ := plain.begin(t)
	s := tr.Start
	for step := range int64(3) {
		s = play(t, tr.Program, data, s, step, step+1, step+2, step+3)
	}
	if got, want := lossAt(t, tr, data), lossAt(t, other, data); math.Abs(got/want-1) > 1e-5 {
		t.Errorf("loss %v, want %v", got, want)
	}
	for _, slot := range s.Slots {
		if strings.Contains(slot.Name, "teacher") || strings.HasPrefix(slot.Name, "r/") {
			t.Errorf("the state has a slot %s of the teacher", slot.Name)
		}
	}
	g, err := train.Export(s, o.model, o.recipe(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Outputs) != 1 || len(g.Consts) != 2 || len(g.Nodes) != 2 || !g.Const("x.w").Equal(s.Find("p/x.w")) {
		t.Errorf("exported with outputs %v, %d initializers, %d nodes", g.Outputs, len(g.Consts), len(g.Nodes))
	}
}

// Adapters and frozen patterns are about the student alone.
func TestPatternsDoNotReachTheTeacher(t *testing.T) {
	o := distilled(withTeacher(0.5, 2))
	tr, _ := o.begin(t)
	for _, c := range []struct {
		change func(*train.Recipe)
		slots  int
		want   string
	}{
		{func(r *train.Recipe) { r.Adapters = train.Adapters{Rank: 1, Alpha: 1, Of: []string{"*w"}} }, 4, ""},
		{func(r *train.Recipe) { r.Frozen = []string{"*b"} }, 3, ""},
		{func(r *train.Recipe) { r.Frozen = []string{"teacher.*"} }, 0, "chooses nothing"},
	} {
		r := o.recipe(fieldsOf(o.values))
		c.change(&r)
		got, err := train.New(o.model, r, tensor.Shape{lossRecords, r.Fields.Words()})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		} else if err == nil && len(got.Start.Slots) != c.slots {
			t.Errorf("%d slots, want %d", len(got.Start.Slots), c.slots)
		}
	}
	if len(tr.Start.Slots) != 4 {
		t.Errorf("%d slots, want 4", len(tr.Start.Slots))
	}
}

// What a teacher excludes by an infinite logit costs nothing, and one that does not know makes no loss.
func TestTeachersWithoutNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		logit  float32
		finite bool
	}{"excluded": {float32(math.Inf(-1)), true}, "unknown": {float32(math.NaN()), false}} {
		o := distilled(withTeacher(0.5, 2))
		teacher := linear(part{"x", 6, 5, 11})
		tensor.Of[float32](teacher.Const("x.b"))[3] = c.logit
		o.model = taught(objectives()["cross-entropy"].model, teacher)
		tr, data := o.begin(t)
		s := play(t, tr.Program, data, tr.Start, 0, 1, 2, 3)
		loss, w := float64(tensor.Of[float32](s.Find("loss"))[0]), float64(tensor.Of[float32](s.Find("p/x.w"))[0])
		if finite := !math.IsNaN(loss+w) && !math.IsInf(loss+w, 0); finite != c.finite {
			t.Errorf("%s: loss %v, weight %v", name, loss, w)
		}
	}
}

// No bit depends on what is computed again to save memory, and every profile knows a teacher.
func TestDistillationByAllProfiles(t *testing.T) {
	for _, profile := range []lower.Profile{lower.FP32, lower.Mixed, lower.Int8} {
		var roots []canon.Hash
		for _, parts := range []int{0, 4} {
			g := taught(deepMLP(6, 8, batch, context), deepMLP(2, 12, batch, context))
			r := recipe()
			r.Profile, r.Recompute, r.Teacher, r.Weight = profile, parts, "taught", 0.5
			tr := begin(t, g, r)
			root, err := run(t, tr.Program, order().Rows(0, 0), tr.Start).Root()
			if err != nil {
				t.Fatal(err)
			}
			roots = append(roots, root)
		}
		if roots[0] != roots[1] {
			t.Errorf("%v: recomputation changes the state", profile)
		}
	}
}

// Training goes on with its teacher.
func TestDistillationGoesOn(t *testing.T) {
	g := taught(deepMLP(1, 8, batch, context), deepMLP(2, 12, batch, context))
	learn := func(r *train.Recipe) { r.Teacher, r.Weight = "taught", 0.5 }
	e := earlier(t, g, changed(learn))
	_, tr := proceed(t, e, g, changed(learn, slower))
	if tr.Start != e.Last {
		t.Error("the state does not go on")
	}
	_, tr = proceed(t, e, g, changed(learn, func(r *train.Recipe) { r.Weight = 0 }))
	if tr.Start != e.Last {
		t.Error("the state does not go on without its teacher")
	}
	if _, err := e.Model(g, changed(), byDefinition); err == nil || !strings.Contains(err.Error(), "a weight of 0 leaves it out") {
		t.Error(err)
	}
}

func TestUnfitTeachersAreRefused(t *testing.T) {
	for want, change := range map[string]func(o *objective){
		"a teacher that weighs 2":     func(o *objective) { o.against.Weight = 2 },
		"a teacher that weighs NaN":   func(o *objective) { o.against.Weight = float32(math.NaN()) },
		"between 0.1 and 20: beyond":  func(o *objective) { o.against.Temperature = 20.5 },
		"temperature of 0.05 beside":  func(o *objective) { o.against.Temperature = 0.05 },
		"and there is none":           func(o *objective) { o.against.Teacher = "" },
		"tells classes apart, which":  func(o *objective) { o.loss = "squared-error" },
		"should be the teacher's":     func(o *objective) { o.against.Teacher = "tutor" },
		"and another the model's own": func(o *objective) { o.model, o.against.Teacher = linear(part{"x", 6, 5, 5}), "add" },
		"both tell the same classes":  func(o *objective) { o.model = taught(linear(part{"x", 6, 5, 5}), linear(part{"x", 6, 7, 11})) },
		"teacher: model with batches": func(o *objective) {
			b := graph.NewBuilder("fixed") // made for batches of 2
			x := b.Input("x", tensor.Float32, tensor.Shape{2, 6})
			b.Output(b.Op("Reshape", b.Op("MatMul", x, b.Init("w", spread(5, 6, 5))), b.Ints(2, 5)), tensor.Float32, nil)
			o.model = taught(linear(part{"x", 6, 5, 5}), b.Graph())
		},
	} {
		o := distilled(withTeacher(0.5, 2))
		change(&o)
		r := o.recipe(fieldsOf(o.values))
		if _, err := train.New(o.model, r, tensor.Shape{lossRecords, r.Fields.Words()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// Recipes without a teacher keep their bytes, and each has one encoding.
func TestEncodingsOfTeachers(t *testing.T) {
	encoded := func(r train.Recipe) []byte {
		b, err := canon.Encoded(&r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	o := distilled(train.LossOptions{})
	plain, r := o.recipe(nil), distilled(withTeacher(0.5, 0)).recipe(nil)
	b, with := encoded(plain), encoded(r)
	if !bytes.HasPrefix(with, b) || len(with) == len(b) {
		t.Fatalf("a teacher changes what stands before it:\n%x\n%x", b, with)
	}
	r.Augment = []train.Augment{{Kind: "noise", Fields: []string{"x"}, Amount: 1}}
	plain.Augment = r.Augment
	if !bytes.HasPrefix(encoded(r), encoded(plain)) {
		t.Error("a teacher changes augmentations")
	}
	for _, r := range []train.Recipe{plain, r} {
		var back train.Recipe
		if err := canon.Unmarshal(encoded(r), &back); err != nil || back.Teacher != r.Teacher || back.Weight != r.Weight || len(back.Augment) != 1 {
			t.Errorf("read as %+v (%v)", back, err)
		}
	}
	for name, b := range map[string][]byte{
		"neither augmentations nor a teacher": append(slices.Clone(b), 0),
		"a teacher without a name":            append(slices.Clone(b), 0, 0, 0),
		"half a teacher":                      with[:len(with)-3],
	} {
		var back train.Recipe
		if err := canon.Unmarshal(b, &back); err == nil {
			t.Errorf("%s: read as %+v", name, back)
		}
	}
}
