package dataset_test

import (
	"fmt"
	"image/color"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/node/consume/dataset"
)

// base is what an earlier order leaves behind.
func base(d *dataset.Dataset) *dataset.Base {
	return &dataset.Base{Model: d.Model, Schema: &d.Schema, Loss: d.Objective.Name, Output: d.Objective.Output, Tokenizer: d.Tokenizer}
}

// goOn makes a dataset with which an earlier order goes on.
func goOn(t *testing.T, o dataset.Options, b *dataset.Base, objective dataset.Objective) (*dataset.Dataset, error) {
	t.Helper()
	if err := o.Check(); err != nil {
		return nil, err
	}
	h, w := dataset.ImageSize(b.Model)
	folders := []string{filepath.Dir(o.Source)}
	table, err := o.Read(folders, h, w)
	if err != nil {
		return nil, err
	}
	e, err := b.OpenEncoder(&o, folders)
	if err != nil {
		return nil, err
	}
	return o.GoOn(table, e, b, objective)
}

// first returns the first record of a field.
func first(t *testing.T, d *dataset.Dataset, field string) *tensor.Tensor {
	t.Helper()
	v := unpack(t, d, d.Training, field)
	return tensor.Must(v.Part(0, v.Type, v.Shape[1:]))
}

const more = `,"ignore":["id","plot"],"missing":"median"`

// Other records of the same columns enter as the earlier order's did: by its means, in its columns of texts and by its classes,
// whatever of them the new records hold.
func TestOtherRecordsEnterAsThoseOfTheBase(t *testing.T) {
	dir := t.TempDir()
	d, err := of(t, options(t, write(t, dir, "flowers.csv", []byte(flowers())), more+`,"target":"kind"`), mlp(4, 3, "features"), dataset.Objective{})
	was := must(t, d, err)
	// Columns in another order, one colour, two kinds, and numbers far from those before.
	var b strings.Builder
	b.WriteString("kind,colour,width,length,id,plot\n")
	for i := range 12 {
		fmt.Fprintf(&b, "%s,blue,1000,%d,%d,x\n", []string{"tulip", "lily"}[i%2], 5000+i, i)
	}
	d, err = goOn(t, options(t, write(t, dir, "more.csv", []byte(b.String())), more), base(was), dataset.Objective{})
	got := must(t, d, err)
	if got.Model != was.Model || !reflect.DeepEqual(got.Schema, was.Schema) || !reflect.DeepEqual(got.Fields, was.Fields) || got.Objective.Name != "cross-entropy" {
		t.Errorf("the model, the schema or the fields are others: %+v", got.Schema)
	}
	x := tensor.Of[float32](first(t, got, "features"))
	if x[0] < 5000 || x[1] != 1000 || x[2] != 1 || x[3] != 0 { // length, width, colour blue and red
		t.Errorf("features %v", x)
	}
	for i, k := range tensor.Of[int32](unpack(t, got, got.Training, "target")) {
		if name := was.Schema.Target.Classes[k]; name != "tulip" && name != "lily" {
			t.Errorf("record %d is a %s", i, name)
		}
	}
	trains(t, got)
}

func TestNumbersArePredictedInTheUnitOfTheBase(t *testing.T) {
	dir := t.TempDir()
	d, err := of(t, options(t, write(t, dir, "flowers.csv", []byte(flowers())), `,"ignore":["id","plot","kind","colour"],"missing":"mean","target":"length"`), mlp(1, 1, "features"), dataset.Objective{})
	was := must(t, d, err)
	d, err = goOn(t, options(t, write(t, dir, "more.csv", []byte("width,length\n1,700\n2,800\n3,900\n4,950\n")), ""), base(was), dataset.Objective{Name: "huber"})
	got := must(t, d, err)
	if y := tensor.Of[float32](first(t, got, "target")); got.Model != was.Model || y[0] < 700 || got.Objective.Name != "huber" || got.Schema.Target.Name != "length" {
		t.Errorf("target %v by %s", y, got.Objective.Name)
	}
}

func TestColumnsAndClassesThatTheBaseDoesNotKnowAreRefused(t *testing.T) {
	dir := t.TempDir()
	d, err := of(t, options(t, write(t, dir, "flowers.csv", []byte(flowers())), more+`,"target":"kind"`), mlp(4, 3, "features"), dataset.Objective{})
	was := base(must(t, d, err))
	const head = "length,width,colour,kind\n1,2,red,rose\n2,3,blue,lily\n"
	for _, c := range []struct{ name, csv, options, want string }{
		{"a colour", head + "3,4,green,lily\n", "", `says "green" in record 3, which the earlier order did not know; it knew ["blue" "red"]`},
		{"a class", head + "3,4,red,daisy\n", "", `says "daisy"`},
		{"a column", "length,width,colour,kind,smell\n1,2,red,rose,1\n2,3,blue,lily,2\n", "", `did not read the columns ["smell"]: name them in data.ignore`},
		{"no column", "length,colour,kind\n1,red,rose\n2,blue,lily\n", "", `read a column "width"`},
		{"no target", "length,width,colour\n1,2,red\n2,3,blue\n", "", `data.target`},
		{"texts for numbers", "length,width,colour,kind\n1,wide,red,rose\n2,wide,blue,lily\n3,wide,blue,lily\n4,wide,blue,lily\n", "", `holds texts, and numbers in the earlier order`},
		{"missing numbers", "length,width,colour,kind\n1,,red,rose\n2,3,blue,lily\n", "", `data.missing`},
		{"normalize", head, `,"normalize":"none"`, `data.normalize`},
		{"a feature", "length,width,colour,kind,smell\n1,2,red,rose,1\n2,3,blue,lily,2\n", `,"features":["length","smell"]`, `["smell"]`},
		{"a tokenizer", head, `,"text":{"tokenizer":"bytes"}`, `data.text.tokenizer is another`},
	} {
		_, err := goOn(t, options(t, write(t, dir, "more.csv", []byte(c.csv)), c.options), was, dataset.Objective{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	_, err = goOn(t, options(t, write(t, dir, "more.csv", []byte("length,width,colour,kind,smell\n1,2,red,rose,1\n2,3,blue,lily,2\n")), `,"features":["length","width","colour"]`), was, dataset.Objective{})
	if err != nil {
		t.Errorf("features of the base beside others: %v", err)
	}
}

// Images are read in the size and the colors of those before, though the model takes bytes by now.
func TestOtherImagesGoOn(t *testing.T) {
	dir := t.TempDir()
	photos := func(name string, size int) string {
		for i := range 6 {
			write(t, dir, fmt.Sprintf("%s/%d/%d.png", name, i%2, i), picture(t, size, color.RGBA{uint8(40 * i), 10, 10, 255}))
		}
		return filepath.Join(dir, name)
	}
	d, err := of(t, options(t, photos("one", 6), ""), cnn(6, 2), dataset.Objective{})
	was := must(t, d, err)
	d, err = goOn(t, options(t, photos("two", 12), `,"augment":[{"flip":0.5}]`), base(was), dataset.Objective{})
	if got := must(t, d, err); got.Model != was.Model || !reflect.DeepEqual(got.Fields, was.Fields) || len(got.Augment) != 1 {
		t.Errorf("fields %v, before %v", got.Fields, was.Fields)
	}
	if _, err = goOn(t, options(t, filepath.Join(dir, "two"), `,"size":[3,3]`), base(was), dataset.Objective{}); err == nil || !strings.Contains(err.Error(), "set data.size") {
		t.Errorf("other sizes: %v", err)
	}
}

// A language model goes on with chats, or with preferences, by its own tokenizer, and after a text, too.
func TestTextsGoOnWithTheTokenizerOfTheBase(t *testing.T) {
	dir := t.TempDir()
	texts := write(t, dir, "texts.jsonl", []byte(strings.Repeat(`{"text": "some text of a few words"}`+"\n", 12)))
	d, err := of(t, options(t, texts, `,"text":{"tokenizer":"bytes","long":"split","pack":true}`), language(8), dataset.Objective{})
	was := must(t, d, err)
	pairs := write(t, dir, "pairs.jsonl", []byte(strings.Repeat(`{"prompt": "a", "chosen": "b", "rejected": "c"}`+"\n", 12)))
	afterText := base(was)
	afterText.Schema = nil
	for _, from := range []*dataset.Base{base(was), afterText} {
		for loss, o := range map[string]dataset.Options{
			"": options(t, texts, `,"text":{"long":"split","pack":true}`), "preference": options(t, pairs, `,"text":{"long":"truncate"}`),
		} {
			d, err := goOn(t, o, from, dataset.Objective{Name: loss})
			if got := must(t, d, err); got.Model != was.Model || string(got.Tokenizer) != string(was.Tokenizer) {
				t.Errorf("loss %q: the model or the tokenizer is another", loss)
			}
		}
	}
	_, err = goOn(t, options(t, write(t, dir, "flowers.csv", []byte(flowers())), more+`,"target":"kind"`), afterText, dataset.Objective{Name: "cross-entropy"})
	if err == nil || !strings.Contains(err.Error(), "trained on a text, and not on columns") {
		t.Errorf("a table after a text: %v", err)
	}
	other := base(was)
	other.Tokenizer = []byte("{}")
	if _, err := goOn(t, options(t, texts, `,"text":{"tokenizer":"bytes"}`), other, dataset.Objective{}); err == nil || !strings.Contains(err.Error(), "leave it out, or name the same") {
		t.Errorf("another tokenizer: %v", err)
	}
}

func TestTextsAmongColumnsGoOn(t *testing.T) {
	source := options(t, write(t, t.TempDir(), "reviews.jsonl", []byte(strings.Repeat(`{"input_ids": "good", "label": "yes"}`+"\n"+`{"input_ids": "bad", "label": "no"}`+"\n", 6))), `,"text":{"tokenizer":"bytes","long":"truncate"}`)
	d, err := of(t, source, classifier(6), dataset.Objective{})
	was := must(t, d, err)
	d, err = goOn(t, source, base(was), dataset.Objective{})
	if got := must(t, d, err); got.Model != was.Model || !got.Training.Equal(was.Training) || !reflect.DeepEqual(got.Schema, was.Schema) {
		t.Errorf("the same texts are other records")
	}
}

// What a schema leaves open is not guessed: the numbers of a category that an input of its own read.
func TestNumbersOfTextsAreNotGuessed(t *testing.T) {
	b := graph.NewBuilder("embedding")
	x := b.Op("Gather", b.Init("w", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{2, 3}))), b.Input("colour", tensor.Int32, tensor.Shape{4}))
	b.Output(x, tensor.Float32, tensor.Shape{4, 3})
	was := &dataset.Base{Model: b.Graph(), Loss: "cross-entropy", Schema: &schema.Schema{
		Inputs: []schema.Input{{Name: "colour", Columns: []schema.Column{{Name: "colour"}}}}, Target: &schema.Target{Name: "kind", Classes: []string{"lily", "rose", "tulip"}},
	}}
	dir := t.TempDir()
	for csv, want := range map[string]string{
		flowers(): "does not say which number each had",
		"colour,kind\n1,rose\n0,lily\n1,lily\n0,lily\n0,lily\n": "",
	} {
		_, err := goOn(t, options(t, write(t, dir, "more.csv", []byte(csv)), `,"features":["colour"]`), was, dataset.Objective{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
