package train_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// normed has a batch normalisation before a linear map, and perhaps a dropout between them, as a model is exported that is
// to be applied.
func normed(share float32) *graph.Graph {
	b := graph.NewBuilder("normed")
	ones := func(name string, v float32, n int) string {
		t := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n}))
		for i := range n {
			t.Set(i, tensor.F32(v))
		}
		return b.Init(name, t)
	}
	x := b.Input("x", tensor.Float32, tensor.Shape{lossBatch, 6})
	x = b.Op("BatchNormalization", x, ones("bn.weight", 1, 6), ones("bn.bias", 0, 6), ones("bn.running_mean", 0, 6), ones("bn.running_var", 1, 6))
	if share > 0 {
		x = b.Op("Dropout", x, b.Const(tensor.Scalar(share)))
	}
	b.Output(b.Op("MatMul", x, b.Init("w", spread(5, 6, 3))), tensor.Float32, nil)
	return b.Graph()
}

func normedObjective(share float32) objective {
	return objective{normed(share), map[string]*tensor.Tensor{"x": features, "y": targets}, "squared-error", train.LossOptions{}}
}

func play(t *testing.T, p *graph.Program, data *tensor.Tensor, s *graph.State, rows ...int64) *graph.State {
	t.Helper()
	s, err := p.Run(graph.Inputs{States: []*graph.State{s}, Data: data, Rows: rows}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRunningStatisticsFollowBatches(t *testing.T) {
	o := normedObjective(0)
	tr, data := o.begin(t)
	mean, variance := make([]float64, 6), []float64{1, 1, 1, 1, 1, 1}
	s := tr.Start
	x := tensor.Of[float32](features)
	for step := range 3 {
		rows := []int64{int64(4 * step), int64(4*step + 1), int64(4*step + 2), int64(4*step + 3)}
		s = play(t, tr.Program, data, s, rows...)
		for c := range 6 {
			var sum, squares float64
			for _, r := range rows {
				v := float64(x[int(r)*6+c])
				sum, squares = sum+v, squares+v*v
			}
			m := sum / 4
			mean[c], variance[c] = 0.9*mean[c]+0.1*m, 0.9*variance[c]+0.1*(squares/4-m*m)
		}
		closeTo(t, s, "r/bn.running_mean", mean)
		closeTo(t, s, "r/bn.running_var", variance)
	}
	for _, slot := range tr.Start.Slots {
		if strings.HasPrefix(slot.Name, "p/bn.running") {
			t.Errorf("%s is trained by gradients", slot.Name)
		}
	}
	e, err := tr.Evaluate(data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	one, other := play(t, e.Batch, data, s, 0, 1, 2, 3), play(t, e.Batch, data, s, 0, 5, 6, 7)
	if one.Find("losses").Equal(other.Find("losses")) {
		t.Error("other records have the same losses")
	}
	g, err := train.Export(s, o.model, o.recipe(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Consts {
		if c.Name == "bn.running_mean" && math.Abs(float64(tensor.Of[float32](c.Tensor)[0])-mean[0]) > 1e-5 {
			t.Errorf("exported with a running mean of %v, want %v", tensor.Of[float32](c.Tensor), mean)
		}
	}
	_, p, err := train.Merge(tr.Start.Slots, 2)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := p.Run(graph.Inputs{States: []*graph.State{tr.Start, s}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	for c := range mean {
		mean[c] /= 2
	}
	closeTo(t, merged, "r/bn.running_mean", mean)
}

func TestFrozenStatisticsStay(t *testing.T) {
	o := normedObjective(0)
	fields := record.Fields{{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{6}}, {Name: "y", Type: tensor.Float32, Shape: tensor.Shape{3}}}
	r := o.recipe(fields)
	r.Frozen = []string{"*.running_*"}
	tr, err := train.New(o.model, r, tensor.Shape{lossRecords, fields.Words()})
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range tr.Start.Slots {
		if strings.Contains(slot.Name, "running") {
			t.Errorf("slot %s", slot.Name)
		}
	}
}

// What is dropped differs from step to step, is the same again, and is nothing in evaluation.
func TestDropoutDropsByStep(t *testing.T) {
	tr, data := normedObjective(0.5).begin(t)
	plain, _ := normedObjective(0).begin(t)
	at := func(tr *train.Training, step int64) float32 {
		s := &graph.State{Slots: tr.Start.Slots, Tensors: append([]*tensor.Tensor{}, tr.Start.Tensors...)}
		for i, slot := range s.Slots {
			if slot.Name == "step" {
				s.Tensors[i] = tensor.Scalar(step)
			}
		}
		return tensor.Of[float32](play(t, tr.Program, data, s, 0, 1, 2, 3).Find("loss"))[0]
	}
	if a, b := at(tr, 0), at(tr, 0); a != b {
		t.Errorf("the same step has losses %v and %v", a, b)
	}
	seen := map[float32]bool{at(plain, 0): true}
	for step := range int64(6) {
		seen[at(tr, step)] = true
	}
	if len(seen) != 7 {
		t.Errorf("seven losses are expected to differ: %v", seen)
	}
	evaluated := func(tr *train.Training) *tensor.Tensor {
		e, err := tr.Evaluate(data.Shape)
		if err != nil {
			t.Fatal(err)
		}
		return play(t, e.Batch, data, tr.Start, 0, 1, 2, 3).Find("losses")
	}
	if !evaluated(tr).Equal(evaluated(plain)) {
		t.Error("evaluation drops")
	}
	for _, share := range []float32{0.1, 0.5, 0.9} {
		zeros, scaled := train.Drop(t, share, 4096)
		if got := float32(zeros) / 4096; math.Abs(float64(got-share)) > 0.03 || scaled != 1/(1-share) {
			t.Errorf("share %v: %v are dropped, others are times %v", share, got, scaled)
		}
	}
}
