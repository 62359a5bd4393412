package rows

import (
	"math"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

func TestReadJSON(t *testing.T) {
	table, err := ReadJSON([]byte("\ufeff{\"ids\": [[1, 2], [9007199254740993, 4]], \"ok\": true, \"x\": 0.1}\r\n\n" +
		"{\"x\": \"-Inf\", \"ok\": false, \"ids\": [[-5,6],[7,8]]}\n{\"ids\":[[0,0],[0,0]],\"ok\":true,\"x\":1e-45}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(table.Columns); got != 3 || table.Rows != nil {
		t.Fatalf("%d columns, rows %v", got, table.Rows)
	}
	ids, err := table.Columns["ids"].Tensor(tensor.Int64)
	if want := tensor.Must(tensor.From(tensor.Shape{3, 2, 2}, []int64{1, 2, 9007199254740993, 4, -5, 6, 7, 8, 0, 0, 0, 0})); err != nil || !ids.Equal(want) {
		t.Errorf("ids: %v, %v", ids, err)
	}
	x, err := table.Columns["x"].Tensor(tensor.Float32)
	if want := tensor.Must(tensor.From(tensor.Shape{3}, []float32{0.1, float32(math.Inf(-1)), 1e-45})); err != nil || !x.Equal(want) {
		t.Errorf("x: %v, %v", x, err)
	}
	ok, err := table.Columns["ok"].Tensor(tensor.Bool)
	if want := tensor.Must(tensor.Bools(tensor.Shape{3}, true, false, true)); err != nil || !ok.Equal(want) {
		t.Errorf("ok: %v, %v", ok, err)
	}
}

func TestReadCSV(t *testing.T) {
	for _, text := range []string{"f,b c\r\n1,2.5\r\n-3,\"4\"\r\n", "\ufefff, b c\n1,2.5\n-3,4"} {
		table, err := ReadCSV([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all, err := table.Rows.Tensor(tensor.Float64)
		if want := tensor.Must(tensor.From(tensor.Shape{2, 2}, []float64{1, 2.5, -3, 4})); err != nil || !all.Equal(want) {
			t.Errorf("%q: rows %v, %v", text, all, err)
		}
		a, err := table.Columns["f"].Tensor(tensor.Int8)
		if want := tensor.Must(tensor.From(tensor.Shape{2}, []int8{1, -3})); err != nil || !a.Equal(want) {
			t.Errorf("%q: a %v, %v", text, a, err)
		}
		if table.Columns["b c"] == nil {
			t.Errorf("%q: no column of that name", text)
		}
	}
	table, err := ReadCSV([]byte("1,2\n3,4\n"))
	if err != nil || len(table.Columns) != 0 || !table.Rows.Shape().Equal(tensor.Shape{2, 2}) {
		t.Errorf("without names: %v, %v", table, err)
	}
}

// What is no record is refused, and told so that people know what to do.
func TestRowsAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 9) + "1" + strings.Repeat("]", 9)
	for _, c := range []struct {
		csv        bool
		text, want string
	}{
		{false, "", "no records"},
		{false, "[1, 2]", "is no object"},
		{false, `{"x": 1`, "record 0"},
		{false, `{"x": 1} {"x": 2}`, "something follows"},
		{false, `{"x": 1, "x": 2}`, "here twice"},
		{false, "{\"x\": 1}\n{\"y\": 2}", "record 1: \"y\" is not in the first"},
		{false, "{\"x\": 1, \"y\": 1}\n{\"y\": 2}", "has 1 values, the first has 2"},
		{false, `{"x": {"a": 1}}`, "an object stands"},
		{false, `{"x": []}`, "is empty"},
		{false, `{"x": ` + deep + `}`, "nested more than"},
		{false, `{"x": "text"}`, "turn it into numbers first"},
		{false, `{"y": "text", "x": 1}`, "turn it into numbers first"},
		{false, `{"x": [1, NaN]}`, "write \"NaN\""},
		{false, `{"x": -Infinity}`, "write \"NaN\""},
		{false, `{"x": ["a,b", 1]}`, "turn it into numbers first"},
		{false, `{"x": null}`, "has all values"},
		{false, `{"x": 1.5}`, "1.5 is no int16"},
		{false, `{"x": 40000}`, "40000 is no int16"},
		{false, "{\"x\": [1, 2, 3]}\n{\"x\": [1, 2222]}", "2 members where the first record has 3"},
		{false, "{\"x\": [1, 2]}\n{\"x\": [1, 2, 3]}", "more than the 2 members"},
		{false, "{\"x\": [1, 2]}\n{\"x\": 12345}", "the first record has a list"},
		{false, "{\"x\": 1}\n{\"x\": [2]}", "the first record has a number"},
		{false, "{\"x\": [1, 2, 3]}\n{\"x\": 1}", "fewer numbers than the first"},
		{true, "", "no records"},
		{true, "a,b\n", "no records"},
		{true, "a,a\n1,2\n", "two columns"},
		{true, "a,1\n1,2\n", "among names"},
		{true, ",x\n,0\n", "column 0 has no name"},
		{true, "0,1,2\n5,6,7\n", "counts the columns"},
		{true, "a;b\n1;2\n", "has no comma"},
		{true, "a\tb\n1\t2\n", "has no comma"},
		{true, "1,2\n3\n", "wrong number of fields"},
		{true, "1,2\n3,x\n", "x is no int16"},
		{true, "1,2\n3,\n", "has all values"},
		{true, "1,2\n3,\"4,5\"\n", "no number"},
	} {
		read := ReadJSON
		if c.csv {
			read = ReadCSV
		}
		table, err := read([]byte(c.text))
		if err == nil {
			column := table.Rows
			if column == nil {
				column = table.Columns["x"]
			}
			_, err = column.Tensor(tensor.Int16)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	for text, typ := range map[string]tensor.DType{"0x10": tensor.Float32, "1_0": tensor.Float64, "1e39": tensor.Float32, "70000": tensor.Float16, "-1": tensor.Uint8, "2": tensor.Bool, "T": tensor.Bool} {
		if w, err := word(typ, text); err == nil {
			t.Errorf("%q was read as %v %v", text, typ, w)
		}
	}
}

// What Append writes is read as the same bits.
func TestAppendIsRead(t *testing.T) {
	for _, typ := range tensor.DTypes {
		x := tensor.Must(tensor.New(typ, tensor.Shape{2, 3}))
		for i := range x.Len() {
			if typ.Float() {
				x.Set(i, tensor.FloatWord(typ, []float64{0.1, -1e-40, math.NaN(), math.Inf(1), math.Inf(-1), math.Pi}[i]))
			} else {
				x.Set(i, tensor.Word(i%2))
			}
		}
		var b []byte
		for i := range 2 {
			b = append(b, `{"x":`...)
			b = append(Append(b, x, x.Shape[1:], 3*i), "}\n"...)
		}
		table, err := ReadJSON(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := table.Columns["x"].Tensor(typ); err != nil || !got.Equal(x) {
			t.Errorf("%v: %s is read as %v (%v)", typ, b, got, err)
		}
	}
}

// FuzzRead reads arbitrary text as either format, in memory in proportion to it.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"{\"x\": [[1, 2]]}\n{\"x\": [[3, 4]]}", "a,b\n1,2\n", "1,2\n3,4\n", "{\"x\": [\"NaN\", \"a\\\"]\"]}", "0,1\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, read := range []func([]byte) (*Table, error){ReadJSON, ReadCSV} {
			used := memory.Allocated(func() {
				table, err := read(text)
				if err != nil {
					return
				}
				columns := []*Column{}
				for _, c := range table.Columns {
					columns = append(columns, c)
				}
				if table.Rows != nil {
					columns = append(columns, table.Rows)
				}
				for _, c := range columns {
					if x, err := c.Tensor(tensor.Float32); err == nil && !x.Shape.Equal(c.Shape()) {
						t.Errorf("%v for shape %v", x.Shape, c.Shape())
					}
				}
			})
			if used > 2000*int64(len(text))+memory.Slack {
				t.Fatalf("%d bytes took %d", len(text), used)
			}
		}
	})
}
