package formats

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/format/tokenizer/learn"
)

// Files of the folder.
const (
	TextName      = "text.txt"
	TokenizerName = "tokenizer.json"
	WeightsName   = "weights.safetensors"
)

// Tables are the names of CSV files, by what their columns hold.
var Tables = []string{"integers", "rounded", "doubles", "categories"}

// Sizes of the files.
const (
	textBytes   = 100 << 20
	tableRows   = 500_000
	tableWidth  = 8
	vocabulary  = 8192
	distinct    = 50_000 // words of the text
	weightsEach = 1 << 24
	weightsAll  = 16 // tensors of 64 MiB
)

// Make makes the files that are not there.
func Make(ctx context.Context, dir string) error {
	makers := map[string]func(io.Writer, *rand.Rand) error{TextName: writeText, WeightsName: writeWeights}
	order := []string{TextName, WeightsName}
	for _, name := range Tables {
		makers[name+".csv"] = func(w io.Writer, r *rand.Rand) error { return writeTable(w, r, name) }
		order = append(order, name+".csv")
	}
	for i, name := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := create(filepath.Join(dir, name), func(w io.Writer) error { return makers[name](w, rand.New(rand.NewPCG(1, uint64(i)))) }); err != nil {
			return err
		}
	}
	return create(filepath.Join(dir, TokenizerName), func(w io.Writer) error {
		f, err := os.Open(filepath.Join(dir, TextName))
		if err != nil {
			return err
		}
		defer f.Close()
		var words learn.Words
		if err := words.Read(ctx, io.LimitReader(f, 8<<20), nil); err != nil {
			return err
		}
		t, err := words.Train(ctx, learn.Options{Vocabulary: vocabulary})
		if err != nil {
			return err
		}
		_, err = w.Write(t.Encoded())
		return err
	})
}

// create writes a file as a whole, unless it is there.
func create(name string, write func(io.Writer) error) error {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Create(name + ".partial")
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(b), b.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".partial", name)
}

// writeText writes lines of words, of which the n-th is as frequent as in natural language: by 1/n.
func writeText(w io.Writer, r *rand.Rand) error {
	const letters = "etaoinshrdlucmfwypvbgkjqxz"
	words := make([]string, distinct)
	for i := range words {
		var b strings.Builder
		for range 2 + r.IntN(9) {
			b.WriteByte(letters[min(r.IntN(26), r.IntN(26))])
		}
		words[i] = b.String()
	}
	z := rand.NewZipf(r, 1.1, 2, distinct-1)
	for n := 0; n < textBytes; {
		var b strings.Builder
		for range 5 + r.IntN(20) {
			word := words[z.Uint64()]
			switch r.IntN(24) {
			case 0:
				word = strings.ToUpper(word[:1]) + word[1:]
			case 1:
				word += ","
			case 2:
				word = fmt.Sprint(r.IntN(2100))
			}
			b.WriteString(word)
			b.WriteByte(' ')
		}
		line := strings.TrimSpace(b.String()) + ".\n"
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
		n += len(line)
	}
	return nil
}

// writeTable writes a CSV file of columns of one kind.
func writeTable(w io.Writer, r *rand.Rand, kind string) error {
	names := make([]string, tableWidth)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	if _, err := io.WriteString(w, strings.Join(names, ",")+"\n"); err != nil {
		return err
	}
	cell := map[string]func() string{
		"integers":   func() string { return fmt.Sprint(r.IntN(1_000_000)) },
		"rounded":    func() string { return fmt.Sprintf("%.4f", r.NormFloat64()*100) },
		"doubles":    func() string { return fmt.Sprint(r.NormFloat64()) },
		"categories": func() string { return fmt.Sprintf("kind-%d", r.IntN(40)) },
	}[kind]
	row := make([]string, tableWidth)
	for range tableRows {
		for i := range row {
			row[i] = cell()
		}
		if _, err := io.WriteString(w, strings.Join(row, ",")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// writeWeights writes a gigabyte of tensors.
func writeWeights(w io.Writer, r *rand.Rand) error {
	all := map[string]*tensor.Tensor{}
	for i := range weightsAll {
		t, err := tensor.New(tensor.Float32, tensor.Shape{weightsEach})
		if err != nil {
			return err
		}
		x := tensor.Of[float32](t)
		for j := range x {
			x[j] = float32(r.Uint32()) / (1 << 32)
		}
		all[fmt.Sprintf("layer%02d", i)] = t
	}
	return safetensors.Write(w, all, nil)
}
