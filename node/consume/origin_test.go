package consume

import "testing"

// The error about a dimension without a size named no line of an order file.
func TestSized(t *testing.T) {
	p := SpecProblem{Batch: 8}
	if got := p.sized("batch"); got != "{batch: 8}" {
		t.Error(got)
	}
	p.Dims = map[string]int{"sequence": 32}
	if got := p.sized("batch"); got != "{batch: 8, sequence: 32}" || len(p.Dims) != 1 {
		t.Error(got)
	}
}
