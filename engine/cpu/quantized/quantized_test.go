package quantized

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/weights"
	"github.com/tally-network/tally/internal/testkit/conform"
)

// drawn returns rows of blocks of any bytes. Some scales are zeros of both signs, subnormal, infinite or NaN.
func drawn(r *rand.Rand, of quant.Type, rows, terms int) *tensor.Tensor {
	elements, size := of.Block()
	w := tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{rows, terms / elements * size}))
	special := []uint16{0, 0x8000, 1, 0x8001, 0x03ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfe00}
	b := w.Bytes()
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for at := 0; at < len(b); at += size {
		for _, scale := range []int{0, 2, 208} {
			if scale+2 > size || scale == 2 && elements == 1 {
				continue
			}
			h := uint16(0x2c00 + r.IntN(256))
			if r.IntN(60) == 0 {
				h = special[r.IntN(len(special))]
			}
			b[at+scale], b[at+scale+1] = byte(h), byte(h>>8)
		}
	}
	return w
}

// multiplied is x · wᵀ, as a primitive.
func multiplied(rows, cols, terms int) *tensor.Primitive {
	dim := func(axis int) tensor.Dim { return tensor.Dim{Terms: []tensor.Term{{Axis: axis, Step: 1}}} }
	return &tensor.Primitive{
		Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{rows, cols}, Fold: []int{terms},
		Args: []tensor.Access{
			{Type: tensor.Float32, Shape: tensor.Shape{rows, terms}, Dims: []tensor.Dim{dim(0), dim(2)}},
			{Type: tensor.Float32, Shape: tensor.Shape{cols, terms}, Dims: []tensor.Dim{dim(1), dim(2)}},
		},
	}
}

// units are terms of which rows can be made.
func units(of quant.Type) int {
	elements, _ := of.Block()
	return elements
}

// A product has the bits of its definition, of every type, by the kernels of every set, packed once or in the run: rows and
// columns that fill no tile, terms that fill no block of 16-bit floats, and values of every kind.
func TestProductsEqualTheirDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, set := range asm.Sets() {
		for _, of := range quant.Types[1:] {
			for i, rows := range []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 1, 2} {
				cols, terms := 1+r.IntN(90), units(of)*(1+r.IntN(3))
				if units(of) == 1 {
					terms = 1 + r.IntN(40)
				}
				w := drawn(r, of, cols, terms)
				p := multiplied(rows, cols, terms)
				x := conform.Tensor(r, tensor.Float32, p.Args[0].Shape)
				floats := tensor.Must(tensor.New(tensor.Float32, p.Args[1].Shape))
				of.Decode(tensor.Of[float32](floats), w.Bytes())
				want := tensor.Must(tensor.New(tensor.Float32, p.Shape))
				d := kernel.ByDefinition(p)
				if err := d.Run(kernel.NewWorker(), want, []*tensor.Tensor{x, floats}, 0, d.Blocks()); err != nil {
					t.Fatal(err)
				}
				k := New(p, 1, of, w, set)
				if k == nil {
					t.Fatalf("%v is not served", of)
				}
				blocks := w
				if i%3 > 0 {
					blocks = packedOnce(t, k, w)
				}
				got := tensor.Must(tensor.New(tensor.Float32, p.Shape))
				for lo := 0; lo < k.Blocks(); lo++ {
					if err := k.Run(kernel.NewWorker(), got, []*tensor.Tensor{x, blocks}, lo, lo+1); err != nil {
						t.Fatal(err)
					}
				}
				for j, y := range tensor.Of[float32](got) {
					if z := tensor.Of[float32](want)[j]; math.Float32bits(y) != math.Float32bits(z) {
						t.Fatalf("%s, %v, %d×%d×%d: element %d is %v, want %v", set.Name, of, rows, cols, terms, j, y, z)
					}
				}
			}
		}
	}
}

// packedOnce lets k use its weights packed, and checks that these are whole.
func packedOnce(t testing.TB, k kernel.Kernel, w *tensor.Tensor) (hollow *tensor.Tensor) {
	t.Helper()
	s, err := weights.New(weights.Options{Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	x := k.(kernel.Prepacker).Weights(func(int) bool { return true })[0]
	packed, err := s.Get(t.Context(), weights.Key{Layout: x.Layout()}, x.Bytes(), func(dst []byte) error { return x.Pack(t.Context(), dst, w) })
	if err != nil {
		t.Fatal(err)
	}
	if y, err := x.Unpack(packed.Bytes()); err != nil || !x.Whole() || !bytes.Equal(y.Bytes(), w.Bytes()) {
		t.Fatalf("%s: what was packed gives other blocks (%v)", x.Layout(), err)
	}
	x.Use(packed)
	return kernel.Hollow(w)
}

// A layout means the same bytes forever: files of packed weights are found by it. Who changes them counts layoutVersion up.
func TestLayoutsKeepTheirBytes(t *testing.T) {
	all := sha256.New()
	for _, of := range quant.Types[1:] {
		terms := 2 * units(of)
		if units(of) == 1 {
			terms = 13
		}
		w := tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{19, terms / units(of) * bytesOf(of)}))
		for i := range w.Bytes() {
			w.Bytes()[i] = byte(i*i>>3 + i)
		}
		x := New(multiplied(1, 19, terms), 1, of, w, asm.Generic).(kernel.Prepacker).Weights(func(int) bool { return true })[0]
		dst := make([]byte, x.Bytes())
		if err := x.Pack(t.Context(), dst, w); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(all, x.Layout())
		all.Write(dst)
	}
	if got, want := fmt.Sprintf("%x", all.Sum(nil)), "de4fb27f10b7583e161699a0d1d5010c5d4b8d80fec30dd1f05da832c170f79f"; got != want {
		t.Errorf("layouts and bytes have the hash %s, want %s", got, want)
	}
}

func bytesOf(of quant.Type) int {
	_, size := of.Block()
	return size
}

// K-blocks are joined by a tree, and what becomes of rows, also of those that lie apart, is what it would be alone.
func TestManyTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, set := range asm.Sets()[:1] {
		for _, terms := range []int{tensor.KBlock, tensor.KBlock + 256, 3*tensor.KBlock + 512} {
			for _, rows := range []int{1, 3, 20} {
				const cols = 21
				w, p := drawn(r, quant.Q4_K, cols, terms), multiplied(rows, cols, terms)
				x := conform.Tensor(r, tensor.Float32, p.Args[0].Shape)
				for i, f := 0, tensor.Of[float32](x); i < len(f); i++ {
					f[i] = float32(r.NormFloat64())
				}
				floats := tensor.Must(tensor.New(tensor.Float32, p.Args[1].Shape))
				quant.Q4_K.Decode(tensor.Of[float32](floats), w.Bytes())
				k, got := New(p, 1, quant.Q4_K, w, set), tensor.Must(tensor.New(tensor.Float32, p.Shape))
				if err := k.Run(kernel.NewWorker(), got, []*tensor.Tensor{x, w}, 0, k.Blocks()); err != nil {
					t.Fatal(err)
				}
				c := kernel.NewCell(p, []*tensor.Tensor{x, floats})
				want := tensor.Must(tensor.New(tensor.Float32, p.Shape))
				for range 20 {
					at := r.IntN(rows * cols)
					if err := kernel.Evaluate(c, want, at); err != nil {
						t.Fatal(err)
					}
					if got.At(at) != want.At(at) {
						t.Fatalf("%d terms, %d rows: element %d is %#x, want %#x", terms, rows, at, got.At(at), want.At(at))
					}
				}
			}
		}
	}
}

// One to eight rows by weights that no cache near the core holds, beside reading as many bytes.
func BenchmarkFewRows(b *testing.B) {
	const cols, terms = 4096, 4096
	r := rand.New(rand.NewPCG(5, 6))
	for _, set := range asm.Sets() {
		if set == asm.Generic {
			continue
		}
		for _, of := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.BF16} {
			w := drawn(r, of, cols, terms)
			for _, rows := range []int{1, 2, 4, 8, 16, 128} {
				b.Run(fmt.Sprintf("%s/%v/%d", set.Name, of, rows), func(b *testing.B) {
					p := multiplied(rows, cols, terms)
					x := tensor.Must(tensor.New(tensor.Float32, p.Args[0].Shape))
					for i := range tensor.Of[float32](x) {
						tensor.Of[float32](x)[i] = r.Float32()
					}
					k, out := New(p, 1, of, w, set), tensor.Must(tensor.New(tensor.Float32, p.Shape))
					args, worker := []*tensor.Tensor{x, packedOnce(b, k, w)}, kernel.NewWorker()
					b.ReportAllocs()
					for b.Loop() {
						if err := k.Run(worker, out, args, 0, k.Blocks()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(len(w.Bytes())*b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
					b.ReportMetric(float64(cols*terms*b.N)/float64(b.Elapsed().Nanoseconds()), "weights/ns")
				})
			}
		}
	}
}
