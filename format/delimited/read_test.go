package delimited_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/delimited"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// told writes a table as "name kind: value|value", a line for each column; what is missing is "–".
func told(t *table.Table) string {
	var b strings.Builder
	for _, c := range t.Columns {
		var values []string
		for i := range c.Len() {
			if c.Lacks(i) {
				values = append(values, "–")
			} else {
				values = append(values, c.Value(i))
			}
		}
		fmt.Fprintf(&b, "%s %v: %s\n", c.Name, c.Kind, strings.Join(values, "|"))
	}
	return b.String()
}

func TestRead(t *testing.T) {
	same := func(c string) string { return strings.ReplaceAll("x integer: 1|3\ny real: 2.5|4\n", "x", c) }
	for _, c := range []struct {
		text    string
		options delimited.Options
		want    string
	}{
		// Line ends, marks, separators and quotes.
		{"x,y\n1,2.5\n3,4\n", delimited.Options{}, same("x")},
		{"\ufeffx,y\r\n1,2.5\r\n\r\n3,4", delimited.Options{}, same("x")},
		{"x;y\n1;2.5\n3;4\n", delimited.Options{}, same("x")},
		{"x\ty\n1\t2.5\n3\t4\n", delimited.Options{}, same("x")},
		{"\"x;1\",y\n1,2.5\n3,4\n", delimited.Options{}, same("x;1")},
		{"x,y\n\" 1\", 2.5 \n\"3\",4\n", delimited.Options{}, same("x")},
		{"x,y\n+1,.25e1\n3,+4.\n", delimited.Options{Separator: ','}, same("x")},
		{"\"a \"\"b\"\"\nc\",y\n1,2.5\n3,4\n", delimited.Options{}, same("a \"b\"\nc")},
		{"1,a;b\n2,c;d\n", delimited.Options{Separator: ';'}, "1,a text: 2,c\nb text: d\n"},
		// Names.
		{"1,2.5\n3,4\n", delimited.Options{}, "column1 integer: 1|3\ncolumn2 real: 2.5|4\n"},
		{",y\n1,2.5\n3,4\n", delimited.Options{}, same("column1")},
		{"a,b\nc,d\n", delimited.Options{Header: delimited.Values}, "column1 text: a|c\ncolumn2 text: b|d\n"},
		{"2019,2020\n1,2\n", delimited.Options{Header: delimited.Names}, "2019 integer: 1\n2020 integer: 2\n"},
		{"a,1\nb,2\n", delimited.Options{}, "column1 text: a|b\ncolumn2 integer: 1|2\n"},
		// Kinds.
		{"v\ntrue\nFalse\n\"\"\n", delimited.Options{}, "v boolean: true|false|–\n"},
		{"v\n1\nNA\n3\n", delimited.Options{}, "v integer: 1|–|3\n"},
		{"v\nNA\n-1\n2.5\nnull\n", delimited.Options{}, "v real: –|-1|2.5|–\n"},
		{"v\n?\n1\n", delimited.Options{Missing: []string{"?"}}, "v integer: –|1\n"},
		{"v\nNA\nNA\n", delimited.Options{}, "v real: –|–\n"},
		{"v\n1\n-inf\nInfinity\n", delimited.Options{}, "v real: 1|-Inf|+Inf\n"},
		{"v\n9223372036854775807\n-9223372036854775808\n", delimited.Options{}, "v integer: 9223372036854775807|-9223372036854775808\n"},
		{"v\n9223372036854775808\n1\n", delimited.Options{}, "v real: 9223372036854776000|1\n"},
		{"v\n12e456\n1\n", delimited.Options{}, "v text: 12e456|1\n"},
		{"v\n1\n2\nx\n\n1\n1\nx\nNA\nx\n", delimited.Options{}, "v category: 1|2|x|1|1|x|–|x\n"},
		{"v\ntrue\n1\n", delimited.Options{}, "v text: true|1\n"},
		{"v\n1\ntrue\n", delimited.Options{}, "v text: 1|true\n"},
		{"v\n0x10\n1_0\n", delimited.Options{}, "v text: 0x10|1_0\n"},
		{"v,w\n1,a\n007,5\" pipe\n", delimited.Options{}, "v integer: 1|7\nw text: a|5\" pipe\n"},
		{"v\n1\n0\n\"\"\n", delimited.Options{Kinds: map[string]table.Kind{"v": table.Boolean}}, "v boolean: true|false|–\n"},
		{"v\n1\n2\nNA\n", delimited.Options{Kinds: map[string]table.Kind{"v": table.Real}}, "v real: 1|2|–\n"},
		{"v\n10\n2\n10\n", delimited.Options{Kinds: map[string]table.Kind{"v": table.Category}}, "v category: 10|2|10\n"},
		{"v\na\na\n\"\"\n", delimited.Options{Kinds: map[string]table.Kind{"v": table.Text}}, "v text: a|a|–\n"},
	} {
		got, err := delimited.Read([]byte(c.text), c.options)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if told(got) != c.want {
			t.Errorf("%q is read as\n%swant\n%s", c.text, told(got), c.want)
		}
	}
}

// What is no table is refused, with the line and what to do.
func TestTablesAreRefused(t *testing.T) {
	kinds := func(name string, k table.Kind) delimited.Options {
		return delimited.Options{Kinds: map[string]table.Kind{name: k}}
	}
	for _, c := range []struct {
		text    string
		options delimited.Options
		want    string
	}{
		{"", delimited.Options{}, "no records"},
		{"\r\n\n", delimited.Options{}, "no records"},
		{"a,b\n", delimited.Options{}, "names of columns alone"},
		{"a,a\n1,2\n", delimited.Options{}, "two columns are called \"a\": rename"},
		{"column2,\n1,2\n", delimited.Options{}, "two columns"},
		{"0,1,2\n5,6,7\n", delimited.Options{}, "counts the columns"},
		{"a,b\n1,2\n3\n", delimited.Options{}, "line 3 has 1 cells, the first line 2"},
		{"a,b\n1,2\n3,4,5\n", delimited.Options{}, "line 3 has more cells than the first line, 2"},
		{"a,b\n1,x\n3,4,5\n", delimited.Options{}, "line 3 has more cells"},
		{"a,b\n1,2\n\n\"3,4\n5,6\n", delimited.Options{}, "line 4, column \"a\": a quote opens in line 4 and never closes"},
		{"a,b\n1,2\n\"3\"x,4\n", delimited.Options{}, "line 3, column \"a\": \"x,4\\n\" follows a closing quote"},
		{"a\n\"x\ny\"\nz\xff\n", delimited.Options{}, "line 4 is no UTF-8"},
		{"a\x00b\x00\n", delimited.Options{}, "line 1 has a byte 0"},
		{"a\n1\n2.5\n", kinds("a", table.Integer), "line 3, column \"a\": \"2.5\" is no integer"},
		{"a\nx\n", kinds("a", table.Real), "line 2, column \"a\": \"x\" is no real"},
		{"a\n1e999\n", kinds("a", table.Real), "is no real"},
		{"a\n2\n", kinds("a", table.Boolean), "is no boolean"},
		{"a\n2\n", kinds("a", table.Image), "take integer, real"},
		{"a\n2\n", kinds("b", table.Real), "no column is called \"b\""},
		{"a|b\n1|2\n", delimited.Options{Separator: '|'}, "take a comma"},
		{strings.Repeat(",", table.MaxColumns) + "\n", delimited.Options{}, "more than 4096 cells"},
		{strings.Repeat("x", table.MaxName+1) + "\n1\n", delimited.Options{}, "a name has 1 to"},
		{"a\n" + distinct(table.MaxCategories+1), kinds("a", table.Category), "are no category"},
	} {
		_, err := delimited.Read([]byte(c.text), c.options)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %q", c.text, err, c.want)
		}
	}
}

func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x%d\n", i)
	}
	return b.String()
}

// Every number that strconv reads is read to the same bits.
func TestNumbersAreRoundedOnce(t *testing.T) {
	digits := rapid.StringMatching(`[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		var want []float64
		text := "v\n"
		for _, s := range append(rapid.SliceOfN(digits, 1, 20).Draw(t, "numbers"), strconv.FormatFloat(rapid.Float64().Draw(t, "float"), 'g', -1, 64)) {
			if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(v) {
				if v == 0 && !strings.ContainsAny(s, ".eE") {
					v = 0 // a whole number has no −0
				}
				want = append(want, v)
				text += s + "\n"
			}
		}
		if len(want) == 0 {
			return
		}
		got, err := delimited.Read([]byte(text), delimited.Options{Kinds: map[string]table.Kind{"v": table.Real}})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range tensor.Of[float64](got.Columns[0].Values) {
			if math.Float64bits(v) != math.Float64bits(want[i]) {
				t.Fatalf("%q: %v, want %v", text, v, want[i])
			}
		}
	})
}

// What is found out of a column does not depend on the order of its records.
func TestKindsDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2.5", "-0", "-0.0", "x", "true", "NA", "yy", "99999999999999999999"}), 1, 8).Draw(t, "cells")
		read := func(cells []string) (string, []string) {
			got, err := delimited.Read([]byte("v\n"+strings.Join(cells, "\n")+"\n"), delimited.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := got.Columns[0]
			var values []string
			for i := range c.Len() {
				values = append(values, c.Value(i))
			}
			slices.Sort(values)
			return c.Kind.String(), values
		}
		kind, values := read(cells)
		other, others := read(rapid.Permutation(cells).Draw(t, "order"))
		if kind != other || !slices.Equal(values, others) {
			t.Fatalf("%v %v, in another order %v %v", kind, values, other, others)
		}
	})
}

// A header of many columns above many short lines must not claim memory for all their cells.
func TestMemoryFollowsText(t *testing.T) {
	for name, text := range map[string]string{
		"empty lines": strings.Repeat("a,", 4000) + "b\n" + strings.Repeat("\n", 1<<20),
		"short lines": strings.Repeat("a,", 4000) + "b\n" + strings.Repeat("1\n", 1<<20),
		"integers":    "a\n" + strings.Repeat("1\n", 1<<20),
		"late texts":  "a\n" + strings.Repeat("1\n", 1<<20) + "x\n",
		"texts":       "a\n" + distinct(1<<17),
	} {
		used := memory.Allocated(func() { _, _ = delimited.Read([]byte(text), delimited.Options{}) })
		if used > 20*int64(len(text))+memory.Slack {
			t.Errorf("%s: %d bytes took %d", name, len(text), used)
		}
	}
}

// FuzzRead reads arbitrary text, in memory in proportion to it.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "1;2\r\n3;4\r\n", "a\tb\n\"x\"\"y\"\t2.5\n", "v\nNA\n-inf\n", "v\n1\nx\n", "\ufeffa\ntrue\n", "0,1\n", "A,,\n0"} {
		f.Add([]byte(text), byte(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, header byte) {
		used := memory.Allocated(func() {
			got, err := delimited.Read(text, delimited.Options{Header: delimited.Header(header % 3)})
			if err != nil {
				return
			}
			for _, c := range got.Columns {
				if c.Len() != got.Records {
					t.Errorf("%d records of %d", c.Len(), got.Records)
				}
			}
			if again, err := delimited.Read(text, delimited.Options{Header: delimited.Header(header % 3)}); err != nil || told(again) != told(got) {
				t.Errorf("read again: %v", err)
			}
		})
		if used > 2000*int64(len(text))+memory.Slack {
			t.Fatalf("%d bytes took %d", len(text), used)
		}
	})
}
