package elements

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

func TestRead(t *testing.T) {
	in := bytes.NewReader([]byte{0, 0, 0x80, 0x3f, 1, 0, 0x80, 0xff, 0, 0, 0, 0x80, 0xee})
	got, err := Read(in, tensor.Float32, tensor.Shape{3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One, a NaN of another kind, and −0, which stays.
	if want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x7f, 0, 0, 0, 0x80}; !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("got %x", got.Bytes())
	}
	if in.Len() != 1 {
		t.Fatalf("%d bytes are left of the reader", in.Len())
	}
	if _, err := Read(in, tensor.Int64, tensor.Shape{1}, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("too few bytes: %v", err)
	}
	if _, err := Read(bytes.NewReader([]byte{1, 2}), tensor.Bool, tensor.Shape{2}, nil); err == nil {
		t.Error("2 is a boolean")
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		typ   tensor.DType
		shape tensor.Shape
		want  int64 // −1: refused
	}{
		{tensor.Int64, nil, 8},
		{tensor.Float32, tensor.Shape{3, 5}, 60},
		{tensor.Bool, tensor.Shape{1 << 34}, 1 << 34},
		{tensor.Bool, tensor.Shape{0, 1 << 40}, 0},
		{tensor.Bool, tensor.Shape{1<<34 + 1}, -1},
		{tensor.Float32, tensor.Shape{1 << 33}, -1},
		{tensor.Float32, tensor.Shape{-1}, -1},
		{tensor.Float32, tensor.Shape{1 << 40, 1 << 24}, -1},
		{tensor.Float32, tensor.Shape{1 << 40, 1 << 23}, -1},
		{tensor.Float32, tensor.Shape{0, 1 << 40, 1 << 40}, -1},
		{tensor.Float32, make(tensor.Shape, tensor.MaxRank+1), -1},
	} {
		got, err := Size(c.typ, c.shape)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%v%v: got %d, want %d (%v)", c.typ, c.shape, got, c.want, err)
		}
	}
}
