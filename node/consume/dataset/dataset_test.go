package dataset_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/node/consume/dataset"
)

// flowers has 30 records of two numbers, a colour, an id, and one of three kinds, with some numbers missing.
func flowers() string {
	var b strings.Builder
	b.WriteString("id,length,width,colour,kind,plot\n")
	for i := range 30 {
		width := fmt.Sprint(float64(i%7) / 2)
		if i%10 == 3 {
			width = ""
		}
		fmt.Fprintf(&b, "%d,%d.5,%s,%s,%s,p%d\n", i, i, width, []string{"red", "blue"}[i%2], []string{"rose", "lily", "tulip"}[i%3], i/6)
	}
	return b.String()
}

func mlp(features, outputs int, input string) *graph.Graph {
	b := graph.NewBuilder("mlp")
	x := b.Input(input, tensor.Float32, tensor.Shape{4, features})
	w := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{features, outputs}))
	for i := range w.Len() {
		w.Set(i, tensor.F32(float32(i%5)/4-0.5))
	}
	b.Output(b.Op("MatMul", x, b.Init("w", w)), tensor.Float32, tensor.Shape{4, outputs})
	return b.Graph()
}

// write puts a file into a folder and returns its path.
func write(t *testing.T, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func options(t *testing.T, source, more string) (o dataset.Options) {
	t.Helper()
	if err := json.Unmarshal([]byte(fmt.Sprintf(`{"source":%q%s}`, source, more)), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func of(t *testing.T, o dataset.Options, g *graph.Graph, objective dataset.Objective) (*dataset.Dataset, error) {
	t.Helper()
	if err := o.Check(); err != nil {
		return nil, err
	}
	h, w := dataset.ImageSize(g)
	table, err := o.Read([]string{filepath.Dir(o.Source)}, h, w)
	if err != nil {
		return nil, err
	}
	e, err := o.OpenEncoder([]string{filepath.Dir(o.Source)})
	if err != nil {
		return nil, err
	}
	return o.Make(table, e, g, objective)
}

func must(t *testing.T, d *dataset.Dataset, err error) *dataset.Dataset {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// trains fails unless the dataset can be trained, and its losses are numbers that fall.
func trains(t *testing.T, d *dataset.Dataset) {
	t.Helper()
	r := train.Recipe{
		Fields: d.Fields, Loss: d.Objective.Name, LossOptions: d.Objective.LossOptions,
		Optimizer: "adam", Rate: train.Rate{LearningRate: 0.05}, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-6, Batch: 4, Augment: d.Augment,
	}
	tr, err := train.New(d.Model, r, d.Training.Shape)
	if err != nil {
		t.Fatal(err)
	}
	s, first, last := tr.Start, float32(0), float32(0)
	order := record.Order{Seed: 1, Records: d.Training.Shape[0], Shards: 1, Batch: 4}
	for step := range 60 {
		if s, err = tr.Program.Run(graph.Inputs{States: []*graph.State{s}, Data: d.Training, Rows: order.Rows(0, step)}, graph.Reference, nil); err != nil {
			t.Fatal(err)
		}
		loss := tensor.Of[float32](s.Find("loss"))[0]
		if step < 6 {
			first += loss / 6
		} else if step >= 54 {
			last += loss / 6
		}
	}
	if !(last < first) {
		t.Errorf("%s: the loss went from %v to %v", d.Objective.Name, first, last)
	}
	if _, err := tr.Evaluate(d.HeldOut.Shape); err != nil {
		t.Error(err)
	}
}

func unpack(t *testing.T, d *dataset.Dataset, records *tensor.Tensor, field string) *tensor.Tensor {
	t.Helper()
	v, err := d.Fields.Unpack(records, field)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTablesBecomeRecords(t *testing.T) {
	source := write(t, t.TempDir(), "flowers.csv", []byte(flowers()))
	o := options(t, source, `,"target":"kind","ignore":["id","plot"],"missing":"median","heldOut":{"share":0.2,"stratify":true}`)
	d, err := of(t, o, mlp(4, 3, "features"), dataset.Objective{})
	d = must(t, d, err)
	if d.Objective.Name != "cross-entropy" || !slices.Equal(d.Schema.Target.Classes, []string{"lily", "rose", "tulip"}) {
		t.Errorf("loss %q, classes %q", d.Objective.Name, d.Schema.Target.Classes)
	}
	var features []string
	for _, c := range d.Schema.Inputs[0].Columns {
		if c.Category != nil {
			c.Name += " " + *c.Category
		}
		features = append(features, c.Name)
	}
	if !slices.Equal(features, []string{"length", "width", "colour blue", "colour red"}) {
		t.Errorf("features %q", features)
	}
	if n, m := d.Training.Shape[0], d.HeldOut.Shape[0]; n != 24 || m != 6 {
		t.Fatalf("%d records to train on, %d held out", n, m)
	}
	var each [3]int
	for _, k := range tensor.Of[int32](unpack(t, d, d.HeldOut, "target")) {
		each[k]++
	}
	if each != [3]int{2, 2, 2} {
		t.Errorf("held out are %v of the classes", each)
	}
	seen := map[float32]bool{}
	for _, records := range []*tensor.Tensor{d.Training, d.HeldOut} {
		x := tensor.Of[float32](unpack(t, d, records, "features"))
		for i := 0; i < len(x); i += 4 {
			if seen[x[i]] || x[i+2]+x[i+3] != 1 || x[i+1] != x[i+1] {
				t.Errorf("features %v", x[i:i+4])
			}
			seen[x[i]] = true
		}
	}
	trains(t, d)
}

// What goes into the first operator of the consumer's has mean 0 and deviation 1 over the training records.
func TestNumbersAreNormalisedInTheModel(t *testing.T) {
	source := write(t, t.TempDir(), "flowers.csv", []byte(flowers()))
	o := options(t, source, `,"target":"length","features":["width","id"],"missing":"mean"`)
	d, err := of(t, o, mlp(2, 1, "x"), dataset.Objective{})
	d = must(t, d, err)
	if d.Objective.Name != "squared-error" {
		t.Fatalf("loss %q", d.Objective.Name)
	}
	g := *d.Model
	for _, n := range g.Nodes {
		if n.Op == "MatMul" {
			g.Outputs = []graph.Value{{Name: n.Inputs[0], Type: tensor.Float32}}
		}
	}
	x := unpack(t, d, d.Training, "x")
	g.Inputs = []graph.Value{{Name: "x", Type: tensor.Float32, Shape: x.Shape}}
	out := apply(t, &g, x)
	for c := range 2 {
		var sum, squares float64
		n := float64(x.Shape[0])
		for r := range x.Shape[0] {
			v := float64(tensor.Of[float32](out)[2*r+c])
			sum, squares = sum+v, squares+v*v
		}
		if math.Abs(sum/n) > 1e-5 || math.Abs(squares/n-1) > 1e-5 {
			t.Errorf("feature %d has mean %v and mean square %v", c, sum/n, squares/n)
		}
	}
	if names := []string{d.Model.Inputs[0].Name, d.Model.Consts[0].Name}; !slices.Equal(names, []string{"x", "w"}) || len(d.Model.Consts) != 1 {
		t.Errorf("the model has %q: its names are the consumer's", names)
	}
	trains(t, d)
}

// A model takes NaN where a value is missing, and replaces it as in training, by what was learnt there. Of a text all columns are NaN.
func TestModelsReplaceWhatIsMissing(t *testing.T) {
	source := write(t, t.TempDir(), "flowers.csv", []byte(flowers()))
	nan := tensor.F32(float32(math.NaN()))
	for name, more := range map[string]string{"scaled": "", "as they are": `,"normalize":"none"`} {
		t.Run(name, func(t *testing.T) {
			d, err := of(t, options(t, source, `,"target":"kind","ignore":["id","plot"],"missing":"median"`+more), mlp(4, 3, "features"), dataset.Objective{})
			d = must(t, d, err)
			var learnt float32
			for r := range slices.Chunk(tensor.Of[float32](unpack(t, d, d.Training, "features")), 4) {
				if r[0] == 3.5 || r[0] == 13.5 { // whose width is missing
					learnt = r[1]
				}
			}
			whole := tensor.Must(tensor.From(tensor.Shape{4, 4}, []float32{1, learnt, 1, 0, 1, 1.5, 1, 0, 2, 1.5, 0, 1, 2, 3, 1, 0}))
			lacking := whole.Clone()
			lacking.Set(1, nan)
			for i := range 2 {
				lacking.Set(4+2+i, nan)
			}
			want, got := apply(t, d.Model, whole), apply(t, d.Model, lacking)
			if !got.Equal(want) {
				t.Errorf("%v of what is missing, want %v", tensor.Of[float32](got), tensor.Of[float32](want))
			}
		})
	}
	o := options(t, source, `,"target":"length","features":["width"],"missing":"mean"`)
	d, err := of(t, o, mlp(1, 1, "width"), dataset.Objective{})
	d = must(t, d, err)
	x := tensor.Must(tensor.New(tensor.Float32, d.Model.Inputs[0].Shape))
	x.Set(2, nan)
	known := tensor.Must(tensor.New(tensor.Float32, x.Shape))
	for _, v := range tensor.Of[float32](unpack(t, d, d.Training, "width")) {
		if twice := float64(v) * 2; twice != math.Trunc(twice) { // no other record says so: it is the mean
			known.Set(2, tensor.F32(v))
		}
	}
	if got, want := apply(t, d.Model, x), apply(t, d.Model, known); !got.Equal(want) {
		t.Errorf("an input of one column gives %v, want %v", tensor.Of[float32](got), tensor.Of[float32](want))
	}
}

func apply(t *testing.T, g *graph.Graph, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	in := graph.Slot{Name: g.Inputs[0].Name, Type: x.Type, Shape: x.Shape}
	p, err := typed.Program(lower.Binding{
		Groups: 1, Slots: []graph.Slot{in}, Inputs: []graph.Ref{{Kind: graph.RefSlot}}, Outputs: []int{0},
		Results: []graph.Slot{{Name: "y", Type: typed.Outputs[0].Type, Shape: typed.Outputs[0].Shape}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Run(graph.Inputs{States: []*graph.State{{Slots: []graph.Slot{in}, Tensors: []*tensor.Tensor{x}}}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Tensors[0]
}

func TestSplits(t *testing.T) {
	source := write(t, t.TempDir(), "flowers.csv", []byte(flowers()))
	ids := func(more string) (training, heldOut []int) {
		t.Helper()
		o := options(t, source, `,"target":"kind","features":["id"],"normalize":"none"`+more)
		d, err := of(t, o, mlp(1, 3, "x"), dataset.Objective{})
		d = must(t, d, err)
		for records, to := range map[*tensor.Tensor]*[]int{d.Training: &training, d.HeldOut: &heldOut} {
			for _, x := range tensor.Of[float32](unpack(t, d, records, "x")) {
				*to = append(*to, int(x))
			}
		}
		return training, heldOut
	}
	_, plain := ids("")
	_, same := ids(`,"heldOut":{"seed":0}`)
	_, other := ids(`,"heldOut":{"seed":1}`)
	if len(plain) != 3 || !slices.Equal(plain, same) || slices.Equal(plain, other) {
		t.Errorf("held out are %v, %v again, %v by another seed", plain, same, other)
	}
	training, heldOut := ids(`,"heldOut":{"share":0.3,"group":"plot"}`)
	for _, i := range training {
		for _, k := range heldOut {
			if i/6 == k/6 {
				t.Errorf("records %d and %d of one group are on both sides", i, k)
			}
		}
	}
	if len(heldOut) != 12 {
		t.Errorf("%d records are held out", len(heldOut))
	}
	training, given := ids(`,"heldOut":{"column":"plot","value":"p2"}`)
	if slices.Sort(given); !slices.Equal(given, []int{12, 13, 14, 15, 16, 17}) {
		t.Errorf("held out are %v", given)
	}
	if slices.IsSorted(training) {
		t.Errorf("training records %v are in the order of their source, which may be sorted: shards would differ", training)
	}
}

func TestLossesFitTargets(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("x,real,whole,truth,text\n")
	for i := range 20 {
		fmt.Fprintf(&b, "%d,%d.25,%d,%v,%s\n", i%6, i, i%4, i%6 > 2, []string{"no", "yes"}[i%6/3])
	}
	source := write(t, dir, "t.csv", []byte(b.String()))
	for _, c := range []struct {
		target  string
		outputs int
		name    string
		want    string
	}{
		{"real", 1, "", "squared-error"}, {"whole", 1, "", "squared-error"}, {"whole", 4, "", "cross-entropy"}, {"truth", 1, "", "binary-cross-entropy"},
		{"truth", 2, "", "cross-entropy"}, {"text", 2, "", "cross-entropy"}, {"text", 1, "binary-cross-entropy", "binary-cross-entropy"}, {"real", 1, "huber", "huber"},
	} {
		o := options(t, source, fmt.Sprintf(`,"target":%q,"features":["x"]`, c.target))
		d, err := of(t, o, mlp(1, c.outputs, "x"), dataset.Objective{Name: c.name})
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		if d.Objective.Name != c.want {
			t.Errorf("%s, %d outputs: loss %q, want %q", c.target, c.outputs, d.Objective.Name, c.want)
		}
		trains(t, d)
	}
	o := options(t, source, `,"target":"whole","features":["x"]`)
	d, err := of(t, o, mlp(1, 4, "x"), dataset.Objective{Balanced: true})
	if d = must(t, d, err); len(d.Objective.Weights) != 4 {
		t.Errorf("weights %v", d.Objective.Weights)
	}
}

func picture(t *testing.T, size int, c color.Color) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, size, size))
	for i := range size * size {
		m.Set(i%size, i/size, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cnn is a convolution over images with their channels first, and a mean over all places.
func cnn(size, classes int) *graph.Graph {
	b := graph.NewBuilder("cnn")
	x := b.Input("image", tensor.Float32, tensor.Shape{4, 3, size, size})
	w := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{classes, 3, 1, 1}))
	for i := range w.Len() {
		w.Set(i, tensor.F32(float32(i%3)/8))
	}
	x = b.Op("Flatten", b.Op("GlobalAveragePool", b.Op("Conv", x, b.Init("conv.weight", w))))
	b.Output(x, tensor.Float32, tensor.Shape{4, classes})
	return b.Graph()
}

func TestFoldersOfImagesBecomeRecords(t *testing.T) {
	dir := t.TempDir()
	for i := range 12 {
		class, c := "red", color.RGBA{200 + uint8(i), 10, 10, 255}
		if i%2 == 1 {
			class, c = "blue", color.RGBA{10, 10, 200 + uint8(i), 255}
		}
		write(t, dir, fmt.Sprintf("photos/%s/%d.png", class, i), picture(t, 8+i%3, c))
	}
	o := options(t, filepath.Join(dir, "photos"), `,"heldOut":{"share":0.25,"stratify":true}`)
	d, err := of(t, o, cnn(8, 2), dataset.Objective{})
	d = must(t, d, err)
	if in := d.Model.Inputs[0]; in.Type != tensor.Uint8 || !in.Shape.Equal(tensor.Shape{4, 8, 8, 3}) {
		t.Errorf("the model reads %v%v, want pixels as they are", in.Type, in.Shape)
	}
	if f, _ := d.Fields.Find("image"); f.Type != tensor.Uint8 {
		t.Errorf("images are %v", f.Type)
	}
	trains(t, d)
	flat, err := of(t, options(t, filepath.Join(dir, "photos"), `,"size":[4,4]`), mlp(48, 2, "pixels"), dataset.Objective{})
	trains(t, must(t, flat, err))
}

func TestImagesAreAugmented(t *testing.T) {
	dir := t.TempDir()
	for i := range 12 {
		write(t, dir, fmt.Sprintf("photos/%d/%d.png", i%2, i), picture(t, 8, color.RGBA{uint8(20 * i), 10, 10, 255}))
	}
	o := options(t, filepath.Join(dir, "photos"), `,"augment":[{"shift":2},{"flip":0.5},{"noise":3}]`)
	d, err := of(t, o, cnn(8, 2), dataset.Objective{})
	d = must(t, d, err)
	image := []string{"image"}
	want := []train.Augment{ // pixels are [height width channels]
		{Kind: "shift", Fields: image, Axis: 3, Amount: 2}, {Kind: "shift", Fields: image, Axis: 2, Amount: 2},
		{Kind: "flip", Fields: image, Axis: 2, Amount: 0.5}, {Kind: "noise", Fields: image, Amount: 3},
	}
	if !reflect.DeepEqual(d.Augment, want) {
		t.Errorf("augmented by %+v, want %+v", d.Augment, want)
	}
	trains(t, d)
	table := write(t, dir, "flowers.csv", []byte(flowers()))
	for _, c := range []struct{ source, augment, want string }{
		{table, `[{"flip":0.5}]`, "no images"},
		{filepath.Join(dir, "photos"), `[{"flip":0.5,"noise":1}]`, "each item is one of"},
		{filepath.Join(dir, "photos"), `[{}]`, "each item is one of"},
	} {
		o := options(t, c.source, `,"target":"kind","features":["length"],"augment":`+c.augment)
		if c.source != table {
			o.Target, o.Features = "", nil
		}
		err := o.Check()
		if err == nil {
			_, err = of(t, o, mlp(1, 3, "x"), dataset.Objective{})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.augment, err, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	source := write(t, dir, "flowers.csv", []byte(flowers()))
	write(t, dir, "photos/a/1.png", picture(t, 4, color.Black))
	write(t, dir, "photos/b/2.png", picture(t, 4, color.White))
	outside := write(t, t.TempDir(), "other.csv", []byte(flowers()))
	for want, c := range map[string]struct {
		source, more string
		model        *graph.Graph
		loss         string
	}{
		"data.source is missing":      {"", ``, mlp(4, 3, "x"), ""},
		"data.target is missing":      {source, `,"missing":"mean"`, mlp(4, 3, "x"), ""},
		`no column is called "kin"`:   {source, `,"target":"kin"`, mlp(4, 3, "x"), ""},
		"has no value in 3 records":   {source, `,"target":"kind"`, mlp(4, 3, "x"), ""},
		`"width" has no value in 3`:   {source, `,"target":"width"`, mlp(4, 3, "x"), ""},
		"--set inputs=10":             {source, `,"target":"kind","missing":"mode"`, mlp(4, 3, "x"), ""},
		"--set classes=3":             {source, `,"target":"kind","features":["length"]`, mlp(1, 2, "x"), ""},
		"the end of its name is none": {write(t, dir, "x.pdf", nil), ``, mlp(4, 3, "x"), ""},
		"data.normalize is":           {source, `,"normalize":"twice"`, mlp(4, 3, "x"), ""},
		"data.missing is":             {source, `,"missing":"guess"`, mlp(4, 3, "x"), ""},
		"share is 2":                  {source, `,"heldOut":{"share":2}`, mlp(4, 3, "x"), ""},
		"column and value belong":     {source, `,"heldOut":{"column":"plot"}`, mlp(4, 3, "x"), ""},
		"0 held out":                  {source, `,"target":"kind","heldOut":{"column":"plot","value":"p9"}`, mlp(4, 3, "x"), ""},
		"takes truths":                {source, `,"target":"length","features":["id"]`, mlp(1, 1, "x"), "binary-cross-entropy"},
		"no kind of column":           {source, `,"target":"kind","kinds":{"id":"colour"}`, mlp(4, 3, "x"), ""},
		"but the images have 4 × 4":   {filepath.Join(dir, "photos"), `,"target":"label","heldOut":{"share":0.5}`, mlp(5, 3, "x"), ""},
		"outside the folders":         {"", outside, mlp(4, 3, "x"), ""},
	} {
		o := options(t, c.source, "")
		var err error
		if c.more == outside {
			_, err = (&dataset.Options{Source: outside}).Read([]string{dir}, 0, 0)
		} else {
			if err = json.Unmarshal([]byte(fmt.Sprintf(`{"source":%q%s}`, c.source, c.more)), &o); err == nil {
				_, err = of(t, o, c.model, dataset.Objective{Name: c.loss})
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// Files of a folder are one source, and all lie in folders that are allowed.
func TestFoldersOfFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "data/train-1.csv", []byte("x,y\n1,2\n"))
	write(t, dir, "data/train-2.csv", []byte("x,y\n3,4\n"))
	write(t, dir, "data/test.csv", []byte("x\n3\n"))
	write(t, dir, "linked/train-1.csv", []byte("x,y\n1,2\n"))
	other := write(t, t.TempDir(), "b.csv", []byte("x,y\n3,4\n"))
	if err := os.Symlink(other, filepath.Join(dir, "linked", "train-2.csv")); err != nil {
		t.Skip(err)
	}
	for source, want := range map[string]string{
		"data": "", "data/train-*.csv": "", "data/*.csv": "part 2 of 3 has 2 columns", "data/x*.csv": "has no file", "linked": "outside the folders", "none/*.csv": "no such file",
	} {
		o := dataset.Options{Source: filepath.Join(dir, source)}
		got, err := o.Read([]string{dir}, 0, 0)
		if want == "" && err == nil && got.Records == 2 && got.Columns[1].Value(1) == "4" {
			continue
		}
		if want == "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", source, got, err, want)
		}
	}
}
