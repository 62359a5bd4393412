package zoo_test

import (
	"testing"

	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// The trainer takes every model as it is written, and its loss falls: records are fields named as inputs are.
func TestModelsLearn(t *testing.T) {
	for _, c := range []struct {
		name, settings, loss string
		label                tensor.DType
	}{
		{"mlp", "batch=4,inputs=6,width=8,classes=3", "cross-entropy", tensor.Int32},
		{"mlp", "batch=4,inputs=6,width=8,classes=0,outputs=2", "squared-error", tensor.Float32},
		{"lenet", "batch=4,size=12,classes=3", "cross-entropy", tensor.Int32},
		{"resnet", "batch=4,size=8,stages=2,blocks=1,width=8,classes=3", "cross-entropy", tensor.Int32},
		{"vit", "batch=4,size=8,patch=4,width=8,layers=1,heads=2,classes=3", "cross-entropy", tensor.Int32},
		{"lstm", "batch=4,steps=3,inputs=2,width=8,classes=3", "cross-entropy", tensor.Int32},
		{"unet", "batch=4,size=8,width=8,depth=1,classes=2", "cross-entropy", tensor.Int32},
	} {
		t.Run(c.name+" "+c.loss, func(t *testing.T) {
			g := build(t, c.name, c.settings, 1).Graph
			in, out := g.Inputs[0], g.Outputs[0]
			records, classes := in.Shape[0], 2
			label := record.Field{Name: "label", Type: c.label}
			y := tensor.Shape{records}
			switch {
			case c.label == tensor.Float32:
				y = out.Shape
			case len(out.Shape) == 4:
				y, classes = tensor.Shape{records, out.Shape[2], out.Shape[3]}, out.Shape[1]
			default:
				classes = out.Shape[1]
			}
			label.Shape = y[1:]
			targets := pattern(y, 53, 97)
			if c.label == tensor.Int32 {
				targets = tensor.Must(tensor.New(tensor.Int32, y))
				for i := range targets.Len() {
					targets.Set(i, tensor.Word(i*7/3%classes))
				}
			}
			fields := record.Fields{{Name: in.Name, Type: in.Type, Shape: in.Shape[1:]}, label}
			data, err := fields.Pack(map[string]*tensor.Tensor{in.Name: pattern(in.Shape, 37, 101), "label": targets})
			if err != nil {
				t.Fatal(err)
			}
			tr, _ := begin(t, g, train.Recipe{
				Fields: fields, Loss: c.loss, Optimizer: "adam", Rate: train.Rate{LearningRate: 0.01}, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Batch: records,
			}, data)
			ran, s, first := runners{}, tr.Start, 0.0
			for step := range 40 {
				if s = ran.run(t, tr.Program, s, data, []int64{0, 1, 2, 3}); step == 0 {
					first = loss(s)
				}
			}
			if last := loss(s); !(last < 0.8*first) {
				t.Errorf("the loss went from %v to %v", first, last)
			}
		})
	}
}
