// Package formats measures how fast files are read that people have data in, and how well models learn from them. Call [Measure] with a folder.
//
// The files are made there, unless they are there already, so that others can be measured on the same ones: bench/peers/formats.py does.
// Each figure is the best of several runs on one thread, with files that the system has in memory.
//
// Invariants: the files are the same on every machine. What is measured is what an order's data go through.
package formats

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/format/delimited"
	"github.com/tally-network/tally/format/parquet"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/store"
)

// Figure is one of them.
type Figure struct {
	Name, Unit string
	Value      float64
	Most       float64 // what is wanted at most; 0: nothing is
	Least      float64 // what is wanted at least, if not 0
}

// runs is how often each figure is measured.
const runs = 3

// best returns the shortest time of several runs, in seconds.
func best(ctx context.Context, do func() error) (float64, error) {
	least := 0.0
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begun := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		if took := time.Since(begun).Seconds(); i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// parts are what is measured, by names with which those of their figures begin.
var parts = []struct {
	name    string
	made    bool // by files that are made here
	measure func(context.Context, string) ([]Figure, error)
}{
	{"shard", true, aside(shard)}, {"consumer", false, aside(consumer)}, {"tokens", true, tokens}, {"csv", true, tables}, {"parquet", true, columns}, {"safetensors", true, weights},
	{"import", true, imports}, {"digits", false, digits},
}

// aside has a measurement work in a folder of its own, which is removed.
func aside(measure func(ctx context.Context, folder string) ([]Figure, error)) func(context.Context, string) ([]Figure, error) {
	return func(ctx context.Context, dir string) (_ []Figure, err error) {
		folder, err := os.MkdirTemp(dir, "bench")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		return measure(ctx, folder)
	}
}

// Measure measures the formats by files in a folder, of the parts whose names have this in them. tell is told of what is done.
func Measure(ctx context.Context, dir, only string, tell func(format string, a ...any)) (all []Figure, err error) {
	made := false
	for _, p := range parts {
		if !strings.Contains(p.name, only) {
			continue
		}
		if p.made && !made {
			tell("making files in %s, unless they are there", dir)
			if err := Make(ctx, dir); err != nil {
				return nil, err
			}
			made = true
		}
		some, err := p.measure(ctx, dir)
		if err != nil {
			return nil, err
		}
		for _, f := range some {
			tell("%s: %.4g %s", f.Name, f.Value, f.Unit)
		}
		all = append(all, some...)
	}
	return all, nil
}

// tokens measures a tokenizer, line by line.
func tokens(ctx context.Context, dir string) ([]Figure, error) {
	b, err := os.ReadFile(filepath.Join(dir, TokenizerName))
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Parse(b)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, TextName))
	if err != nil {
		return nil, err
	}
	took, err := best(ctx, func() error {
		for line := range bytes.Lines(text) {
			if _, err := t.Encode(string(line), false); err != nil {
				return err
			}
		}
		return nil
	})
	return []Figure{{Name: "formats/tokens", Unit: "MB/s", Value: float64(len(text)) / 1e6 / took}}, err
}

// tables measures CSV.
func tables(ctx context.Context, dir string) (all []Figure, err error) {
	for _, name := range Tables {
		text, err := os.ReadFile(filepath.Join(dir, name+".csv"))
		if err != nil {
			return nil, err
		}
		took, err := best(ctx, func() error {
			_, err := delimited.Read(text, delimited.Options{})
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, Figure{Name: "formats/csv/" + name, Unit: "MB/s", Value: float64(len(text)) / 1e6 / took})
	}
	return all, nil
}

// columns measures the Parquet files that another program has written into the folder.
func columns(ctx context.Context, dir string) (all []Figure, err error) {
	for _, name := range Tables {
		f, err := os.Open(filepath.Join(dir, name+".parquet"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		took, err := best(ctx, func() error {
			_, err := parquet.Read(f, size, nil)
			return err
		})
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, Figure{Name: "formats/parquet/" + name, Unit: "MB/s", Value: float64(size) / 1e6 / took})
	}
	return all, nil
}

// weights measures a file of tensors: how long it takes to know what it holds, and to hash it as a model is hashed.
func weights(ctx context.Context, dir string) ([]Figure, error) {
	f, err := os.Open(filepath.Join(dir, WeightsName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	header, err := best(ctx, func() error {
		_, err := safetensors.List(f, size)
		return err
	})
	if err != nil {
		return nil, err
	}
	infos, err := safetensors.List(f, size)
	if err != nil {
		return nil, err
	}
	first := ""
	for name := range infos {
		if first == "" || name < first {
			first = name
		}
	}
	t, err := safetensors.ReadOne(f, size, first)
	if err != nil {
		return nil, err
	}
	root, err := best(ctx, func() error { merkle.Root(t, 1); return nil })
	if err != nil {
		return nil, err
	}
	hash, err := best(ctx, func() error { sha256.Sum256(t.Bytes()); return nil })
	return []Figure{
		{Name: "formats/safetensors/header", Unit: "ms", Value: header * 1e3, Most: 10},
		{Name: "formats/safetensors/root", Unit: "of SHA-256's speed", Value: hash / root, Least: 0.7},
	}, err
}

// imports measures how a file comes into the store: cut, hashed and written.
func imports(ctx context.Context, dir string) (_ []Figure, err error) {
	b, err := os.ReadFile(filepath.Join(dir, WeightsName))
	if err != nil {
		return nil, err
	}
	hash, err := best(ctx, func() error { sha256.Sum256(b); return nil })
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(dir, "store")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	disk, err := best(ctx, func() error { return written(filepath.Join(scratch, "file"), b) })
	if err != nil {
		return nil, err
	}
	n := 0
	took, err := best(ctx, func() error {
		n++
		into := filepath.Join(scratch, fmt.Sprint(n))
		s, err := store.Open(into, 4<<30)
		if err != nil {
			return err
		}
		_, err = s.PutBytes("bench", b)
		return err
	})
	return []Figure{{Name: "formats/import", Unit: "of the slower of disk and SHA-256", Value: max(hash, disk) / took, Least: 0.7}}, err
}

// written writes a file to the disk.
func written(name string, b []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(name))
}
