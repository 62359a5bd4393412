package search

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model"
)

func irises(t testing.TB) *Table {
	t.Helper()
	text, err := os.ReadFile("../../examples/search/iris.csv")
	if err != nil {
		t.Fatal(err)
	}
	table, err := ReadTable(text, "")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// load makes a graph a program by way of its file.
func load(t testing.TB, g *graph.Graph, in model.Values) *model.Prepared {
	t.Helper()
	b, err := onnx.Write(g)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(bytes.NewReader(b), int64(len(b)), onnx.Options{}, lower.FP32, in)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes, %d bytes, %v a run", len(g.Nodes), len(b), m.Program.Cost())
	p, err := m.Prepare(cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, p *model.Prepared, in model.Values) model.Values {
	t.Helper()
	out, err := p.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func settings(rate, momentum, decay float32, hidden, seed int64) model.Values {
	return model.Values{
		Rate: tensor.Scalar(rate), Momentum: tensor.Scalar(momentum), Decay: tensor.Scalar(decay),
		Hidden: tensor.Scalar(hidden), Seed: tensor.Scalar(seed),
	}
}

func number(v model.Values, name string) float64 { return float64(tensor.Of[float32](v[name])[0]) }

func TestIrisesAreLearned(t *testing.T) {
	g, err := Trainer{Table: irises(t), Hidden: 16, Steps: 200, Seeds: 2}.Graph()
	if err != nil {
		t.Fatal(err)
	}
	good := settings(0.3, 0.9, 0.001, 16, 0)
	p := load(t, g, good)
	out := run(t, p, good)
	for _, name := range []string{ValidationAccuracy, TestAccuracy} {
		if a := number(out, name); a < 0.9 || a > 1 { // chance: 0.33
			t.Errorf("%s is %v", name, a)
		}
	}
	if l := number(out, TrainLoss); l > 0.1 || l <= 0 {
		t.Errorf("%s is %v", TrainLoss, l)
	}
	if at := tensor.Of[int64](out[Used+Hidden])[0]; at != 16 || number(out, Used+Momentum) != float64(float32(0.9)) {
		t.Errorf("a row says it used %d units", at)
	}
	// Each input matters.
	for name, other := range map[string]model.Values{
		Rate: settings(0.01, 0.9, 0.001, 16, 0), Momentum: settings(0.3, 0, 0.001, 16, 0), Decay: settings(0.3, 0.9, 0.1, 16, 0),
		Hidden: settings(0.3, 0.9, 0.001, 2, 0), Seed: settings(0.3, 0.9, 0.001, 16, 1),
	} {
		if number(run(t, p, other), TrainLoss) == number(out, TrainLoss) {
			t.Errorf("%s changes nothing", name)
		}
	}
	// Without a rate nothing is learned, and with no hidden unit the scores are the biases.
	if l := number(run(t, p, settings(0, 0, 0, 0, 0)), TrainLoss); math.Abs(l-math.Log(3)) > 1e-6 {
		t.Errorf("loss of equal scores is %v, want ln 3", l)
	}
}

// TestGradientsAgreeWithDifferences moves each weight a little, either way.
func TestGradientsAgreeWithDifferences(t *testing.T) {
	m := &builder{Builder: graph.NewBuilder("check"), Trainer: Trainer{Table: irises(t), Hidden: 3, Steps: 1, Seeds: 1}}
	train, _, _ := m.Table.split()
	mean, deviation := m.Table.scale(train)
	e := m.examples(train, mean, deviation)
	m.use(m.Const(tensor.Scalar(int64(2))))
	shapes := []tensor.Shape{{m.inputs(), m.Hidden + 1}, {m.Hidden + 1, len(m.Table.Classes)}}
	w := weights{m.Input("into", tensor.Float32, shapes[0]), m.Input("out", tensor.Float32, shapes[1])}
	g := m.gradients(e, w)
	loss := m.loss(e, w)
	m.Output(g.into, tensor.Float32, shapes[0])
	m.Output(g.out, tensor.Float32, shapes[1])
	m.Output(loss, tensor.Float32, nil)

	in := model.Values{}
	for i, name := range []string{w.into, w.out} {
		x := tensor.Must(tensor.New(tensor.Float32, shapes[i]))
		for j, v := 0, tensor.Of[float32](x); j < len(v); j++ {
			h := draw("test", uint64(i), uint64(j))
			v[j] = float32(h[0])/128 - 1
		}
		in[name] = x
	}
	p := load(t, m.Builder.Graph(), in)
	out := run(t, p, in)
	const little = 1.0 / 64
	for _, of := range [][2]string{{w.into, g.into}, {w.out, g.out}} {
		v := tensor.Of[float32](in[of[0]])
		for j, x := range v {
			v[j] = x + little
			above := number(run(t, p, in), loss)
			v[j] = x - little
			below := number(run(t, p, in), loss)
			v[j] = x
			got, want := float64(tensor.Of[float32](out[of[1]])[j])/float64(len(train)), (above-below)/(2*little)
			if math.Abs(got-want) > 2e-4 {
				t.Errorf("gradient %d of %s is %v, by differences %v", j, of[0], got, want)
			}
		}
	}
}

func TestPartsAreDisjoint(t *testing.T) {
	table := irises(t)
	a, b, c := table.split()
	if len(a) != 90 || len(b) != 30 || len(c) != 30 {
		t.Errorf("parts of %d, %d and %d rows", len(a), len(b), len(c))
	}
	seen := map[int]bool{}
	for _, r := range append(append(a, b...), c...) {
		seen[r] = true
	}
	if len(seen) != table.Rows() {
		t.Errorf("%d of %d rows are in a part", len(seen), table.Rows())
	}
}

const tenRows = "1,2,a\n1,3,b\n1,4,a\n1,5,b\n1,6,a\n1,7,b\n1,8,a\n1,9,b\n1,10,a\n1,11,b\n"

func TestReadTable(t *testing.T) {
	table, err := ReadTable([]byte("\ufeffx,y,class\n"+tenRows), "")
	if err != nil || table.Rows() != 10 || strings.Join(table.Classes, " ") != "a b" || strings.Join(table.Features, " ") != "x y" {
		t.Fatalf("%v, %v", table, err)
	}
	if _, deviation := table.scale([]int{0, 1}); deviation[0] != 1 || deviation[1] != 0.5 {
		t.Errorf("deviations %v", deviation)
	}
	if table, err = ReadTable([]byte("class,y\na"+strings.Repeat("\na,1\nb,2", 5)+"\n"), "class"); err == nil {
		t.Errorf("a short row was read: %v", table)
	}
	if table, err = ReadTable([]byte("class,y"+strings.Repeat("\na,1\nb,2", 5)+"\n"), "class"); err != nil || table.Features[0] != "y" {
		t.Errorf("%v, %v", table, err)
	}
}

func TestTablesAreRefused(t *testing.T) {
	for want, text := range map[string]string{
		"the file is empty":              "",
		"has 1 columns":                  "x\n1\n",
		"which is a number":              tenRows,
		"two columns are called":         "x,x,class\n" + tenRows,
		"10 at least":                    "x,y,class\n1,2,a\n",
		"have 1 classes":                 "x,y,class\n" + strings.ReplaceAll(tenRows, "b", "a"),
		`"?" in column "y" is no finite`: "x,y,class\n1,?,a\n" + tenRows,
		`"NaN" in column "x"`:            "x,y,class\nNaN,?,a\n" + tenRows,
		"row 1: the class has 0 bytes":   "x,y,class\n1,2,\n" + tenRows,
		"wrong number of fields":         "x,y,class\n1,2\n" + tenRows,
		"has a name of 0 bytes":          "x,,class\n" + tenRows,
	} {
		if _, err := ReadTable([]byte(text), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	var many strings.Builder
	many.WriteString("x,class\n")
	for i := range maxCells/256 + 1 {
		fmt.Fprintf(&many, "1,%d\n", i%256)
	}
	if _, err := ReadTable([]byte(many.String()), ""); err == nil || !strings.Contains(err.Error(), "rows times classes") {
		t.Error(err)
	}
	if _, err := ReadTable([]byte("x,y,class\n"+tenRows), "kind"); err == nil || !strings.Contains(err.Error(), `no column is called "kind"`) {
		t.Error(err)
	}
	for _, c := range []Trainer{{Hidden: 0, Steps: 1, Seeds: 1}, {Hidden: 1, Steps: MaxSteps + 1, Seeds: 1}, {Hidden: MaxHidden, Steps: 1, Seeds: MaxSeeds * 16}} {
		c.Table = irises(t)
		if _, err := c.Graph(); err == nil {
			t.Errorf("%d hidden units, %d steps and %d seeds were taken", c.Hidden, c.Steps, c.Seeds)
		}
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add([]byte("x,y,class\n"+tenRows), "")
	f.Add([]byte("class,\"y\n\"\na,1e400\n"), "class")
	f.Fuzz(func(t *testing.T, text []byte, label string) {
		table, err := ReadTable(text, label)
		if err != nil {
			return
		}
		g, err := Trainer{Table: table, Hidden: 2, Steps: 1, Seeds: 1}.Graph()
		if err != nil {
			t.Fatalf("a table that was read cannot be learned: %v", err)
		}
		if len(g.Outputs) != 9 {
			t.Errorf("%d outputs", len(g.Outputs))
		}
	})
}
