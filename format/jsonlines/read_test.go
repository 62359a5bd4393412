package jsonlines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/jsonlines"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// told writes a table as "name kind: value|value", a line for each column; what is missing is "–".
func told(t *table.Table) string {
	var b strings.Builder
	for _, c := range t.Columns {
		var values []string
		for i := range c.Len() {
			switch {
			case c.Lacks(i):
				values = append(values, "–")
			case c.Kind == table.Array:
				row, err := c.Values.Row(i)
				if err != nil {
					return err.Error()
				}
				values = append(values, string(jsonlines.Append(nil, row, row.Shape, 0)))
			default:
				values = append(values, c.Value(i))
			}
		}
		fmt.Fprintf(&b, "%s %v: %s\n", c.Name, c.Kind, strings.Join(values, "|"))
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		text  string
		kinds map[string]table.Kind
		want  string
	}{
		{"\ufeff{\"x\": 1, \"y\": 2.5}\r\n\n {\"y\":-4e1 , \"x\":-9223372036854775808 } \n", nil, "x integer: 1|-9223372036854775808\ny real: 2.5|-40\n"},
		{`{"x": 1}` + "\n" + `{"x": 9223372036854775808}`, nil, "x real: 1|9223372036854776000\n"},
		{`{"x": true}` + "\n" + `{"x": false}` + "\n" + `{"x": null}`, nil, "x boolean: true|false|–\n"},
		{`{"x": null}` + "\n" + `{"x": true}`, nil, "x boolean: –|true\n"},
		{`{"x": "a\"b"}` + "\n" + `{}` + "\n" + `{"x": "\u00e9"}`, nil, "x text: a\"b|–|é\n"},
		{`{"x": "b"}` + "\n" + `{"x": "a"}` + "\n" + `{"x": "b"}` + "\n" + `{"x": "b"}`, nil, "x category: b|a|b|b\n"},
		{`{"x": null}` + "\n" + `{"x": "a"}`, map[string]table.Kind{"x": table.Category}, "x category: –|a\n"},
		{`{"x": 1}` + "\n" + `{"y": 2, "x": null}` + "\n" + `{"x": 2.5}`, nil, "x real: 1|–|2.5\ny integer: –|2|–\n"},
		{`{"x": null}` + "\n" + `{"x": null}`, nil, "x real: –|–\n"},
		{`{"x": "-Infinity"}` + "\n" + `{"x": 1}` + "\n" + `{"x": "NaN"}`, nil, "x real: -Inf|1|–\n"},
		{`{"x": "NaN"}`, map[string]table.Kind{"x": table.Text}, "x text: NaN\n"},
		{`{"x": [[1, 2], [3, 4]]}` + "\n" + `{"x": [[5,6],[7,8]]}`, nil, "x array: [[1,2],[3,4]]|[[5,6],[7,8]]\n"},
		{`{"x": [1, 2]}` + "\n" + `{"x": [3, "NaN"]}`, nil, "x array: [1,2]|[3,\"NaN\"]\n"},
		{`{"x": [true, false]}`, nil, "x array: [true,false]\n"},
		{`{"x": 3}`, map[string]table.Kind{"x": table.Category}, "x category: 3\n"},
		{`{"x": [{"role": "user", "n": [1, "]}"]}] , "y": 1}` + "\n" + `{"x": null}` + "\n" + `{"x": 1}`, nil, "x json: [{\"role\": \"user\", \"n\": [1, \"]}\"]}]|–|1\ny integer: 1|–|–\n"},
		{`{"x": [1, "a"]}`, map[string]table.Kind{"x": table.JSON}, "x json: [1, \"a\"]\n"},
		{`{"a\nb": 3}`, nil, "a\nb integer: 3\n"},
	} {
		got, err := jsonlines.Read([]byte(c.text), jsonlines.Options{Kinds: c.kinds})
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if told(got) != c.want {
			t.Errorf("%q is read as\n%swant\n%s", c.text, told(got), c.want)
		}
	}
}

func TestRecordsAreRefused(t *testing.T) {
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "\"x%d\": 1,", i)
		}
		return "{" + b.String() + "\"y\": 1}\n"
	}
	for text, want := range map[string]string{
		"":                                    "no records",
		"\n \n":                               "no records",
		"[1, 2]":                              "is no object",
		`{"x": 1`:                             "line 1: a comma or } is wanted before the end of the line",
		`{"x": 1,}`:                           "a text in quotes is wanted",
		`{"x" 1}`:                             "a colon is wanted",
		`{"x": 1} {"x": 2}`:                   "follows the object",
		`{"x": 1, "x": 2}`:                    `"x" is there twice`,
		"{\"x\": 1}\n{\"x\": \"a\"}":          "line 2: \"x\": \"a\" is no number: turn it",
		"{\"x\": \"a\"}\n{\"x\": 1}":          "line 2: \"x\": \"1}\" is of another kind",
		"{\"x\": 1}\n{\"x\": true}":           "truth values or numbers, not both",
		"{\"x\": true}\n{\"x\": 1}":           "truth values or numbers, not both",
		"{\"x\": true}\n{\"x\": \"a\"}":       "have a list or a truth value",
		"{\"x\": 1}\n{\"x\": [2]}":            "another kind",
		"{\"x\": [1]}\n{\"x\": 2}":            "another kind",
		"{\"x\": [1]}\n{\"x\": \"NaN\"}":      "have a list or a truth value",
		"{\"x\": [1]}\n{\"x\": null}":         "a record has no list",
		"{\"x\": [1]}\n{}":                    "a record has no list",
		"{\"x\": null}\n{\"x\": [1]}":         "a record before has no list",
		"{\"x\": [1, 2]}\n{\"x\": [1]}":       "has not the 2 members",
		"{\"x\": [1, 2]}\n{\"x\": [1,2,3]}":   "more than the 2 members",
		"{\"x\": [[1], [2, 3]]}":              "more than the 1 members",
		"{\"x\": [1, [2]]}":                   "a list stands where",
		`{"x": [1, null]}`:                    "holds a null or an object",
		`{"x": ["a,b", 1]}`:                   "turn it into numbers first",
		"{\"x\": 1}\n{\"x\": {\"a\": 1}}":     "an object stands where",
		"{\"x\": [1]}\n{\"x\": [{}]}":         "a null or an object",
		`{"x": {"a": 1]}`:                     "no value of JSON",
		`{"x": [{"a": 1}`:                     "no value of JSON",
		`{"x": {"a": }}`:                      "no value of JSON",
		"{\"x\": {\"a\":\n1}}":                "no value of JSON",
		`{"x": {"a": "`:                       "does not end",
		`{"x": []}`:                           "is empty",
		`{"x": [1`:                            "does not end",
		`{"x": "a`:                            "a text does not end",
		`{"x": "a\`:                           "a text does not end",
		"{\"x\": \"a\nb\"}":                   "a text does not end",
		"{\"x\": \"a\tb\"}":                   "write it as \\u0009",
		`{"x": "\q"}`:                         "invalid character 'q'",
		`{"x": ` + strings.Repeat("[", 1<<20): "nested more than",
		`{"x": [1, NaN]}`:                     "write it as a text, \"NaN\"",
		`{"x": -Infinity}`:                    "write it as a text",
		`{"x": 01}`:                           "a number is wanted",
		`{"x": +1}`:                           "a number is wanted",
		`{"x": .5}`:                           "a number is wanted",
		`{"x": 5.}`:                           "a number is wanted",
		`{"x": -}`:                            "a number is wanted",
		`{"x": 1e999}`:                        "lies beyond float64",
		`{"x": 1, "y": "` + "\xff\"}":         "line 1 is no UTF-8",
		names(table.MaxColumns):               "more than 4096 names",
		names(3000) + strings.Repeat("{}\n", 20000): "than the file has bytes",
	} {
		if _, err := jsonlines.Read([]byte(text), jsonlines.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	for kind, want := range map[table.Kind]string{table.Array: "is not read as", table.Integer: "is not read as"} {
		if _, err := jsonlines.Read([]byte(`{"x": "a"}`), jsonlines.Options{Kinds: map[string]table.Kind{"x": kind}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("as %v: %v, want %q", kind, err, want)
		}
	}
	if _, err := jsonlines.Read([]byte(`{"x": "a"}`), jsonlines.Options{Kinds: map[string]table.Kind{"y": table.Text}}); err == nil {
		t.Error("a kind was taken for no column")
	}
}

// What jsonlines.Append writes is read as the same numbers.
func TestAppendIsRead(t *testing.T) {
	x := tensor.Must(tensor.From(tensor.Shape{2, 2}, []float32{0.1, -1e-40, 3, 16777217}))
	var b []byte
	for i := range 2 {
		b = append(b, `{"x":`...)
		b = append(jsonlines.Append(b, x, x.Shape[1:], 2*i), "}\n"...)
	}
	got, err := jsonlines.Read(b, jsonlines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if y, err := got.Columns[0].Tensor(tensor.Float32); err != nil || !y.Equal(x) {
		t.Errorf("%s is read as %v (%v)", b, y, err)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"{\"x\": [[1, 2]]}\n{\"x\": [[3, 4]]}", `{"x": "a\"b", "y": true, "z": -2.5e3}`, "{\"x\": null}\n{}\n{\"x\": \"NaN\"}", "{\"x\": [true]}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		used := memory.Allocated(func() {
			got, err := jsonlines.Read(text, jsonlines.Options{})
			if err != nil {
				return
			}
			for _, c := range got.Columns {
				if c.Len() != got.Records {
					t.Errorf("%d records of %d", c.Len(), got.Records)
				}
			}
			told(got)
		})
		if used > 2000*int64(len(text))+memory.Slack {
			t.Fatalf("%d bytes took %d", len(text), used)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := []byte(strings.Repeat("{\"id\": 12345, \"x\": [0.125, -3.75, 1e-3, 4], \"label\": \"setosa\", \"score\": 0.123456}\n", 20000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonlines.Read(text, jsonlines.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
