package dataset_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/node/consume/dataset"
)

// chatml shows who says what, and ends each message with a line.
const chatml = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"

// forgetful shows only the last question, and the reply to it.
const forgetful = "{% for m in messages[(-2 if messages[-1].role == 'assistant' else -1):] %}<{{ m.role }}>{{ m.content }}.{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"

// weights are a matrix of small numbers.
func weights(rows, columns int) *tensor.Tensor {
	w := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{rows, columns}))
	for i := range w.Len() {
		w.Set(i, tensor.F32(float32(i%7)/14-0.2))
	}
	return w
}

// language is a model of tokens [4 context] to logits over bytes. It reads what else is named and passes it over.
func language(context int, more ...string) *graph.Graph {
	b := graph.NewBuilder("language")
	x := b.Input("input_ids", tensor.Int64, tensor.Shape{4, context})
	y := b.With(graph.Int("axis", 0)).Op("Gather", b.Init("embedding", weights(256, 4)), x)
	for _, name := range more {
		in := b.Input(name, tensor.Int64, tensor.Shape{4, context})
		zero := b.Op("Mul", b.Cast(in, tensor.Float32), b.Const(tensor.Scalar[float32](0)))
		y = b.Op("Add", y, b.Op("Unsqueeze", zero, b.Const(tensor.Must(tensor.From(tensor.Shape{1}, []int64{2})))))
	}
	y = b.Op("MatMul", y, b.Init("head", weights(4, 256)))
	b.Output(y, tensor.Float32, tensor.Shape{4, context, 256})
	return b.Graph()
}

// classifier is a model of tokens [4 context] to two classes.
func classifier(context int) *graph.Graph {
	g := language(context, "attention_mask")
	b := graph.Extend(g)
	y := b.With(graph.Int("keepdims", 0)).Op("ReduceMean", g.Outputs[0].Name, b.Const(tensor.Must(tensor.From(tensor.Shape{1}, []int64{1}))))
	out := *b.Graph()
	b = graph.Extend(&out)
	y = b.Op("MatMul", y, b.Init("classes", weights(256, 2)))
	out = *b.Graph()
	out.Outputs = []graph.Value{{Name: y, Type: tensor.Float32, Shape: tensor.Shape{4, 2}}}
	return &out
}

// unpacked are the values of all fields of some records.
func unpacked(t *testing.T, d *dataset.Dataset, records *tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	out := map[string]*tensor.Tensor{}
	for _, f := range d.Fields {
		v, err := d.Fields.Unpack(records, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = v
	}
	return out
}

// shown writes the records of a dataset, each as its tokens, of which those that are learnt stand twice.
func shown(t *testing.T, d *dataset.Dataset, records *tensor.Tensor, tokens, mask string) (all []string) {
	t.Helper()
	fields := unpacked(t, d, records)
	of := fields[tokens]
	for i := range of.Shape[0] {
		var b strings.Builder
		for j := range of.Shape[1] {
			c := string(rune(of.At(i*of.Shape[1] + j)))
			if b.WriteString(c); fields[mask] != nil && fields[mask].At(i*of.Shape[1]+j) == 1 {
				b.WriteString(c)
			}
		}
		all = append(all, strings.TrimRight(b.String(), "\x00"))
	}
	return all
}

// lines are so many records, of which only the number differs.
func lines(n int, record string) []byte {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(record, "#", fmt.Sprint(i%10)) + "\n")
	}
	return []byte(b.String())
}

func TestTextsBecomeTokens(t *testing.T) {
	const chats = `{"messages": [{"role": "user", "content": "a#"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}`
	for _, c := range []struct {
		name, file string
		records    []byte
		more       string
		context    int
		loss       string
		want       string // one of the records
	}{
		{"a chat", "d.jsonl", lines(8, chats), `"tokenizer":"bytes","template":"%s/chatml.jinja"`, 63, "", "<user>a3\n<assistant>bb\n<user>c\n<assistant>dd\n"},
		{"all of it", "d.jsonl", lines(8, chats), `"tokenizer":"bytes","template":"%s/chatml.jinja","learn":"all"`, 43, "", "<uusseerr>>aa33\n\n<<aassssiissttaanntt>>bb\n\n<<uusseerr>>cc\n\n<<aassssiissttaanntt>>dd\n\n"},
		{"replies that stand alone", "d.jsonl", lines(8, chats), `"tokenizer":"bytes","template":"%s/forgetful.jinja"`, 31, "", "<user>c.<assistant>dd.."},
		{"packed", "d.jsonl", lines(8, chats), `"tokenizer":"bytes","template":"%s/forgetful.jinja","pack":true`, 47, "", "<user>a3.<assistant>bb..<user>c.<assistant>dd.."},
		{"texts", "d.jsonl", lines(8, `{"text": "abc#"}`), `"tokenizer":"bytes"`, 7, "", "abbcc33"},
		{"texts that are cut", "d.jsonl", lines(8, `{"other": 1, "story": "abc#"}`), `"tokenizer":"bytes","long":"truncate"`, 2, "", "abc"},
		{"texts that go on", "d.csv", append([]byte("story\n"), lines(8, "abc#de")...), `"tokenizer":"bytes","long":"split"`, 2, "", "c33dd"},
		{"texts that end", "d.jsonl", lines(8, `{"text": "abc#"}`), `"tokenizer":"bytes","end":"!"`, 6, "", "abbcc33!!!!"},
		{"completions", "d.jsonl", lines(8, `{"prompt": "ab#", "completion": "cd"}`), `"tokenizer":"bytes","end":"!"`, 7, "", "ab3ccdd!!!!"},
		{"tokens", "d.jsonl", lines(8, `{"tokens": [65, 66, 5#]}`), "", 2, "", "AB5"},
		{"pairs of texts", "d.jsonl", lines(8, `{"prompt": "ab#", "chosen": "c", "rejected": "d"}`), `"tokenizer":"bytes"`, 7, "preference", "ab3cc"},
		{"pairs of chats", "d.jsonl", lines(8, `{"chosen": [{"role":"user","content":"a#"},{"role":"assistant","content":"b"}], "rejected": [{"role":"user","content":"a"},{"role":"assistant","content":"c"}]}`), `"tokenizer":"bytes","template":"%s/chatml.jinja"`, 31, "preference", "<user>a3\n<assistant>bb\n"},
	} {
		dir := t.TempDir()
		write(t, dir, "chatml.jinja", []byte(chatml))
		write(t, dir, "forgetful.jinja", []byte(forgetful))
		more := strings.ReplaceAll(c.more, "%s", dir)
		o := options(t, write(t, dir, c.file, c.records), `,"text":{`+more+`}`)
		d, err := of(t, o, language(c.context), dataset.Objective{Name: c.loss})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		tokens, mask := "input_ids", "loss_mask"
		if c.loss != "" {
			tokens, mask = "chosen", "chosen_mask"
		}
		all := append(shown(t, d, d.Training, tokens, mask), shown(t, d, d.HeldOut, tokens, mask)...)
		for _, got := range all {
			if got == c.want {
				c.want = ""
			}
		}
		if c.want != "" {
			t.Errorf("%s: no record is %q, but %q", c.name, c.want, all)
		}
		if c.context == 7 { // which takes less time
			trains(t, d)
		}
		if want := strings.Contains(c.more, "tokenizer"); want != (d.Tokenizer != nil) {
			t.Errorf("%s: the tokenizer is not what it should be", c.name)
		}
	}
}

func TestWhatModelsReadBesideTokens(t *testing.T) {
	dir := t.TempDir()
	o := options(t, write(t, dir, "d.jsonl", lines(8, `{"text": "ab"}`)), `,"text":{"tokenizer":"bytes","pack":true}`)
	d, err := of(t, o, language(4, "attention_mask", "position_ids", "segment_ids", "token_type_ids"), dataset.Objective{})
	d = must(t, d, err)
	fields := unpacked(t, d, d.Training)
	for name, want := range map[string]string{"attention_mask": "[1 1 1 1]", "position_ids": "[0 1 0 1]", "segment_ids": "[1 1 2 2]", "token_type_ids": "[0 0 0 0]", "loss_mask": "[0 1 0 1 0]"} {
		var got []int64
		for i := range fields[name].Shape[1] {
			got = append(got, int64(fields[name].At(i)))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}

// A text is one input among others, and a label another column.
func TestTextsAreClassified(t *testing.T) {
	dir := t.TempDir()
	o := options(t, write(t, dir, "d.csv", append([]byte("review,stars\n"), lines(24, "good #,1")...)), `,"target":"stars","text":{"tokenizer":"bytes"}`)
	d, err := of(t, o, classifier(9), dataset.Objective{Name: "cross-entropy"})
	d = must(t, d, err)
	if all := shown(t, d, d.Training, "input_ids", "attention_mask"); !strings.HasPrefix(all[0], "ggoooodd  ") {
		t.Errorf("records are %q", all)
	}
	trains(t, d)
}

func TestTextsAreRefused(t *testing.T) {
	for want, c := range map[string]struct {
		records []byte
		more    string
	}{
		"by a tokenizer":                     {lines(8, `{"text": "ab#"}`), ``},
		": column \"messages\": messages: ":  {lines(8, `{"messages": [{"content": "ab"}]}`), `"tokenizer":"bytes","template":"%s/chatml.jinja"`},
		"chats want a template":              {lines(8, `{"messages": [{"role": "user", "content": "ab"}]}`), `"tokenizer":"bytes"`},
		"no message is the assistant's":      {lines(8, `{"messages": [{"role": "user", "content": "ab"}]}`), `"tokenizer":"bytes","template":"%s/chatml.jinja"`},
		"column that holds texts":            {lines(8, `{"a": "b", "c": "d"}`), `"tokenizer":"bytes"`},
		"it has 4 tokens, a row 3":           {lines(8, `{"text": "abc#"}`), `"tokenizer":"bytes"`},
		"long is \"x\"":                      {lines(8, `{"text": "abc#"}`), `"tokenizer":"bytes","long":"x"`},
		"is no token of the tokenizer":       {lines(8, `{"text": "abc#"}`), `"tokenizer":"bytes","end":"<eos>"`},
		"has token 999, but the model tells": {lines(8, `{"tokens": [999, 1, 2]}`), ``},
		"-1, which is no token":              {lines(8, `{"tokens": [-1, 1, 2]}`), ``},
		"says nothing":                       {[]byte("{\"text\": null}\n{\"text\": \"ab\"}\n"), `"tokenizer":"bytes"`},
		"both to be texts, or both chats":    {lines(8, `{"prompt": "a", "completion": [{}]}`), `"tokenizer":"bytes"`},
		"add --allow with its folder":        {lines(8, `{"text": "ab#"}`), `"tokenizer":"/etc/passwd"`},
		"name it in data.ignore":             {lines(8, `{"text": "ab#", "attention_mask": [1, 1]}`), `"tokenizer":"bytes"`},
		"messages, of at most":               {lines(2, `{"messages": [`+strings.Repeat(`{"role":"user","content":""},`, 1<<10)+`{"role":"assistant","content":""}]}`), `"tokenizer":"bytes","template":"%s/chatml.jinja"`},
	} {
		dir := t.TempDir()
		write(t, dir, "chatml.jinja", []byte(chatml))
		o := options(t, write(t, dir, "d.jsonl", c.records), `,"text":{`+strings.ReplaceAll(c.more, "%s", dir)+`}`)
		if _, err := of(t, o, language(2, "attention_mask"), dataset.Objective{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What is lost of texts is told; of several replies after a prompt the last one is learnt; a message of weight 0 is not.
func TestWhatIsNotLearnt(t *testing.T) {
	dir := t.TempDir()
	template := write(t, dir, "chatml.jinja", []byte(chatml))
	text := `,"text":{"tokenizer":"bytes","long":"truncate","template":"` + template + `"}`
	o := options(t, write(t, dir, "cut.jsonl", lines(10, `{"text": "abcdef#"}`)), text)
	d, err := of(t, o, language(3), dataset.Objective{})
	if d = must(t, d, err); d.Texts != 10 || d.Truncated != 10 || d.Dropped != 0 {
		t.Errorf("%d texts, %d cut, %d records left out", d.Texts, d.Truncated, d.Dropped)
	}
	for name, c := range map[string]struct{ record, want string }{
		"last":   {`{"prompt": [{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}], "completion": [{"role":"assistant","content":"d"}]}`, "<user>a\n<assistant>b\n<user>c\n<assistant>dd\n"},
		"weight": {`{"messages": [{"role":"developer","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b","weight":0},{"role":"user","content":"c"},{"role":"assistant","content":"d"}]}`, "<system>s\n<user>a\n<assistant>b\n<user>c\n<assistant>dd\n"},
	} {
		o := options(t, write(t, dir, name+".jsonl", lines(10, c.record)), text)
		d, err := of(t, o, language(63), dataset.Objective{})
		d = must(t, d, err)
		if got := shown(t, d, d.Training, "input_ids", "loss_mask")[0]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A folder in Hugging Face's layout says what ends a text, and gives the template.
func TestModelsFolders(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "model")
	write(t, folder, "tokenizer.json", tokenizer.OfBytes())
	write(t, folder, "tokenizer_config.json", []byte(`{"eos_token": "!"}`))
	o := options(t, write(t, dir, "d.jsonl", lines(10, `{"text": "ab#"}`)), `,"text":{"tokenizer":"`+folder+`"}`)
	d, err := of(t, o, language(5), dataset.Objective{})
	if got := shown(t, must(t, d, err), d.Training, "input_ids", "loss_mask")[0]; !strings.HasPrefix(got, "abb") || !strings.HasSuffix(got, "!!!") {
		t.Errorf("%q", got)
	}
	write(t, folder, "chat_template.jinja", []byte("{{ eos_token }}"+chatml))
	o = options(t, write(t, dir, "c.jsonl", lines(10, `{"messages": [{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`)), `,"text":{"tokenizer":"`+folder+`"}`)
	d, err = of(t, o, language(63), dataset.Objective{})
	if got := shown(t, must(t, d, err), d.Training, "input_ids", "loss_mask")[0]; !strings.HasPrefix(got, "!<user>a\n<assistant>bb\n!") {
		t.Errorf("%q", got)
	}
}

// A proposal can be made for texts of each form, and is what makes the dataset.
func TestLanguageModelsAreProposed(t *testing.T) {
	for _, c := range []struct {
		records, target, want string
	}{
		{`{"messages": [{"role": "user", "content": "a#"}, {"role": "assistant", "content": "b"}]}`, "messages", "chat_template.jinja"},
		{`{"prompt": "a#", "completion": "b"}`, "completion", "long: truncate"},
		{`{"text": "abcdefgh#"}`, "text", "long: split"},
	} {
		o := options(t, write(t, t.TempDir(), "d.jsonl", lines(40, c.records)), "")
		table, err := o.Read([]string{filepath.Dir(o.Source)}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.Propose(table, nil)
		if err != nil {
			t.Errorf("%s: %v", c.records, err)
			continue
		}
		order := p.Order("x", "model.onnx")
		if p.Architecture != "gpt" || p.Settings["vocabulary"] != "256" || p.Data.Target != c.target || !strings.Contains(order, c.want) || !strings.Contains(order, "pack: true") {
			t.Errorf("%s: %+v\n%s", c.records, p, order)
		}
	}
}

// Chats and texts of Parquet teach what those of lines of JSON do, in one file or in shards.
func TestTextsOfParquet(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "chatml.jinja", []byte(chatml))
	from := "../../../format/parquet/testdata/talk."
	lines, packed := read(t, from+"jsonl"), read(t, from+"parquet")
	half := bytes.Index(lines, []byte(`{"messages": [{"role": "user", "content": "6+6?"}`))
	write(t, dir, "train-0.jsonl", lines[:half])
	write(t, dir, "train-1.jsonl", lines[half:])
	for _, more := range []string{`"tokenizer":"bytes","template":"` + dir + `/chatml.jinja"`, `"tokenizer":"bytes"`} {
		want := []string(nil)
		for _, source := range []string{write(t, dir, "talk.jsonl", lines), write(t, dir, "talk.parquet", packed), filepath.Join(dir, "train-*.jsonl")} {
			o := options(t, source, `,"text":{`+more+`}`)
			if !strings.Contains(more, "template") {
				o.Target = "text"
			}
			d, err := of(t, o, language(63), dataset.Objective{})
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			all := append(shown(t, d, d.Training, "input_ids", "loss_mask"), shown(t, d, d.HeldOut, "input_ids", "loss_mask")...)
			if want == nil {
				want = all
			}
			if len(all) != 12 || strings.Join(all, "") != strings.Join(want, "") {
				t.Errorf("%s teaches %q, want %q", source, all, want)
			}
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
