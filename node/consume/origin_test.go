package consume

import (
	"maps"
	"testing"

	"github.com/tally-network/tally/format/yaml"
)

// The error about dimensions without sizes named no line of an order file, and then one
// dimension at a time.
func TestSized(t *testing.T) {
	p := SpecProblem{Batch: 8}
	if got := p.sized([]string{"batch", "sequence"}); got != `{"batch": 8, "sequence": 64}` {
		t.Error(got)
	}
	p.Dims = map[string]int{"sequence": 32}
	if got := p.sized([]string{"batch"}); got != `{"batch": 8, "sequence": 32}` || len(p.Dims) != 1 {
		t.Error(got)
	}
	want := map[string]int{}
	var odd []string
	for _, name := range []string{"past + 1", "a: b", "true", "no", "null", "1", "\"", "{", "N", "ö", "\x1b[2J"} {
		odd, want[name] = append(odd, name), 64
	}
	var got map[string]int
	if err := yaml.Decode([]byte((&SpecProblem{}).sized(odd)), &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v: %s", got, err, (&SpecProblem{}).sized(odd))
	}
}
