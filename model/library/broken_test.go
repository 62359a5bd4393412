package library

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/safetensors"
)

// A model whose weights nobody could read is refused when it is pulled, with what is wrong, and leaves nothing.
func TestBrokenWeights(t *testing.T) {
	w := newWorld(t)
	folder := func(change func(all map[string]*tensor.Tensor)) string {
		dir := filepath.Join(t.TempDir(), "broken")
		b := read(t, llama+"/model.safetensors")
		all, _, err := safetensors.Read(bytes.NewReader(b), int64(len(b)), nil)
		if err != nil {
			t.Fatal(err)
		}
		change(all)
		var out bytes.Buffer
		if err := safetensors.Write(&out, all, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{"config.json": read(t, llama+"/config.json"), "model.safetensors": out.Bytes()} { // each alone
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	file := func(change func(of []gguf.Weight) []gguf.Weight) string {
		b := read(t, "../lm/testdata/converted/phi3-long.gguf")
		f, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var all []gguf.Weight
		for _, x := range f.Tensors {
			all = append(all, gguf.Weight{Name: x.Name, Type: x.Type, Shape: x.Shape, Blocks: bytes.NewReader(b[x.At:][:x.Bytes])})
		}
		var out bytes.Buffer
		if err := gguf.Write(&out, f.Metadata, change(all)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "broken.gguf")
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const norm = "model.norm.weight"
	for source, why := range map[string]string{
		folder(func(all map[string]*tensor.Tensor) { delete(all, norm) }): `weight "model.norm.weight" is missing`,
		folder(func(all map[string]*tensor.Tensor) {
			all[norm] = tensor.Must(tensor.New(tensor.Float32, tensor.Shape{17}))
		}): `"model.norm.weight" is float32[17]: want [16]`,
		folder(func(all map[string]*tensor.Tensor) {
			all[norm] = tensor.Must(tensor.New(tensor.Int64, tensor.Shape{16}))
		}): `"model.norm.weight" is int64[16]: want [16] of float32`,
		file(func(of []gguf.Weight) []gguf.Weight { return of[:len(of)-1] }): `weight "output_norm.weight" is missing`,
		file(func(of []gguf.Weight) []gguf.Weight {
			return append(of, gguf.Weight{Name: "blk.0.attn_sinks.weight", Shape: tensor.Shape{1}, Blocks: bytes.NewReader(make([]byte, 4))})
		}): `weight "blk.0.attn_sinks.weight" is none of the family phi3`,
		file(func(of []gguf.Weight) []gguf.Weight {
			for i, x := range of {
				if x.Name == "token_embd.weight" {
					b := make([]byte, 48*34)
					b[34*5+1] = math.MaxUint8 &^ 0x80 // the scale of row 5, no number
					of[i].Type, of[i].Blocks = quant.Q8_0, bytes.NewReader(b)
				}
			}
			return of
		}): `tensor "token_embd.weight"`,
	} {
		w.refuses(t, source, why)
		if entries, err := os.ReadDir(w.folder("broken")); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v (%v)", why, entries, err)
		}
	}
	if e := w.pull(t, folder(func(all map[string]*tensor.Tensor) {
		maps.DeleteFunc(all, func(string, *tensor.Tensor) bool { return false })
	})); e.Problem != "" {
		t.Error(e.Problem)
	}
}
