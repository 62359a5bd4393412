package train_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// The data of testdata/losses.py.
const lossRecords, lossBatch, lossRate = 24, 4, 0.25

func spread(start int, s ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Float32, s))
	for i := range t.Len() {
		t.Set(i, tensor.F32(float32((i*37+start*101)%64-32)/32))
	}
	return t
}

// whole makes elements of any type of whole numbers.
func whole(typ tensor.DType, of func(record, column int) int, columns ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(typ, append(tensor.Shape{lossRecords}, columns...)))
	n := tensor.Shape(columns).Elements()
	for i := range t.Len() {
		v := of(i/n, i%n)
		switch {
		case typ == tensor.Float64:
			t.Set(i, tensor.F64(float64(v)))
		case typ.Float():
			t.Set(i, tensor.FloatWord(typ, float64(v)))
		default:
			t.Set(i, tensor.Word(int64(v)))
		}
	}
	return t
}

var (
	features = spread(3, lossRecords, 6)
	targets  = spread(9, lossRecords, 3)
)

func classOf(r, _ int) int { return (7*r + r*r) % 5 }

func countedOf(r, _ int) int {
	if r%3 == 1 {
		return 0
	}
	return 1
}

func truthOf(r, c int) int {
	if (r+c)%3 == 0 {
		return 1
	}
	return 0
}

func tokenOf(r, c int) int { return (r + c*(r%3+1) + c*c*r%2) % 7 }

func otherOf(r, c int) int { return (2*r + c*(r%4+1)) % 7 }

func spokenOf(r, c int) int {
	if c >= 2+r%3 {
		return 1
	}
	return 0
}

func hiddenOf(r, c int) int {
	if (r+c)%4 == 0 {
		return tokenOf(r, c)
	}
	return train.Ignored
}

// linear has an input for each of some pairs of a name and outputs, and a linear map of each.
func linear(parts ...part) *graph.Graph {
	b := graph.NewBuilder("linear")
	for _, p := range parts {
		w, c := b.Init(p.name+".w", spread(p.seed, p.in, p.out)), b.Init(p.name+".b", spread(p.seed+1, p.out))
		x := b.Input(p.name, tensor.Float32, tensor.Shape{lossBatch, p.in})
		b.Output(b.Op("Add", b.Op("MatMul", x, w), c), tensor.Float32, nil)
	}
	return b.Graph()
}

type part struct {
	name          string
	in, out, seed int
}

func speaker(context int) *graph.Graph { return speakerOf(context, 2, 5) }

func speakerOf(context, embedding, seed int) *graph.Graph {
	b := graph.NewBuilder("speaker")
	x := b.Input("tokens", tensor.Int64, tensor.Shape{lossBatch, context})
	x = b.Op("Tanh", b.Op("Gather", b.Init("e", spread(embedding, 7, 7)), x))
	x = b.Op("Add", b.Op("MatMul", x, b.Init("w", spread(seed, 7, 7))), b.Init("b", spread(seed+1, 7)))
	b.Output(x, tensor.Float32, nil)
	return b.Graph()
}

// objective is a model, what records hold, and what of it is compared.
type objective struct {
	model   *graph.Graph
	values  map[string]*tensor.Tensor
	loss    string
	against train.LossOptions
}

func objectives() map[string]objective {
	to := func(n int) *graph.Graph { return linear(part{"x", 6, n, 5}) }
	of := func(y *tensor.Tensor) map[string]*tensor.Tensor {
		return map[string]*tensor.Tensor{"x": features, "y": y}
	}
	class := func(t tensor.DType) *tensor.Tensor { return whole(t, classOf) }
	masked := of(class(tensor.Int64))
	masked["counts"] = whole(tensor.Bool, countedOf)
	wise := linear(part{"x", 6, 5, 11})
	tokens := whole(tensor.Uint8, tokenOf, 6)
	spoken := whole(tensor.Uint8, spokenOf, 6)
	return map[string]objective{
		"cross-entropy": {to(5), of(class(tensor.Uint8)), "cross-entropy", train.LossOptions{}},
		"cross-entropy, smoothed and weighted": {to(5), of(class(tensor.Int16)), "cross-entropy",
			train.LossOptions{Target: "y", Smoothing: 0.25, Weights: []float32{1, 0.5, 2, 0.25, 1.5}}},
		"cross-entropy, masked":            {to(5), masked, "cross-entropy", train.LossOptions{Mask: "counts"}},
		"binary-cross-entropy":             {to(3), of(whole(tensor.Bool, truthOf, 3)), "binary-cross-entropy", train.LossOptions{}},
		"binary-cross-entropy, weighted":   {to(3), of(whole(tensor.Float64, truthOf, 3)), "binary-cross-entropy", train.LossOptions{Weights: []float32{2.5}}},
		"squared-error":                    {to(3), of(targets), "squared-error", train.LossOptions{}},
		"absolute-error":                   {to(3), of(targets), "absolute-error", train.LossOptions{}},
		"huber":                            {to(3), of(targets), "huber", train.LossOptions{Delta: 0.5}},
		"contrastive":                      {linear(part{"x", 6, 4, 5}, part{"y", 3, 4, 8}), of(targets), "contrastive", train.LossOptions{Temperature: 0.5}},
		"next-token-cross-entropy":         {speaker(5), map[string]*tensor.Tensor{"tokens": whole(tensor.Uint16, tokenOf, 6)}, "next-token-cross-entropy", train.LossOptions{}},
		"next-token-cross-entropy, masked": {speaker(5), map[string]*tensor.Tensor{"tokens": tokens, "spoken": spoken}, "next-token-cross-entropy", train.LossOptions{Target: "tokens", Mask: "spoken"}},
		"masked-token-cross-entropy":       {speaker(6), map[string]*tensor.Tensor{"tokens": tokens, "labels": whole(tensor.Int8, hiddenOf, 6)}, "masked-token-cross-entropy", train.LossOptions{}},
		"preference": {speaker(5), map[string]*tensor.Tensor{"chosen": tokens, "rejected": whole(tensor.Int64, otherOf, 6), "chosen_mask": spoken,
			"rejected_mask": whole(tensor.Float16, spokenOf, 6)}, "preference", train.LossOptions{Beta: 0.5}},

		"cross-entropy, distilled":       {taught(to(5), wise), of(class(tensor.Uint8)), "cross-entropy", train.LossOptions{Teacher: "taught", Weight: 0.5}},
		"cross-entropy, distilled alone": {taught(to(5), wise), of(class(tensor.Uint8)), "cross-entropy", train.LossOptions{Teacher: "taught", Weight: 1, Temperature: 1}},
		"cross-entropy, distilled, smoothed and weighted": {taught(to(5), wise), of(class(tensor.Int16)), "cross-entropy",
			train.LossOptions{Target: "y", Smoothing: 0.25, Weights: []float32{1, 0.5, 2, 0.25, 1.5}, Teacher: "taught", Weight: 0.25, Temperature: 3}},
		"next-token-cross-entropy, distilled": {taught(speaker(5), speakerOf(5, 13, 21)), map[string]*tensor.Tensor{"tokens": tokens}, "next-token-cross-entropy",
			train.LossOptions{Teacher: "taught", Weight: 0.5}},
		"next-token-cross-entropy, distilled and masked": {taught(speaker(5), speakerOf(5, 13, 21)), map[string]*tensor.Tensor{"tokens": tokens, "spoken": spoken},
			"next-token-cross-entropy", train.LossOptions{Target: "tokens", Mask: "spoken", Teacher: "taught", Weight: 0.5}},
		"masked-token-cross-entropy, distilled": {taught(speaker(6), speakerOf(6, 13, 21)), map[string]*tensor.Tensor{"tokens": tokens, "labels": whole(tensor.Int8, hiddenOf, 6)},
			"masked-token-cross-entropy", train.LossOptions{Teacher: "taught", Weight: 0.75, Temperature: 4}},
	}
}

// taught joins a teacher to a model, on the same inputs: its output is called taught.
func taught(student, teacher *graph.Graph) *graph.Graph {
	b := graph.Extend(student)
	bind := map[string]string{}
	for i, in := range teacher.Inputs {
		bind[in.Name] = student.Inputs[i].Name
	}
	y := b.Import("teacher.", teacher, bind)[teacher.Outputs[0].Name]
	b.Output(b.With().As("taught").Op("Identity", y), tensor.Float32, nil)
	return b.Graph()
}

// fieldsOf are the fields of records with such values.
func fieldsOf(values map[string]*tensor.Tensor) (fields record.Fields) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		fields = append(fields, record.Field{Name: name, Type: v.Type, Shape: v.Shape[1:]})
	}
	return fields
}

// begin makes the training of an objective, and its records.
func (o objective) begin(t *testing.T) (*train.Training, *tensor.Tensor) {
	t.Helper()
	fields := fieldsOf(o.values)
	data, err := fields.Pack(o.values)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(o.model, o.recipe(fields), data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	return tr, data
}

func (o objective) recipe(fields record.Fields) train.Recipe {
	return train.Recipe{Fields: fields, Loss: o.loss, LossOptions: o.against, Optimizer: "sgd", Rate: train.Rate{LearningRate: lossRate}, Batch: lossBatch}
}

// The losses of fifty steps are PyTorch's, of whatever types the records are.
func TestLossesArePyTorchs(t *testing.T) {
	var want map[string][]float64
	b, err := os.ReadFile("testdata/losses.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := objectives()
	if a, b := slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Fatalf("objectives %q, but PyTorch has %q", a, b)
	}
	for name, o := range all {
		t.Run(name, func(t *testing.T) {
			tr, data := o.begin(t)
			s, most := tr.Start, 0.0
			for step, w := range want[name] {
				rows := make([]int64, lossBatch)
				for i := range rows {
					rows[i] = int64((step*lossBatch + i) % lossRecords)
				}
				if s, err = tr.Program.Run(graph.Inputs{States: []*graph.State{s}, Data: data, Rows: rows}, graph.Reference, nil); err != nil {
					t.Fatal(err)
				}
				if got := float64(tensor.Of[float32](s.Find("loss"))[0]); math.Abs(got-w) > 1e-4*(1+math.Abs(w)) {
					t.Fatalf("step %d: loss %v, PyTorch has %v", step, got, w)
				} else {
					most = max(most, math.Abs(got/w-1))
				}
			}
			t.Logf("losses of %d steps at most %.2g apart, of themselves", len(want[name]), most)
		})
	}
}

func TestObjectivesRefuse(t *testing.T) {
	for want, change := range map[string]func(o *objective){
		`no field for input "x"`: func(o *objective) {
			delete(o.values, "x")
			o.values["z"], o.values["k"] = features, features
			o.against.Target = "y"
		},
		"name the field that is the tar": func(o *objective) { o.values["z"] = features },
		`have no field "label"`:          func(o *objective) { o.against.Target = "label" },
		`have no field "kept"`:           func(o *objective) { o.against.Mask = "kept" },
		"but field \"x\" has the shape":  func(o *objective) { o.values["x"] = targets },
		"labels are integers":            func(o *objective) { o.values["y"] = features },
		"they have one shape":            func(o *objective) { o.loss, o.values["y"] = "squared-error", targets },
		"two outputs":                    func(o *objective) { o.loss, o.model = "contrastive", linear(part{"x", 6, 5, 5}) },
		"tokens are integers":            func(o *objective) { o.loss = "next-token-cross-entropy" },
		"a smoothing of 1":               func(o *objective) { o.against.Smoothing = 1 },
		"a class that weighs -1":         func(o *objective) { o.against.Weights = []float32{-1} },
		"the model tells 5 apart":        func(o *objective) { o.against.Weights = []float32{1, 1} },
		"binary loss has one": func(o *objective) {
			o.loss, o.values["y"], o.against.Weights = "binary-cross-entropy", spread(1, lossRecords, 5), []float32{1, 1}
		},
		"delta -1":        func(o *objective) { o.against.Delta = -1 },
		"temperature NaN": func(o *objective) { o.against.Temperature = float32(math.NaN()) },
		"name the output": func(o *objective) {
			o.model = linear(part{"x", 6, 5, 5}, part{"y", 6, 5, 5})
			o.values["y"], o.values["z"] = features, whole(tensor.Int8, classOf)
			o.against.Target = "z"
		},
	} {
		o := objectives()["cross-entropy"]
		o.values = maps.Clone(o.values)
		change(&o)
		fields := fieldsOf(o.values)
		if _, err := train.New(o.model, o.recipe(fields), tensor.Shape{lossRecords, fields.Words()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
		if _, err := train.New(o.model, o.recipe(fields), tensor.Shape{lossRecords, fields.Words() + 1}); err == nil {
			t.Errorf("records of one word too many were taken")
		}
	}
}

func TestRecipesAreReadAgain(t *testing.T) {
	for name, o := range objectives() {
		tr, _ := o.begin(t)
		_ = tr
		fields := fieldsOf(o.values)
		r := o.recipe(fields)
		b, err := canon.Encoded(&r)
		if err != nil {
			t.Fatal(err)
		}
		var back train.Recipe
		if err := canon.Unmarshal(b, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again, err := canon.Encoded(&back); err != nil || string(again) != string(b) || len(back.Fields) != len(fields) {
			t.Errorf("%s: read again, the recipe differs (%v)", name, err)
		}
	}
}
