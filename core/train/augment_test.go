package train_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

const augmentSeed = 7

// digits is training of one record x [1 4], 1 2 3 4, whose loss is Σ xᵢ·10ⁱ: so the loss shows what became of x.
func digits(pixel tensor.DType, augment ...train.Augment) (*train.Training, *tensor.Tensor, error) {
	b := graph.NewBuilder("digits")
	x := b.Op("Reshape", b.Cast(b.Input("x", pixel, tensor.Shape{1, 1, 4}), tensor.Float32), b.Ints(1, 4))
	x = b.Op("MatMul", x, b.Const(tensor.Must(tensor.From(tensor.Shape{4, 1}, []float32{1, 10, 100, 1000}))))
	b.Output(b.Op("Add", x, b.Init("bias", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1})))), tensor.Float32, nil)
	fields := record.Fields{{Name: "x", Type: pixel, Shape: tensor.Shape{1, 4}}}
	values := tensor.Must(tensor.New(pixel, tensor.Shape{1, 1, 4}))
	for i := range 4 {
		if values.Set(i, tensor.Word(i+1)); pixel == tensor.Float32 {
			values.Set(i, tensor.F32(float32(i+1)))
		}
	}
	data, err := fields.Pack(map[string]*tensor.Tensor{"x": values})
	if err != nil {
		return nil, nil, err
	}
	r := train.Recipe{
		Fields: fields, Loss: "output", Optimizer: "sgd", Rate: train.Rate{LearningRate: 1e-30}, Batch: 1, Seed: augmentSeed, Augment: augment,
	}
	tr, err := train.New(b.Graph(), r, data.Shape)
	return tr, data, err
}

// seen returns what the record was in each of some steps.
func seen(t *testing.T, tr *train.Training, data *tensor.Tensor, steps int) (out [][4]int) {
	t.Helper()
	s := tr.Start
	for range steps {
		s = play(t, tr.Program, data, s, 0)
		n := int(tensor.Of[float32](s.Find("loss"))[0])
		out = append(out, [4]int{n % 10, n / 10 % 10, n / 100 % 10, n / 1000 % 10})
	}
	return out
}

// word is the random word of the first record in a step, as docs/spec/programs.md has it.
func word(seed uint64, step uint32, of string) uint32 {
	h := canon.Sum(canon.DomainInit, append(binary.LittleEndian.AppendUint64(nil, seed), of...))
	key := binary.LittleEndian.Uint32(h[:4])
	return op.Mix(op.Mix(op.Mix(step+key)) + op.Mix(key))
}

func TestRecordsAreFlippedAndShiftedByChance(t *testing.T) {
	const steps = 40
	flip := func(x [4]int, step uint32, i int, odds float64) [4]int {
		if word(augmentSeed, step, fmt.Sprintf("augment/%d/record", i))>>8 < uint32(odds*(1<<24)) {
			slices.Reverse(x[:])
		}
		return x
	}
	shift := func(x [4]int, step uint32, i, most int) (out [4]int) {
		d := int(word(augmentSeed, step, fmt.Sprintf("augment/%d/record", i))>>16*uint32(2*most+1)>>16) - most
		for j := range x {
			if from := j - d; from >= 0 && from < len(x) {
				out[j] = x[from]
			}
		}
		return out
	}
	for _, c := range []struct {
		name    string
		augment []train.Augment
		want    func(x [4]int, step uint32) [4]int
	}{
		{"flip", []train.Augment{{Kind: "flip", Fields: []string{"x"}, Axis: 1, Amount: 0.5}},
			func(x [4]int, step uint32) [4]int { return flip(x, step, 0, 0.5) }},
		{"flip always", []train.Augment{{Kind: "flip", Fields: []string{"x"}, Axis: 1, Amount: 1}},
			func(x [4]int, step uint32) [4]int { return flip(x, step, 0, 1) }},
		{"flip of one place", []train.Augment{{Kind: "flip", Fields: []string{"x"}, Axis: 2, Amount: 1}},
			func(x [4]int, _ uint32) [4]int { return x }},
		{"shift", []train.Augment{{Kind: "shift", Fields: []string{"x"}, Axis: 1, Amount: 2}},
			func(x [4]int, step uint32) [4]int { return shift(x, step, 0, 2) }},
		{"shift out", []train.Augment{{Kind: "shift", Fields: []string{"x"}, Axis: 1, Amount: 9}},
			func(x [4]int, step uint32) [4]int { return shift(x, step, 0, 9) }},
		{"both", []train.Augment{{Kind: "flip", Fields: []string{"x"}, Axis: 1, Amount: 0.5}, {Kind: "shift", Fields: []string{"x"}, Axis: 1, Amount: 1}},
			func(x [4]int, step uint32) [4]int { return shift(flip(x, step, 0, 0.5), step, 1, 1) }},
	} {
		for _, pixel := range []tensor.DType{tensor.Uint8, tensor.Float32, tensor.Int64} {
			t.Run(fmt.Sprint(c.name, " ", pixel), func(t *testing.T) {
				tr, data, err := digits(pixel, c.augment...)
				if err != nil {
					t.Fatal(err)
				}
				ways := map[[4]int]bool{}
				for step, got := range seen(t, tr, data, steps) {
					ways[got] = true
					if want := c.want([4]int{1, 2, 3, 4}, uint32(step)); got != want {
						t.Errorf("step %d: %v, want %v", step, got, want)
					}
				}
				if len(c.augment) > 1 && len(ways) < 5 {
					t.Errorf("in %d steps the record was seen in %d ways", steps, len(ways))
				}
			})
		}
	}
}

func TestNoiseHasItsDeviation(t *testing.T) {
	const steps = 60
	tr, data, err := digits(tensor.Float32, train.Augment{Kind: "noise", Fields: []string{"x"}, Amount: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	s := tr.Start
	var sum, squares float64
	for range steps {
		s = play(t, tr.Program, data, s, 0)
		z := (float64(tensor.Of[float32](s.Find("loss"))[0]) - 4321) / (0.5 * math.Sqrt(1+1e2+1e4+1e6))
		sum, squares = sum+z, squares+z*z
	}
	if mean, variance := sum/steps, squares/steps; math.Abs(mean) > 0.4 || variance < 0.5 || variance > 1.6 {
		t.Errorf("noise has mean %v and variance %v, want 0 and 1", mean, variance)
	}
	if tr, data, err = digits(tensor.Uint8, train.Augment{Kind: "noise", Fields: []string{"x"}, Amount: 1e6}); err != nil {
		t.Fatal(err)
	}
	s = play(t, tr.Program, data, tr.Start, 0)
	if loss := int(tensor.Of[float32](s.Find("loss"))[0]); loss%255 != 0 {
		t.Errorf("bytes under much noise give %d, want each to be 0 or 255", loss)
	}
}

func TestScoresAreOfRecordsAsTheyAre(t *testing.T) {
	tr, data, err := digits(tensor.Uint8, train.Augment{Kind: "shift", Fields: []string{"x"}, Axis: 1, Amount: 4000})
	if err != nil {
		t.Fatal(err)
	}
	e, err := tr.Evaluate(data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	if sum := tensor.Of[float64](play(t, e.Batch, data, tr.Start, 0).Find("losses"))[0]; sum != 4321 {
		t.Errorf("the record's loss is %v, want 4321", sum)
	}
}

func TestAugmentationsThatMakeNoSenseAreRefused(t *testing.T) {
	x := []string{"x"}
	for _, c := range []struct {
		of   train.Augment
		want string
	}{
		{train.Augment{Kind: "melt", Fields: x, Amount: 1}, "use flip or noise or shift"},
		{train.Augment{Kind: "flip", Fields: x, Axis: 1, Amount: 1.5}, "at most 1"},
		{train.Augment{Kind: "flip", Fields: x, Axis: 1, Amount: float32(math.NaN())}, "above 0"},
		{train.Augment{Kind: "shift", Fields: x, Axis: 1, Amount: 1.5}, "no whole number"},
		{train.Augment{Kind: "shift", Fields: x, Amount: 1}, "axis 0"},
		{train.Augment{Kind: "shift", Fields: x, Axis: 3, Amount: 1}, "no axis 3"},
		{train.Augment{Kind: "noise", Fields: x, Axis: 1, Amount: 1}, "noise none"},
		{train.Augment{Kind: "noise", Amount: 1}, "0 fields"},
		{train.Augment{Kind: "shift", Fields: []string{"x", "x"}, Axis: 1, Amount: 1}, "twice"},
		{train.Augment{Kind: "noise", Fields: make([]string, 17), Amount: 1}, "17 fields"},
		{train.Augment{Kind: "noise", Fields: []string{"y"}, Amount: 1}, `no field "y"`},
		{train.Augment{Kind: "noise", Fields: x, Amount: 1}, "uint8"},
	} {
		if _, _, err := digits(tensor.Int64, c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.of, err, c.want)
		}
	}
}

// What was encoded before there were augmentations is still read, and there is one encoding of each recipe.
func TestRecipesWithAndWithoutAugmentations(t *testing.T) {
	r := train.Recipe{Loss: "output", Optimizer: "sgd", Batch: 1}
	plain := canon.Marshal(&r)
	r.Augment = []train.Augment{{Kind: "flip", Fields: []string{"x"}, Axis: 1, Amount: 0.5}}
	var back train.Recipe
	if err := canon.Unmarshal(canon.Marshal(&r), &back); err != nil || len(back.Augment) != 1 {
		t.Errorf("read back %+v: %v", back.Augment, err)
	}
	if err := canon.Unmarshal(plain, new(train.Recipe)); err != nil {
		t.Error(err)
	}
	if err := canon.Unmarshal(append(plain, 0), new(train.Recipe)); err == nil {
		t.Error("a recipe with a list of no augmentations is a second encoding of one without")
	}
}
