package table_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
)

func column[T tensor.Element](t *testing.T, values ...T) *table.Column {
	t.Helper()
	c, err := table.Of("v", tensor.Must(tensor.From(tensor.Shape{len(values)}, values)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func texts(t *testing.T, kind table.Kind, words ...string) *table.Column {
	t.Helper()
	b := table.NewTextBuilder(kind, len(words), 0, nil)
	for _, w := range words {
		err := b.AppendMissing
		if w != "–" {
			err = func() error { return b.Append([]byte(w)) }
		}
		if err := err(); err != nil {
			t.Fatal(err)
		}
	}
	c, err := b.Column("v")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func values(c *table.Column) (out []string) {
	for i := range c.Len() {
		if c.Lacks(i) {
			out = append(out, "–")
		} else {
			out = append(out, c.Value(i))
		}
	}
	return out
}

// A file of a few bytes may claim any number of records that hold nothing.
func TestRecordsOfNothing(t *testing.T) {
	c, err := table.Of("x", tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{1 << 40, 0})))
	if err == nil {
		_, err = table.New(c)
	}
	if err == nil || !strings.Contains(err.Error(), "no value in a record") {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	a, b := column[int8](t, 1, 2), column[int8](t, 1)
	b.Name = "b"
	scalar, err := table.Of("s", tensor.Scalar[int8](1))
	if err == nil {
		t.Errorf("a scalar is a column: %v", scalar)
	}
	none, err := table.Of("v", tensor.Must(tensor.New(tensor.Int8, tensor.Shape{0})))
	if err != nil {
		t.Fatal(err)
	}
	for want, columns := range map[string][]*table.Column{
		"0 columns": {}, "two columns": {a, a}, "has 1 records, column \"v\" 2": {a, b}, "no records": {none}, "1 to 4096": make([]*table.Column, table.MaxColumns+1),
	} {
		if _, err := table.New(columns...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	all, err := table.New(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Column("w"); err == nil || !strings.Contains(err.Error(), `no column is called "w", but ["v"]`) {
		t.Error(err)
	}
	if _, err := all.Take([]int{2}); err == nil {
		t.Error("record 2 of 2 was taken")
	}
}

// The numbers of a category follow from its texts, whatever their order.
func TestCategoriesDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"b", "a", "ä", "", "A", "–"}), 1, 20).Draw(r, "words")
		c := texts(t, table.Category, words...)
		if got := values(c); !reflect.DeepEqual(got, words) {
			r.Fatalf("%q are %q", words, got)
		}
		other := texts(t, table.Category, rapid.Permutation(words).Draw(r, "other")...)
		if !reflect.DeepEqual(c.Categories, other.Categories) {
			r.Fatalf("%q and, in another order, %q", c.Categories, other.Categories)
		}
		again, err := c.As(table.Text)
		if err != nil || !reflect.DeepEqual(values(again), words) {
			r.Fatalf("%q as texts: %v", words, err)
		}
	})
}

// Texts that are known by their ends are those that were added.
func TestKnownTextsAreThoseAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching("[ab]{0,4}(aaaaa){0,3}[ab]{0,4}"), 1, 300).Draw(t, "words")
		b := table.NewTextBuilder(table.Category, len(words), 0, nil)
		for _, w := range words {
			padded := append([]byte(w), make([]byte, 16)...)
			first, others := binary.LittleEndian.Uint64(padded), binary.LittleEndian.Uint64(padded[8:])
			if len(w) < 16 && b.AppendKnown(table.ShortEnds(first, others, len(w))) {
				continue
			}
			if err := b.Append([]byte(w)); err != nil {
				t.Fatal(err)
			}
		}
		c, err := b.Column("c")
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range words {
			if c.Value(i) != w {
				t.Fatalf("text %d is %q, want %q", i, c.Value(i), w)
			}
		}
	})
}

// Texts that are named by their numbers are those that are told, however many differ.
func TestNamedTextsAreTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]table.Kind{0, table.Category, table.Text}).Draw(t, "kind")
		told, named := table.NewTextBuilder(kind, 0, 0, nil), table.NewTextBuilder(kind, 0, 0, nil)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range rapid.IntRange(1, 3).Draw(t, "dictionaries") {
			var d table.Dictionary
			for range rapid.SampledFrom([]int{1, 30, 900}).Draw(t, "words") {
				d.Words = append(d.Words, fmt.Append(nil, "word", r.IntN(2000)))
			}
			for range rapid.SampledFrom([]int{0, 10, 2000}).Draw(t, "records") {
				a, b, n := told.AppendMissing, named.AppendMissing, r.IntN(len(d.Words)+1)
				if n < len(d.Words) {
					a = func() error { return told.Append(d.Words[n]) }
					b = func() error { return named.AppendNamed(&d, []uint32{uint32(n)}) }
				}
				if err := errors.Join(a(), b()); err != nil {
					t.Fatal(err)
				}
			}
		}
		x, err := told.Column("c")
		y, err2 := named.Column("c")
		if err != nil || err2 != nil || !reflect.DeepEqual(x, y) {
			t.Fatalf("%v (%v), want %v (%v)", y, err2, x, err)
		}
	})
}

func TestLearnAndFill(t *testing.T) {
	nan := float32(math.NaN())
	first := []int{0, 1, 2, 3}
	lacking := column[int8](t, 1, 2, 2, 7, 0)
	lacking.Missing = []bool{false, false, false, false, true}
	truths := column[uint8](t, 1, 0, 1, 1, 0)
	truths.Kind, truths.Missing = table.Boolean, lacking.Missing
	truths.Values = tensor.Must(tensor.Bools(tensor.Shape{5}, true, false, true, true, false))
	for _, c := range []struct {
		column  *table.Column
		rule    table.Rule
		records []int
		learned string
		filled  string
		kind    table.Kind
	}{
		{lacking, table.Mean, first, "3", "1 2 2 7 3", table.Integer},
		{lacking, table.Mean, []int{0, 1, 4}, "1.5", "1 2 2 7 1.5", table.Real},
		{lacking, table.Median, first, "2", "1 2 2 7 2", table.Integer},
		{lacking, table.Median, []int{2, 3}, "4.5", "1 2 2 7 4.5", table.Real},
		{lacking, table.Mode, first, "2", "1 2 2 7 2", table.Integer},
		{lacking, table.Mode, []int{3, 0}, "1", "1 2 2 7 1", table.Integer},
		{column(t, 0.5, 2, nan), table.Mean, []int{1, 2}, "2", "0.5 2 2", table.Real},
		{column(t, -0.5, nan, nan), table.Median, []int{2, 0}, "-0.5", "-0.5 -0.5 -0.5", table.Real},
		{truths, table.Mode, first, "true", "true false true true true", table.Boolean},
		{texts(t, table.Category, "b", "–", "a"), table.Mode, []int{0, 1, 2}, "a", "b a a", table.Category},
		{texts(t, table.Text, "b", "–", "b", "a"), table.Mode, []int{0, 1, 2, 3}, "b", "b b b a", table.Text},
	} {
		learned, err := c.column.Learn(c.rule, c.records)
		if err != nil || learned != c.learned {
			t.Errorf("%s of %q: %q, %v, want %q", c.rule, values(c.column), learned, err, c.learned)
			continue
		}
		before := values(c.column)
		got, err := c.column.Fill(learned)
		if err != nil || strings.Join(values(got), " ") != c.filled || got.Kind != c.kind || got.Missing != nil {
			t.Errorf("%q filled: %v, %v", before, values(got), err)
		}
		if !reflect.DeepEqual(before, values(c.column)) {
			t.Errorf("the column itself changed to %q", values(c.column))
		}
	}
	constant, err := texts(t, table.Category, "b", "–", "d", "a").Fill("c")
	if got := values(constant); err != nil || !reflect.DeepEqual(got, []string{"b", "c", "d", "a"}) || !reflect.DeepEqual(constant.Categories, []string{"a", "b", "c", "d"}) {
		t.Errorf("a new category: %q, %v", got, err)
	}
}

func TestLearnAndFillRefuse(t *testing.T) {
	lacking := column(t, 1, math.NaN(), math.Inf(1))
	for _, c := range []struct {
		column  *table.Column
		rule    table.Rule
		records []int
		want    string
	}{
		{lacking, table.Mean, []int{1}, "no record has a value to learn from"},
		{lacking, table.Mean, []int{0, 2}, "no finite number"},
		{lacking, table.Mean, []int{3}, "none of number 3"},
		{lacking, "average", []int{0}, "is no rule"},
		{texts(t, table.Text, "a", "–"), table.Mean, []int{0}, "a text has no mean: take mode"},
		{&table.Column{Name: "v", Kind: table.Array, Values: tensor.Must(tensor.New(tensor.Int8, tensor.Shape{2, 2}))}, table.Mode, []int{0}, "take the records out"},
	} {
		if _, err := c.column.Learn(c.rule, c.records); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for _, value := range []string{"", "x", "1e999", "NaN", "0x1", "1 "} {
		if got, err := lacking.Fill(value); err == nil {
			t.Errorf("filled with %q: %v", value, values(got))
		}
	}
}

// A column has the tensor of a type exactly if each value is one of it, or is rounded to it.
func TestTensor(t *testing.T) {
	big := column[int64](t, -1, 9007199254740993)
	for _, c := range []struct {
		column *table.Column
		to     tensor.DType
		want   string // or the error
	}{
		{big, tensor.Float32, "float32 -1 9007199000000000"},
		{big, tensor.Float64, "float64 -1 9007199254740992"},
		{big, tensor.Int32, "record 1: 9007199254740993 is no int32"},
		{big, tensor.Uint64, "record 0: -1 is no uint64"},
		{column[uint64](t, 1<<63), tensor.Int64, "is no int64"},
		{column[uint64](t, 255, 0), tensor.Uint8, "uint8 255 0"},
		{column[uint64](t, 128), tensor.Int8, "is no int8"},
		{column[int64](t, -128), tensor.Int8, "int8 -128"},
		{column[int64](t, 2), tensor.Bool, "is no bool"},
		{column[int64](t, 1, 0), tensor.Bool, "bool true false"},
		{column(t, 0.1), tensor.Float32, "float32 0.1"},
		{column(t, 1e39), tensor.Float32, "is no float32"},
		{column(t, 70000.0), tensor.Float16, "is no float16"},
		{column[int64](t, 70000), tensor.Float16, "is no float16"},
		{column(t, -3.0), tensor.Int8, "int8 -3"},
		{column(t, 0.5), tensor.Int8, "is no int8"},
		{column(t, 0x1p53), tensor.Uint64, "uint64 9007199254740992"},
		{column(t, 0x1p54), tensor.Uint64, "is no uint64"},
		{column(t, math.Inf(1)), tensor.Float32, "float32 +Inf"},
		{column(t, math.Inf(1)), tensor.Int64, "is no int64"},
		{column(t, math.NaN()), tensor.Float32, "no value in 1 of 1 records: fill them"},
		{texts(t, table.Text, "a"), tensor.Float32, "is text, and no number"},
		{texts(t, table.Category, "b", "a", "b"), tensor.Float32, "float32 1 0 1"},
	} {
		got, err := c.column.Tensor(c.to)
		told := ""
		if err != nil {
			told = err.Error()
		} else {
			v, err := table.Of("v", got)
			if err != nil {
				t.Fatal(err)
			}
			told = got.Type.String() + " " + strings.Join(values(v), " ")
		}
		if !strings.Contains(told, c.want) {
			t.Errorf("%q as %v: %q, want %q", values(c.column), c.to, told, c.want)
		}
	}
}

func TestColumnsSideBySide(t *testing.T) {
	other := column(t, 0.5, 2)
	other.Name = "w"
	all, err := table.New(column[int8](t, 1, -2), other)
	if err != nil {
		t.Fatal(err)
	}
	got, err := all.Tensor(tensor.Float32)
	if want := tensor.Must(tensor.From(tensor.Shape{2, 2}, []float32{1, 0.5, -2, 2})); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := all.Tensor(tensor.Int8); err == nil || !strings.Contains(err.Error(), `column "w", record 0: 0.5 is no int8`) {
		t.Error(err)
	}
	pairs := &table.Column{Name: "p", Kind: table.Array, Values: tensor.Must(tensor.New(tensor.Int8, tensor.Shape{2, 2}))}
	if all, err = table.New(pairs); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Tensor(tensor.Int8); err == nil {
		t.Error("an array is a single value")
	}
}

func TestAs(t *testing.T) {
	bytes := func(shape ...int) *table.Column {
		c, err := table.Of("v", tensor.Must(tensor.New(tensor.Uint8, shape)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	lacking := column[int64](t, 10, 2, 0)
	lacking.Missing = []bool{false, false, true}
	for _, c := range []struct {
		column *table.Column
		kind   table.Kind
		want   string // "": refused
	}{
		{lacking, table.Category, "10 2 –"}, {lacking, table.Real, "10 2 –"}, {lacking, table.Text, "10 2 –"}, {lacking, table.Integer, "10 2 –"},
		{lacking, table.Boolean, ""}, {lacking, table.Image, ""},
		{bytes(2, 3, 4), table.Image, "uint8[3 4 1] uint8[3 4 1]"}, {bytes(1, 3, 4, 3), table.Image, "uint8[3 4 3]"},
		{bytes(1, 3, 4, 5), table.Image, ""}, {bytes(1, 3), table.Image, ""}, {bytes(1, 3), table.Real, ""}, {bytes(1, 3), table.Text, ""},
	} {
		got, err := c.column.As(c.kind)
		switch {
		case c.want == "":
			if err == nil {
				t.Errorf("%v as %v: %v", c.column.Kind, c.kind, got)
			}
		case err != nil || got.Kind != c.kind || strings.Join(values(got), " ") != c.want:
			t.Errorf("%v as %v: %v, %v", c.column.Kind, c.kind, values(got), err)
		}
	}
}

func TestTake(t *testing.T) {
	words := texts(t, table.Text, "a", "–", "b")
	words.Name = "w"
	all, err := table.New(column[int16](t, 5, 6, 7), words)
	if err != nil {
		t.Fatal(err)
	}
	got, err := all.Take([]int{2, 1, 2})
	if err != nil || got.Records != 3 {
		t.Fatal(got, err)
	}
	if v, w := values(got.Columns[0]), values(got.Columns[1]); !reflect.DeepEqual(v, []string{"7", "6", "7"}) || !reflect.DeepEqual(w, []string{"b", "–", "b"}) {
		t.Errorf("taken: %q %q", v, w)
	}
}

func TestDescribe(t *testing.T) {
	floats := column(t, 2, -1, math.NaN(), 0.5, 2)
	infinite := column(t, 1, math.Inf(1))
	pixels, err := table.Of("p", tensor.Must(tensor.From(tensor.Shape{1, 2}, []uint8{3, 4})))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		column *table.Column
		want   string
	}{
		{floats, `{"name":"v","kind":"real","type":"float64","count":4,"missing":1,"distinct":3,"min":-1,"mean":0.875,"max":2,"samples":["2","-1","0.5","2"]}`},
		{infinite, `{"name":"v","kind":"real","type":"float64","count":2,"missing":0,"distinct":2,"min":1,"samples":["1","+Inf"]}`},
		{texts(t, table.Category, "b", "a", "b", "–"), `{"name":"v","kind":"category","type":"int32","count":3,"missing":1,"distinct":2,"most_frequent":[{"value":"b","count":2},{"value":"a","count":1}],"samples":["b","a","b"]}`},
		{texts(t, table.Text, strings.Repeat("é", 50)), `{"name":"v","kind":"text","count":1,"missing":0,"distinct":1,"most_frequent":[{"value":"` + strings.Repeat("é", 30) + `…","count":1}],"samples":["` + strings.Repeat("é", 30) + `…"]}`},
		{column(t, math.NaN()), `{"name":"v","kind":"real","type":"float64","count":0,"missing":1,"samples":[]}`},
		{pixels, `{"name":"p","kind":"array","type":"uint8","shape":[2],"count":1,"missing":0,"min":3,"mean":3.5,"max":4,"samples":["uint8[2]"]}`},
	} {
		if got, err := json.Marshal(c.column.Describe()); err != nil || string(got) != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}
