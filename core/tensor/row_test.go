package tensor

import (
	"slices"
	"testing"
)

// Rows of an odd number of elements begin where no part can.
func TestRow(t *testing.T) {
	x := Must(From(Shape{2, 3}, []float32{1, 2, 3, 4, 5, 6}))
	for i, want := range [][]float32{{1, 2, 3}, {4, 5, 6}} {
		row, err := x.Row(i)
		if err != nil || !row.Shape.Equal(Shape{3}) || !slices.Equal(Of[float32](row), want) {
			t.Fatalf("row %d is %v, %v", i, row, err)
		}
		Of[float32](row)[0] = 9
	}
	if Of[float32](x)[3] != 4 {
		t.Error("a row is no copy")
	}
	for _, i := range []int{-1, 2} {
		if _, err := x.Row(i); err == nil {
			t.Errorf("there is a row %d", i)
		}
	}
	if _, err := Scalar(float32(1)).Row(0); err == nil {
		t.Error("a scalar has a row")
	}
}
