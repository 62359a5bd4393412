package quantize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
)

// base is a file of a matrix of each float type, one whose rows are no blocks, and a vector.
func base(t *testing.T, pairs ...gguf.Pair) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	var weights []gguf.Weight
	add := func(name string, of quant.Type, shape ...int) {
		size, err := of.Size(shape)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 0, size)
		for range tensor.Shape(shape).Elements() {
			v := float32(r.NormFloat64())
			switch of {
			case quant.F32:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			case quant.BF16:
				b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
			case quant.F16:
				b = binary.LittleEndian.AppendUint16(b, uint16(tensor.FloatWord(tensor.Float16, float64(v))))
			}
		}
		weights = append(weights, gguf.Weight{Name: name, Type: of, Shape: shape, Blocks: bytes.NewReader(b)})
	}
	add("token_embd.weight", quant.F16, 5, 64)
	add("blk.0.attn_q.weight", quant.F32, 64, 64)
	add("blk.0.attn_k.weight", quant.BF16, 32, 96)
	add("odd.weight", quant.F32, 4, 31)
	add("output_norm.weight", quant.F32, 64)
	var out bytes.Buffer
	if err := gguf.Write(&out, append([]gguf.Pair{{Key: "general.architecture", Data: gguf.Of("llama")}, {Key: typeKey, Data: gguf.Of(uint32(1))}, {Key: "last", Data: gguf.Of("kept")}}, pairs...), weights); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Whoever has the base derives the same file, and finds any bit that is another.
func TestDerivedAgain(t *testing.T) {
	b := base(t)
	r := rand.New(rand.NewPCG(5, 6))
	for to := range fileTypes { // each alone
		var file, again bytes.Buffer
		s, err := Write(&file, bytes.NewReader(b), int64(len(b)), to)
		if err != nil {
			t.Fatal(err)
		}
		if s.Quantised != 3 || s.Kept != 2 || s.Bytes != int64(file.Len()) {
			t.Errorf("%+v of %d bytes", s, file.Len())
		}
		if _, err := Write(&again, bytes.NewReader(b), int64(len(b)), to); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
			t.Errorf("%v: two files of one base, %v", to, err)
		}
		check := func(file []byte) error {
			of, _, err := Compare(bytes.NewReader(file), int64(len(file)), bytes.NewReader(b), int64(len(b)))
			if err == nil && of != to {
				t.Errorf("a file of %v is of %v", to, of)
			}
			return err
		}
		if err := check(file.Bytes()); err != nil {
			t.Error(err)
		}
		f, err := gguf.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for range 50 { // in the weights: a bit of the header may make it no file
			bad := slices.Clone(file.Bytes())
			bad[int(f.Header)+r.IntN(len(bad)-int(f.Header))] ^= 1 << r.IntN(8)
			if err := check(bad); !errors.Is(err, ErrDiffers) {
				t.Fatalf("%v: a bit was flipped, and it says %v", to, err)
			}
		}
		if err := check(append(slices.Clone(file.Bytes()), 0)); !errors.Is(err, ErrDiffers) {
			t.Errorf("a byte more: %v", err)
		}
		if last, err := f.Text("last"); err != nil || last != "kept" || f.Metadata[2].Key != "last" {
			t.Errorf("metadata %v, %v", f.Metadata, err)
		}
		if n, err := f.Uint(typeKey); err != nil || uint32(n) != fileTypes[to] {
			t.Errorf("file type %d, %v", n, err)
		}
	}
}

func TestRefused(t *testing.T) {
	b := base(t)
	var small bytes.Buffer
	if _, err := Write(&small, bytes.NewReader(b), int64(len(b)), quant.Q4_0); err != nil {
		t.Fatal(err)
	}
	for says, f := range map[string]func() error{
		"is Q4_0 already": func() error {
			_, err := Write(&bytes.Buffer{}, bytes.NewReader(small.Bytes()), int64(small.Len()), quant.Q8_0)
			return err
		},
		"no type that weights": func() error {
			_, err := Write(&bytes.Buffer{}, bytes.NewReader(b), int64(len(b)), quant.Q6_K)
			return err
		},
		"can be derived again": func() error {
			_, _, err := Compare(bytes.NewReader(b), int64(len(b)), bytes.NewReader(b), int64(len(b)))
			return err
		},
		"GGUF": func() error { _, err := Write(&bytes.Buffer{}, strings.NewReader("no"), 2, quant.Q8_0); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
