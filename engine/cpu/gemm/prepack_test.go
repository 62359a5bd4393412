package gemm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

var update = flag.Bool("update", false, "write the golden file of packed weights")

// packable are primitives of which some operand is worth packing once.
func packable() map[string]*tensor.Primitive {
	return map[string]*tensor.Primitive{
		"product": kerneltest.MatMul(70, 300, 500), "long terms": kerneltest.MatMul(40, 2100, 50), "batch": kerneltest.Batched(3, 40, 33, 50, false),
		"halves": kerneltest.Typed(kerneltest.MatMul(40, 50, 60), tensor.BFloat16), "bytes": kerneltest.Typed(kerneltest.MatMul(70, 301, 90), tensor.Uint8),
		"vector": shape{0, 1, 70, 90}.primitive(tensor.Float32, true), "few rows": shape{0, 3, 4100, 40}.primitive(tensor.Float32, true),
		"signed bytes": kerneltest.Typed(kerneltest.MatMul(70, 301, 90), tensor.Int8),
		"convolution":  convolution{1, 16, 14, 40, 3, 1, 1, 1}.primitive(), "groups": convolution{1, 64, 14, 64, 1, 1, 0, 4}.primitive(),
	}
}

// constants returns what p's kernel would pack, if all its operands were constant.
func constants(p *tensor.Primitive, set *asm.KernelSet) []kernel.Weight {
	k, ok := gemm.New(p, set).(kernel.Prepacker)
	if !ok { // the set has no kernels for these types
		return nil
	}
	return k.Weights(func(int) bool { return true })
}

// A packed weight that is whole holds all of its constant, bit for bit.
func TestPackedWeightsHoldTheirConstants(t *testing.T) {
	for name, p := range packable() {
		for _, set := range asm.Sets() {
			found := constants(p, set)
			if len(found) == 0 && set.Int8.GEMM != nil {
				t.Errorf("%s, %s: nothing is packed", name, set.Name)
			}
			for _, w := range found {
				x := kerneltest.Normal(p.Args[w.Operand()].Type, p.Args[w.Operand()].Shape)
				packed := make([]byte, w.Bytes())
				if err := w.Pack(t.Context(), packed, x); err != nil {
					t.Fatal(err)
				}
				if !w.Whole() {
					t.Errorf("%s, %s: operand %d is not packed as a whole", name, set.Name, w.Operand())
				} else if got, err := w.Unpack(packed); err != nil || !got.Equal(x) {
					t.Errorf("%s, %s: operand %d is another one when it is unpacked: %v", name, set.Name, w.Operand(), err)
				}
			}
		}
	}
}

// Packing ends soon after its context is done.
func TestPackingStops(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	p := kerneltest.MatMul(70, 300, 500)
	for _, w := range constants(p, asm.Sets()[0]) {
		x := kerneltest.Normal(tensor.Float32, p.Args[w.Operand()].Shape)
		if err := w.Pack(done, make([]byte, w.Bytes()), x); !errors.Is(err, context.Canceled) {
			t.Errorf("operand %d: %v", w.Operand(), err)
		}
	}
}

// Files of packed weights outlive the program that made them. So the same layout must give
// the same bytes in the next version too, or layoutVersion be another.
func TestLayoutsNameTheirBytes(t *testing.T) {
	const file = "testdata/packed.golden"
	golden := map[string]string{} // by layout
	if text, err := os.ReadFile(file); err == nil {
		for line := range strings.Lines(string(text)) {
			sum, layout, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			golden[layout] = sum
		}
	}
	known := 0
	for name, p := range packable() {
		for _, set := range asm.Sets() {
			for _, w := range constants(p, set) {
				packed := make([]byte, w.Bytes())
				if err := w.Pack(t.Context(), packed, kerneltest.Normal(p.Args[w.Operand()].Type, p.Args[w.Operand()].Shape)); err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256(packed)
				got := hex.EncodeToString(sum[:8])
				if want, ok := golden[w.Layout()]; ok && want != got && !*update {
					t.Errorf("%s, %s: layout %q gives other bytes: change layoutVersion, then -update", name, set.Name, w.Layout())
				} else if ok {
					known++
				}
				golden[w.Layout()] = got
			}
		}
	}
	if known == 0 {
		t.Log("no layout is in the golden file: sizes of blocks have changed, so -update")
	}
	if *update {
		var lines []string
		for layout, sum := range golden {
			lines = append(lines, fmt.Sprintln(sum, layout))
		}
		slices.Sort(lines)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// Few rows times a constant matrix given by columns, which is read from panels instead.
func TestFewRowsOfConstants(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, s := range []shape{{0, 1, 16, 16}, {0, 1, 4099, 33}, {0, 2, 130, 50}, {0, 7, 64, 100}, {0, 13, 48, 17}} {
		for _, from := range [][]float64{kerneltest.NearTies, kerneltest.Wild} {
			p := s.primitive(tensor.Float32, true)
			args := []*tensor.Tensor{kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, from...), kerneltest.Drawn(r, tensor.Float32, p.Args[1].Shape, from...)}
			kerneltest.Compare(t, fmt.Sprint(s), p, args...)
		}
	}
}
