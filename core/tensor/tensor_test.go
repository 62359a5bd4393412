package tensor

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
)

func TestShapeLimits(t *testing.T) {
	for _, bad := range []Shape{{-1}, {MaxDim + 1}, {1 << 30, 1 << 30}, {1 << 39, 1 << 39}, {0, 1 << 39, 4}, {1 << 40, 1 << 24}, {1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		if bad.Check() == nil {
			t.Errorf("shape %v passed", bad)
		}
		if _, err := New(Float32, bad); err == nil {
			t.Errorf("a tensor of shape %v was made", bad)
		}
	}
	if _, err := New(Float32, Shape{1 << 35}); err == nil {
		t.Error("a tensor above MaxBytes was made")
	}
	if _, err := New(DType(77), Shape{1}); err == nil {
		t.Error("a tensor of unknown type was made")
	}
}

func TestBroadcast(t *testing.T) {
	for _, c := range []struct{ a, b, want Shape }{
		{Shape{2, 3}, Shape{3}, Shape{2, 3}}, {Shape{2, 1}, Shape{1, 3}, Shape{2, 3}}, {Shape{}, Shape{4}, Shape{4}},
		{Shape{0}, Shape{1}, Shape{0}}, {Shape{2, 3}, Shape{2}, nil}, {Shape{0}, Shape{2}, nil},
	} {
		got, err := c.a.Broadcast(c.b)
		if (err != nil) != (c.want == nil) || err == nil && !got.Equal(c.want) {
			t.Errorf("%v with %v: %v, %v", c.a, c.b, got, err)
		}
	}
}

func drawShape(t *rapid.T, rank, dim int) Shape {
	return Shape(rapid.SliceOfN(rapid.IntRange(0, dim), 0, rank).Draw(t, "shape"))
}

func drawTensor(t *rapid.T, typ DType, s Shape) *Tensor {
	x := Must(New(typ, s))
	for i := range x.Len() {
		switch typ {
		case Float32:
			x.Set(i, F32(rapid.OneOf(rapid.Float32(), rapid.Float32Range(-2, 2)).Draw(t, "x")))
		case Bool:
			x.Set(i, Word(rapid.IntRange(0, 1).Draw(t, "b")))
		default:
			x.Set(i, Word(rapid.Int64Range(-5, 5).Draw(t, "n")))
		}
	}
	return x
}

func TestTensorEncodingRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]DType{Float32, Int32, Int64, Bool}).Draw(t, "type")
		x := drawTensor(t, typ, drawShape(t, 3, 5))
		b := canon.Encode(x.Encode)
		var back *Tensor
		if err := canon.Decode(b, func(d *canon.Decoder) { back = Decode(d) }); err != nil {
			t.Fatal(err)
		}
		if !back.Equal(x) || back.Root() != x.Root() {
			t.Fatal("a tensor changed on its way")
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	nan := canon.Encode(func(e *canon.Encoder) {
		e.U8(uint8(Float32))
		Shape{1}.Encode(e)
		e.Raw([]byte{1, 0, 0xc0, 0x7f})
	})
	for name, b := range map[string][]byte{
		"NaN":        nan,
		"bool":       {uint8(Bool), 1, 1, 2},
		"type":       {99, 0},
		"too long":   {uint8(Float32), 1, 200, 1, 0, 0},
		"rank":       append([]byte{uint8(Float32), 9}, bytes.Repeat([]byte{1}, 13)...),
		"huge shape": {uint8(Float32), 3, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0},
	} {
		if canon.Decode(b, func(d *canon.Decoder) { Decode(d) }) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape(rapid.SliceOfN(rapid.IntRange(1, 70), 0, 2).Draw(t, "shape"))
		x := Must(New(Int32, s))
		for i := range x.Len() {
			x.Set(i, Word(i))
		}
		l := LayoutOf(Int32, s)
		seen := 0
		for tile := range l.Tiles() {
			b := x.Tile(nil, tile)
			if len(b) != l.TileBytes(tile) {
				t.Fatalf("tile %d has %d bytes, layout says %d", tile, len(b), l.TileBytes(tile))
			}
			for place := range len(b) / 4 {
				i, err := l.Element(tile, place)
				if err != nil {
					t.Fatal(err)
				}
				if gt, gp := l.Find(i); gt != tile || gp != place {
					t.Fatalf("element %d: Find says %d/%d, Element %d/%d", i, gt, gp, tile, place)
				}
				if l.Word(b, place) != Word(i) {
					t.Fatalf("tile %d place %d holds %d, want %d", tile, place, l.Word(b, place), i)
				}
				seen++
			}
			if _, err := l.Element(tile, len(b)/4); err == nil {
				t.Fatal("a place outside the tile was found")
			}
		}
		if seen != x.Len() {
			t.Fatalf("tiles hold %d of %d elements", seen, x.Len())
		}
	})
}

func TestRootBindsTypeShapeAndBits(t *testing.T) {
	base := Must(From(Shape{2, 2}, []float32{0, 1, 2, 3}))
	roots := map[canon.Hash]string{base.Root(): "base"}
	ints := Must(FromBytes(Int32, Shape{2, 2}, base.Bytes()))
	flat := Must(FromBytes(Float32, Shape{4}, base.Bytes()))
	col := Must(FromBytes(Float32, Shape{4, 1}, base.Bytes()))
	lead := Must(FromBytes(Float32, Shape{1, 2, 2}, base.Bytes()))
	minus := base.Clone()
	Of[float32](minus)[0] = float32(math.Copysign(0, -1))
	for name, x := range map[string]*Tensor{"int": ints, "flat": flat, "column": col, "lead": lead, "minus zero": minus} {
		if other, dup := roots[x.Root()]; dup {
			t.Errorf("%s has the root of %s", name, other)
		}
		roots[x.Root()] = name
	}
	empty, emptier := Must(New(Float32, Shape{0, 3})), Must(New(Float32, Shape{3, 0}))
	if empty.Root() == emptier.Root() {
		t.Error("empty tensors of different shapes have one root")
	}
}

func BenchmarkTensorRoot(b *testing.B) {
	x := Must(New(Float32, Shape{1024, 1024}))
	b.SetBytes(int64(len(x.Bytes())))
	b.ReportAllocs()
	for b.Loop() {
		x.Root()
	}
}
