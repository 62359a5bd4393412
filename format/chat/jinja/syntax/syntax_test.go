package syntax

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := Parse("a{{ b.c | upper }}")
	if err != nil {
		t.Fatal(err)
	}
	want := []Stmt{Output{"a"}, Print{Filter{X: Attribute{Name{"b"}, "c"}, ID: "upper"}}}
	if !reflect.DeepEqual(got.Body, want) {
		t.Errorf("%#v, want %#v", got.Body, want)
	}
}

// What is wrong is told with its line; what is too much is refused before it is kept.
func TestParseRefuses(t *testing.T) {
	for source, says := range map[string]string{
		"\n{{ a":                          "line 2",
		"{% endif %}":                     "closes nothing",
		"{% include 'x' %}":               "templates cannot read files",
		"{% break %}":                     "outside a loop",
		"\xff":                            "no UTF-8",
		strings.Repeat("a", MaxSource+1):  "of at most",
		strings.Repeat("{{a}}", maxNodes): "more than",
		"{{" + strings.Repeat("(", maxNesting+1) + "}}": "in each other",
	} {
		if _, err := Parse(source); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %v, want %q", source, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("{% for a in b if c recursive %}{{ a[1:2](x=1, *y) is not none }}{% else %}{% endfor %}")
	f.Fuzz(func(_ *testing.T, source string) { _, _ = Parse(source) })
}
