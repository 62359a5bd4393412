package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
)

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
		x, err := newRecords(crown, uint64(len(file)), t.TempDir(), part)
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
		fresh, err := newRecords(crown, uint64(len(file)), t.TempDir(), part)
		if err != nil {
			t.Fatal(err)
		}
		var unfit *UnfitError
		if err := fresh.hold(t.Context(), 0, s[0]); !errors.As(err, &unfit) {
			t.Errorf("%v: a false record is held: %v", s, err)
		}
	}
}
