package bench

import (
	"context"
	"testing"
)

// What does not depend on the machine meets its targets.
func TestProofFigures(t *testing.T) {
	for _, part := range []func(context.Context, Options) ([]Row, error){longest, disputing, others} {
		rows, err := part(t.Context(), Options{Tell: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			t.Log(r)
			if r.Met != nil && !*r.Met {
				t.Errorf("%s is %v %s", r.Name, r.Value, r.Unit)
			}
		}
	}
}
