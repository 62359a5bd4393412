// Package source reads the files and folders that people have data in, as tables.
//
// Call [Open] with the path of a file or a folder, or [Read] with a file that is open. [Select] finds the files of one
// table among many. The end of a file's name says the format:
//
//	.csv .tsv             text (package delimited)
//	.jsonl .ndjson        lines of JSON (package jsonlines)
//	.parquet              package parquet
//	.npz .safetensors     a column for each tensor
//	.npy                  one column, called as the file is without its end
//	-idx3-ubyte .idx3 …   MNIST's files, also with .gz: one column, "image" of three axes and bytes, else "label"
//
// Files of other records of one table are put one behind another; several files of the same records are joined by [table.Join].
//
// Invariants: those of the readers: nothing is allocated that a file only claims. Files of text are bounded by [MaxText]. What is read lies
// in memory of the options' allocator: a table is to be held by whoever uses what it holds.
//
// Sources: docs/spec/tables.md.
package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/delimited"
	"github.com/tally-network/tally/format/idx"
	"github.com/tally-network/tally/format/images"
	"github.com/tally-network/tally/format/jsonlines"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/parquet"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/bounded"
)

// MaxText bounds a file of text in bytes.
const MaxText = 4 << 30

// Options are what the reader is told. Nothing of it needs to be.
type Options struct {
	Kinds     map[string]table.Kind // of columns by name
	Separator byte                  // of text; 0: found out
	Header    delimited.Header      // of text
	Missing   []string              // words of text that stand for no value, beside the usual
	Images    images.Options        // of a folder of images
	Allocator tensor.Allocator      // of what is read
}

// reader reads a file of one format.
type reader func(name string, src io.ReaderAt, size int64, o Options) (*table.Table, error)

// formats are the readers of files by the ends of their names; idxName is that of others.
var formats = map[string]reader{
	".csv": readText,
	".tsv": func(name string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
		if o.Separator == 0 {
			o.Separator = '\t'
		}
		return readText(name, src, size, o)
	},
	".jsonl": readJSON, ".ndjson": readJSON,
	".parquet": func(_ string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
		return as(o.Kinds)(parquet.Read(src, size, o.Allocator))
	},
	".npz": func(_ string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
		all, err := npy.ReadArchive(src, size, o.Allocator)
		return as(o.Kinds)(tensors(all, err))
	},
	".safetensors": func(_ string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
		all, _, err := safetensors.Read(src, size, o.Allocator)
		return as(o.Kinds)(tensors(all, err))
	},
	".npy": func(name string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
		t, err := npy.Read(src, size, o.Allocator)
		stem := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		return as(o.Kinds)(tensors(map[string]*tensor.Tensor{stem: t}, err))
	},
}

// Ends returns the ends of the names of files that can be read, MNIST's aside.
func Ends() []string { return slices.Sorted(maps.Keys(formats)) }

var idxName = regexp.MustCompile(`(?i)[.-]idx[1-9](-ubyte)?(\.gz)?$`)

// Open returns the table in a file, in a folder of files or images, or in the files of a folder that a pattern names.
func Open(name string, o Options) (*table.Table, error) {
	info, err := os.Stat(name)
	isFolder, isGlob := err == nil && info.IsDir(), err != nil && HasGlob(filepath.Base(name))
	if isFolder || isGlob {
		folder, pattern := name, ""
		if isGlob {
			folder, pattern = filepath.Split(name)
		}
		root, err := os.OpenRoot(cmp.Or(folder, ".")) // follows no link out of it
		if err != nil {
			return nil, err
		}
		open := func(file string) (*os.File, int64, error) { return bounded.Open(filepath.Join(folder, file)) }
		t, err := ReadFolder(root.FS(), open, pattern, o)
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return t, nil
	}
	f, size, err := bounded.Open(name)
	if err != nil {
		return nil, err
	}
	t, err := Read(name, f, size, o)
	return t, errors.Join(err, f.Close())
}

// Read returns the table in the first size bytes of a file of a name.
func Read(name string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
	read := formats[strings.ToLower(filepath.Ext(name))]
	if idxName.MatchString(name) {
		read = readIDX
	}
	if read == nil {
		return nil, fmt.Errorf("%s: the end of its name is none of %s: convert it, or name a folder of images", name, strings.Join(Ends(), ", "))
	}
	t, err := read(name, src, size, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o.remembered(t), nil
}

// remembered has what is made of a table's columns lie where they do.
func (o *Options) remembered(t *table.Table) *table.Table {
	for _, c := range t.Columns {
		c.Allocator = o.Allocator
	}
	return t
}

func readText(_ string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
	text, err := whole(src, size, o.Allocator)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(text) // its memory may not be Go's
	return delimited.Read(text.Bytes(), delimited.Options{Separator: o.Separator, Header: o.Header, Kinds: o.Kinds, Missing: o.Missing, Allocator: o.Allocator})
}

func readJSON(_ string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
	text, err := whole(src, size, o.Allocator)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(text)
	return jsonlines.Read(text.Bytes(), jsonlines.Options{Kinds: o.Kinds, Allocator: o.Allocator})
}

// whole returns a file of text, whose last line has an end. It is used as long as its tensor is held.
func whole(src io.ReaderAt, size int64, alloc tensor.Allocator) (*tensor.Tensor, error) {
	if size > MaxText {
		return nil, fmt.Errorf("%d bytes of text, limit %d: write a .parquet or .safetensors file", size, int64(MaxText))
	}
	t, err := alloc.New(tensor.Uint8, tensor.Shape{int(size) + 1})
	if err != nil {
		return nil, err
	}
	t.Bytes()[size] = '\n'
	_, err = io.ReadFull(io.NewSectionReader(src, 0, size), t.Bytes()[:size])
	return t, err
}

func readIDX(_ string, src io.ReaderAt, size int64, o Options) (*table.Table, error) {
	t, err := idx.Read(src, size, o.Allocator)
	if err != nil {
		return nil, err
	}
	name := "label"
	if len(t.Shape) == 3 && t.Type == tensor.Uint8 {
		name = "image"
	}
	c, err := table.Of(name, t)
	if err == nil && name == "image" {
		c, err = c.As(table.Image)
	}
	if err != nil {
		return nil, err
	}
	return as(o.Kinds)(table.New(c))
}

// tensors returns a table of tensors by name.
func tensors(all map[string]*tensor.Tensor, err error) (*table.Table, error) {
	if err != nil {
		return nil, err
	}
	var columns []*table.Column
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c, err := table.Of(name, all[name])
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return table.New(columns...)
}

// as returns what makes columns of a table of other kinds.
func as(kinds map[string]table.Kind) func(*table.Table, error) (*table.Table, error) {
	return func(t *table.Table, err error) (*table.Table, error) {
		if err != nil {
			return nil, err
		}
		columns := slices.Clone(t.Columns)
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			c, err := t.Column(name)
			if err != nil {
				return nil, err
			}
			if columns[slices.Index(t.Columns, c)], err = c.As(kinds[name]); err != nil {
				return nil, err
			}
		}
		return table.New(columns...)
	}
}
