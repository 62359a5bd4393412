package bench

import (
	"context"
	"testing"
)

func TestProofFigures(t *testing.T) {
	for _, part := range []func(context.Context, func(string, ...any)) ([]Row, error){longest, refereeing, disputing} {
		rows, err := part(t.Context(), t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			t.Log(r)
		}
	}
}
