package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
)

// Records that a machine has no room for are not held, and what reads them fails by that; what is here needs no more room. Records that are too
// long to be checked in memory are no records in parts.
func TestRecordsNeedRoom(t *testing.T) {
	whole := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{40_000, 3}))
	file, full, asked := canon.Encode(whole.Encode), errors.New("full"), int64(0)
	x, err := newRecords(merkle.Crown(whole, 1), uint64(len(file)), Files{Folder: t.TempDir(), Room: func(n int64) error {
		if asked = n; n > 250_000 {
			return full
		}
		return nil
	}}, func(_ context.Context, at, n int64) (io.Reader, error) { return bytes.NewReader(file[at:][:n]), nil })
	if err != nil {
		t.Fatal(err)
	}
	var local localError
	if err := x.hold(t.Context(), 0, 100); err != nil || asked < 100*3*4 {
		t.Errorf("%v, room for %d bytes", err, asked)
	}
	for range 2 { // what failed is not counted again
		if err := x.hold(t.Context(), 0, 40_000); !errors.Is(err, full) || !errors.As(err, &local) || asked > int64(len(file)) {
			t.Errorf("beyond the room: %v, %d bytes", err, asked)
		}
	}
	if err := x.hold(t.Context(), 0, 100); err != nil {
		t.Error(err)
	}
	c := &tensor.Crown{Type: tensor.Int32, Shape: tensor.Shape{31, 1 << 27}, Tops: make([]canon.Hash, 1<<14)}
	if _, err := newRecords(c, 31<<29+10, Files{Folder: t.TempDir()}, nil); err == nil || InParts(c.Shape) {
		t.Errorf("a band of 15 GiB: %v", err)
	}
	file[1] ^= 1
	var unfit *UnfitError
	if err := x.checkAll(t.Context()); !errors.As(err, &unfit) {
		t.Errorf("a file that does not begin as it should: %v", err)
	}
}

// Whatever the extent of a record, what is asked for is here afterwards, was checked, and is what the file holds.
func TestRecordsOfAnyExtentAreReadInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range []tensor.Shape{{1, 1}, {33, 1}, {40_000, 3}, {3000, 200}, {100, 9000}, {65, 33_000}} {
		whole := tensor.Must(tensor.New(tensor.Int32, s))
		for i := range tensor.Of[int32](whole) {
			tensor.Of[int32](whole)[i] = r.Int32()
		}
		file := canon.Encode(whole.Encode)
		read := int64(0)
		part := func(_ context.Context, at, n int64) (io.Reader, error) {
			read += n
			return bytes.NewReader(file[at:][:n]), nil
		}
		crown := merkle.Crown(whole, 2)
		x, err := newRecords(crown, uint64(len(file)), Files{Folder: t.TempDir()}, part)
		if err != nil {
			t.Fatal(err)
		}
		row := s[1] * 4
		for range 8 {
			first := r.IntN(s[0])
			n := 1 + r.IntN(s[0]-first)
			if err := x.hold(t.Context(), first, n); err != nil {
				t.Fatalf("%v: records %d to %d: %v", s, first, first+n-1, err)
			}
			if from, to := first*row, (first+n)*row; !bytes.Equal(x.Bytes()[from:to], whole.Bytes()[from:to]) {
				t.Fatalf("%v: records %d to %d are others", s, first, first+n-1)
			}
			before := read
			if err := x.hold(t.Context(), first, n); err != nil || read != before {
				t.Errorf("%v: what is here is read again, %v", s, err)
			}
		}
		if err := x.read(t.Context(), 0, len(crown.Tops), nil); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		file[int(x.head)+r.IntN(len(file)-int(x.head))] ^= 1
		fresh, err := newRecords(crown, uint64(len(file)), Files{Folder: t.TempDir()}, part)
		if err != nil {
			t.Fatal(err)
		}
		var unfit *UnfitError
		if err := fresh.hold(t.Context(), 0, s[0]); !errors.As(err, &unfit) {
			t.Errorf("%v: a false record is held: %v", s, err)
		}
	}
}

// A loss that is no number was shown as 0 once it had gone through JSON.
func TestLossThatIsNoNumberStaysSo(t *testing.T) {
	for _, loss := range []Loss{Loss(math.NaN()), 0, 1.5} {
		b, err := json.Marshal([]Loss{loss})
		var back []Loss
		if err = errors.Join(err, json.Unmarshal(b, &back)); err != nil || back[0] != loss && Finite(float32(loss)) || Finite(float32(back[0])) != Finite(float32(loss)) {
			t.Errorf("%v became %v by %s, %v", loss, back, b, err)
		}
	}
}
