package yaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tally-network/tally/internal/testkit/memory"
)

type pair struct {
	A int      `json:"a"`
	B int      `json:"b"`
	C []string `json:"c"`
	D []inner  `json:"inners"`
}

type inner struct {
	Long map[string]int `json:"longName"`
}

func TestDecode(t *testing.T) {
	p := pair{B: 7}
	if err := Decode([]byte("a: 3\nc: [x, 'a & b', \"*\"] # & and *\n"), &p); err != nil || p.A != 3 || p.B != 7 || len(p.C) != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	for text, want := range map[string]string{
		"a: 1\nd: 2":                         `line 2: unknown field "d": the fields here are a, b, c, inners`,
		"a: 1\niners: []":                    `line 2: unknown field "iners": is it inners?`,
		"inners: [{longNmae: {}}]":           `unknown field "longNmae": is it longName?`,
		"a: 1\na: 2":                         "already",
		"a: 1\n---\nb: 2":                    "one YAML document",
		"A: 1":                               "line 1: A is written a",
		"a: 1\ninners:\n- longname: {}":      "line 3: longname is written longName",
		"inners: [{longName: {x: 1, y: 2}}]": "line 1: the name y stands for true or false in YAML",
		"a: 1.5":                             `line 1: a: "1.5" is not a whole number, such as 8`,
		"b: 1\na: many":                      `line 2: a: "many" is not a whole number, such as 8`,
		"c: 5":                               `line 1: c: "5" is not a list`,
		"a:\n  x: 1":                         `line 2: a.x: "object" is not a whole number`,
		"[1]":                                "group of fields",
		"a: &x 1":                            "line 1: anchors",
		"a: 1\nb: *x":                        "unknown anchor",
		"c: &x []\n<<: *x":                   "line 1: anchors",
		"? &x a\n: 1":                        "anchors",
		"a: [":                               "yaml",
		"a: !!binary \"%\" ":                 "",
	} {
		if err := Decode([]byte(text), new(pair)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}, {"ab", "ba", 2}} {
		if got := distance(x.a, x.b); got != x.want {
			t.Errorf("%q and %q differ by %d, want %d", x.a, x.b, got, x.want)
		}
	}
}

// bombs are short, and stand for more than a machine has memory for.
func bombs() map[string]string {
	var powers strings.Builder
	powers.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'k'; c++ {
		fmt.Fprintf(&powers, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	return map[string]string{
		"powers of nine":       powers.String(),
		"a long text repeated": "s: &s " + strings.Repeat("A", 20_000) + "\nx: [" + strings.Repeat("*s,", 12_000) + "]\n",
		"a long list repeated": "s: &s [" + strings.Repeat("y,", 10_000) + "]\nx: [" + strings.Repeat("*s,", 12_000) + "]\n",
	}
}

func TestBombsAreNotExpanded(t *testing.T) {
	for name, text := range bombs() {
		var v any
		var err error
		took := memory.Allocated(func() { err = Decode([]byte(text), &v) })
		if err == nil || !strings.Contains(err.Error(), "anchors and aliases") || took > memory.Slack {
			t.Errorf("%s: %v, %d bytes allocated", name, err, took)
		}
	}
}

// What is within the limits of those who read it takes bounded memory, however deep.
func TestMemoryFollowsBytes(t *testing.T) {
	const size = 64 << 10
	for name, text := range map[string]string{
		"deep":  "x: " + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"maps":  "x: " + strings.Repeat("{a: ", size/5) + strings.Repeat("}", size/5),
		"items": "x: [" + strings.Repeat("a,", size/2) + "]",
		"keys":  strings.Repeat("? ", size/2),
	} {
		took := memory.Peak(func() {
			var v any
			_ = Decode([]byte(text), &v)
		}, func(peak int64) bool { return peak < memory.Slack })
		if took > memory.Slack {
			t.Errorf("%s: %d bytes of %d bytes of YAML", name, took, size)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range bombs() {
		f.Add([]byte(text))
	}
	f.Add([]byte("a: 1\nc: [x]\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if len(text) < 1<<12 {
			_ = Decode(text, new(pair))
		}
	})
}
