package idx_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/idx"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// file writes a file of a type code, extents and elements.
func file(code byte, extents []uint32, elements string) string {
	b := []byte{0, 0, code, byte(len(extents))}
	for _, d := range extents {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return string(b) + elements
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		panic(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for text, want := range map[string]*tensor.Tensor{
		file(0x08, []uint32{2, 3}, "\x00\x01\x02\xfd\xfe\xff"):      tensor.Must(tensor.From(tensor.Shape{2, 3}, []uint8{0, 1, 2, 253, 254, 255})),
		file(0x09, []uint32{1}, "\xff"):                             tensor.Must(tensor.From(tensor.Shape{1}, []int8{-1})),
		file(0x0B, []uint32{2}, "\x01\x02\xff\xfe"):                 tensor.Must(tensor.From(tensor.Shape{2}, []int16{258, -2})),
		file(0x0C, []uint32{1}, "\x00\x00\x01\x02"):                 tensor.Must(tensor.From(tensor.Shape{1}, []int32{258})),
		file(0x0D, []uint32{1}, "\x3f\x80\x00\x00"):                 tensor.Must(tensor.From(tensor.Shape{1}, []float32{1})),
		file(0x0E, []uint32{1}, "\xbf\xf0\x00\x00\x00\x00\x00\x00"): tensor.Must(tensor.From(tensor.Shape{1}, []float64{-1})),
		file(0x08, []uint32{0, 28, 28}, ""):                         tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{0, 28, 28})),
	} {
		for _, text := range []string{text, zipped(text)} {
			if got, err := idx.Read(strings.NewReader(text), int64(len(text)), nil); err != nil || !got.Equal(want) {
				t.Errorf("%q is read as %v (%v), want %v", text, got, err, want)
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "EOF",
		"\x1f\x8b":                            "EOF",
		file(0x0A, []uint32{1}, "\x00"):       "no IDX file",
		"\x01" + file(8, []uint32{1}, "a"):    "no IDX file",
		file(8, nil, "\x00"):                  "0 axes",
		file(8, make([]uint32, 20), ""):       "20 axes",
		file(8, []uint32{1, 2}, "\x00"):       "takes 2 bytes of elements, the file holds 1 at most",
		file(8, []uint32{1}, "\x00\x00"):      "goes on after",
		file(8, []uint32{1 << 31, 7}, "\x00"): "takes 15032385536 bytes",
		file(8, []uint32{1 << 31, 1 << 31, 1 << 31}, "\x00"): "",
		zipped(file(8, []uint32{1 << 30}, "\x00")):           "takes 1073741824 bytes",
		zipped(file(8, []uint32{2}, "\x00")):                 "EOF",
		zipped(file(8, []uint32{1}, "\x00\x00")):             "goes on after",
		damaged(zipped(file(8, []uint32{1}, "\x00"))):        "checksum",
	} {
		if got, err := idx.Read(strings.NewReader(text), int64(len(text)), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %v (%v), want %q", text, got, err, want)
		}
	}
}

// damaged changes the checksum of a gzip file.
func damaged(text string) string {
	b := []byte(text)
	b[len(b)-8]++
	return string(b)
}

// FuzzRead reads arbitrary bytes: a tensor is not larger than what the file can hold.
func FuzzRead(f *testing.F) {
	f.Add([]byte(file(8, []uint32{2, 1}, "ab")))
	f.Add([]byte(file(0x0E, []uint32{1}, "abcdefgh")))
	f.Add([]byte(zipped(file(8, []uint32{1}, "a"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		used := memory.Allocated(func() { _, _ = idx.Read(bytes.NewReader(b), int64(len(b)), nil) })
		if used > 2100*int64(len(b))+memory.Slack {
			t.Fatalf("%d bytes took %d", len(b), used)
		}
	})
}
