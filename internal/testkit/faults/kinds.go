package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/consume/teacher"
)

// Field is a field of records, filled by chance: floats around 0, or whole numbers below a bound.
type Field struct {
	record.Field
	Below int
}

func column(name string, t tensor.DType, below int, shape ...int) Field {
	return Field{record.Field{Name: name, Type: t, Shape: shape}, below}
}

// values are those of all records.
func (f *Field) values() *tensor.Tensor {
	t := tensor.Must(tensor.New(f.Type, append(tensor.Shape{count}, f.Shape...)))
	r := rand.New(rand.NewPCG(uint64(len(f.Name)), uint64(f.Below)))
	for i := range t.Len() {
		if f.Type.Float() {
			t.Set(i, tensor.FloatWord(f.Type, r.Float64()-0.5))
		} else {
			t.Set(i, tensor.Word(r.IntN(f.Below)))
		}
	}
	return t
}

// pack makes records of training.
func pack(all []Field) (fields record.Fields, data *tensor.Tensor, err error) {
	values := map[string]*tensor.Tensor{}
	for i := range all {
		fields = append(fields, all[i].Field)
		values[all[i].Name] = all[i].values()
	}
	data, err = fields.Pack(values)
	return fields, data, err
}

// state makes records of a batch.
func state(all []Field) *graph.State {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	s := &graph.State{}
	for i := range all {
		v := all[i].values()
		s.Slots, s.Tensors = append(s.Slots, graph.Slot{Name: all[i].Name, Type: v.Type, Shape: v.Shape}), append(s.Tensors, v)
	}
	return s
}

// adamw is the optimizer of all kinds, for it has moments of both orders.
func adamw(loss string, of train.LossOptions, augment ...train.Augment) train.Recipe {
	return train.Recipe{Loss: loss, LossOptions: of, Optimizer: "adamw", Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.1, Seed: 3, Augment: augment}
}

// Parts that every training has.
var trained = []string{"loss", "product", "gradient", "moment", "parameter"}

func with(more ...string) []string { return slices.Concat(trained, more) }

const pixels = 6 // height and width of an image

// Kinds are the kinds of work that people order.
var Kinds = []Model{
	{
		Name: "classes of a table", Recipe: adamw("cross-entropy", train.LossOptions{Smoothing: 0.1}), Parts: with("dropout mask", "dropout"),
		Graph:  reference("mlp", map[string]int{"inputs": 5, "width": 40, "layers": 2, "classes": 3}, "dropout=0.25"),
		Fields: []Field{column("features", tensor.Float32, 0, 5), column("target", tensor.Int32, 3)},
	},
	{
		Name: "numbers of a table", Recipe: adamw("huber", train.LossOptions{}, train.Augment{Kind: "noise", Fields: []string{"features"}, Amount: 0.1}),
		Graph: reference("mlp", map[string]int{"inputs": 5, "width": 40, "layers": 1, "classes": 0, "outputs": 2}),
		Parts: with("augmentation draw", "augmentation"), Fields: []Field{column("features", tensor.Float32, 0, 5), column("target", tensor.Float32, 0, 2)},
	},
	{
		Name: "images", Parts: with("augmentation draw", "augmentation", "dropout mask", "dropout", "batch statistic", "running statistic"), Graph: pictures,
		Recipe: adamw("cross-entropy", train.LossOptions{},
			train.Augment{Kind: "flip", Fields: []string{"image"}, Axis: 2, Amount: 0.5},
			train.Augment{Kind: "shift", Fields: []string{"image"}, Axis: 3, Amount: 1},
			train.Augment{Kind: "noise", Fields: []string{"image"}, Amount: 4}),
		Fields: []Field{column("image", tensor.Uint8, 256, pixels, pixels, 1), column("target", tensor.Int32, 3)},
	},
	{
		Name: "chats", Recipe: adamw("next-token-cross-entropy", train.LossOptions{Target: "tokens", Mask: "loss_mask"}), Parts: trained, Graph: gpt,
		Fields: []Field{column("loss_mask", tensor.Uint8, 2, window+1), column("tokens", tensor.Int32, vocabulary, window+1)},
	},
	{
		Name: "sequences", Recipe: adamw("cross-entropy", train.LossOptions{}), Parts: trained,
		Graph:  reference("lstm", map[string]int{"steps": 3, "inputs": 4, "width": 34, "classes": 3}),
		Fields: []Field{column("sequence", tensor.Float32, 0, 3, 4), column("target", tensor.Int32, 3)},
	},
	{
		Name: "preferences", Recipe: adamw("preference", train.LossOptions{Beta: 0.5}), Parts: trained, Graph: gpt,
		Fields: []Field{
			column("chosen", tensor.Int32, vocabulary, window+1), column("chosen_mask", tensor.Uint8, 2, window+1),
			column("rejected", tensor.Int32, vocabulary, window+1), column("rejected_mask", tensor.Uint8, 2, window+1),
		},
	},
	{
		Name: "what a teacher says", Recipe: adamw("cross-entropy", train.LossOptions{Teacher: "teacher", Weight: 0.5, Temperature: 2}), Parts: with("teacher"), Graph: taught,
		Fields: []Field{column("features", tensor.Float32, 0, 5), column("target", tensor.Int32, 3)},
	},
	{
		Name: "batch", Graph: gpt, Parts: []string{"product", "result"}, Fields: []Field{column("tokens", tensor.Int32, vocabulary, window)},
	},
}

// reference is a reference model.
func reference(name string, sizes map[string]int, more ...string) func() (*graph.Graph, error) {
	return func() (*graph.Graph, error) {
		a, err := zoo.Find(name)
		if err != nil {
			return nil, err
		}
		chosen, err := zoo.Parse(more...)
		if err != nil {
			return nil, err
		}
		chosen["batch"] = fmt.Sprint(batch)
		for k, v := range sizes { // order: a map to a map
			chosen[k] = fmt.Sprint(v)
		}
		m, err := a.New(chosen, 1)
		if err != nil {
			return nil, err
		}
		return m.Graph, nil
	}
}

// taught is a small model beside a larger one that it learns from.
func taught() (*graph.Graph, error) {
	student, err := reference("mlp", map[string]int{"inputs": 5, "width": 34, "layers": 1, "classes": 3})()
	if err != nil {
		return nil, err
	}
	of := reference("mlp", map[string]int{"inputs": 5, "width": 40, "layers": 2, "classes": 3})
	joined, _, err := teacher.Join(teacher.Student{Graph: student}, func(map[string]tensor.Shape) (*graph.Graph, error) { return of() })
	return joined, err
}

// pictures tells images apart, as such models are exported: applied, not trained.
func pictures() (*graph.Graph, error) {
	const channels, classes = 4, 3
	n := network{graph.NewBuilder("pictures"), rand.New(rand.NewPCG(3, 5))}
	x := n.Input("image", tensor.Uint8, tensor.Shape{batch, pixels, pixels, 1})
	x = n.Op("Mul", n.Cast(x, tensor.Float32), n.Scalar(1./128))
	x = n.With(graph.Ints("pads", 1, 1, 1, 1)).Op("Conv", n.Op("Reshape", x, n.Ints(batch, 1, pixels, pixels)), n.parameter("conv.weight", channels, 1, 3, 3))
	x = n.Op("BatchNormalization", x, n.parameter("bn.weight", channels), n.parameter("bn.bias", channels), n.parameter("bn.mean", channels), n.positive("bn.var", channels))
	x = n.With(graph.Ints("kernel_shape", 2, 2), graph.Ints("strides", 2, 2)).Op("MaxPool", n.Op("Relu", x))
	x = n.Op("Dropout", n.Op("Reshape", x, n.Ints(batch, channels*pixels*pixels/4)), n.Const(tensor.Scalar[float32](0.25)))
	n.Output(n.linear("fc", x, channels*pixels*pixels/4, classes), tensor.Float32, tensor.Shape{batch, classes})
	return n.Graph(), nil
}

func (n network) positive(name string, shape ...int) string {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		t.Set(i, tensor.F32(n.r.Float32()+0.5))
	}
	return n.Init(name, t)
}
