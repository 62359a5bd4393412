package dataset

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
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

// MaxText bounds a file of text in bytes: it is read whole.
const MaxText = 1 << 30

// readers are the formats of files, by the ends of their names.
var readers = map[string]func(o *Options, src io.ReaderAt, size int64) (*table.Table, error){
	".csv":     delimitedText,
	".tsv":     delimitedText,
	".jsonl":   linesOfJSON,
	".ndjson":  linesOfJSON,
	".parquet": func(_ *Options, src io.ReaderAt, size int64) (*table.Table, error) { return parquet.Read(src, size) },
	".npy": func(_ *Options, src io.ReaderAt, size int64) (*table.Table, error) {
		t, err := npy.Read(src, size)
		return tensors(map[string]*tensor.Tensor{"values": t}, err)
	},
	".npz": func(_ *Options, src io.ReaderAt, size int64) (*table.Table, error) {
		return tensors(npy.ReadArchive(src, size))
	},
	".safetensors": func(_ *Options, src io.ReaderAt, size int64) (*table.Table, error) {
		all, _, err := safetensors.Read(src, size)
		return tensors(all, err)
	},
}

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

func delimitedText(o *Options, src io.ReaderAt, size int64) (*table.Table, error) {
	text, kinds, err := o.text(src, size)
	if err != nil {
		return nil, err
	}
	return delimited.Read(text, delimited.Options{Kinds: kinds})
}

func linesOfJSON(o *Options, src io.ReaderAt, size int64) (*table.Table, error) {
	text, kinds, err := o.text(src, size)
	if err != nil {
		return nil, err
	}
	return jsonlines.Read(text, jsonlines.Options{Kinds: kinds})
}

func (o *Options) text(src io.ReaderAt, size int64) ([]byte, map[string]table.Kind, error) {
	if size > MaxText {
		return nil, nil, fmt.Errorf("%d bytes of text, the limit is %d: write it as Parquet", size, MaxText)
	}
	kinds := map[string]table.Kind{}
	for name, of := range o.Kinds {
		k, err := table.ParseKind(of)
		if err != nil {
			return nil, nil, fmt.Errorf("data.kinds: column %.40q: %w", name, err)
		}
		kinds[name] = k
	}
	b, err := io.ReadAll(io.NewSectionReader(src, 0, size))
	return b, kinds, err
}

// Formats names what Read takes.
func Formats() string {
	return strings.Join(slices.Sorted(maps.Keys(readers)), ", ") + ", a folder of images, or MNIST's idx files"
}

// Read returns the table that the source holds, which lies in one of some folders. Images of a folder get the size of the
// options, or else this one; 0 leaves them as they are.
func (o *Options) Read(folders []string, height, width int) (*table.Table, error) {
	t, err := o.read(folders, height, width)
	if err != nil {
		return nil, fmt.Errorf("data %s: %w", o.Source, err)
	}
	return t, nil
}

func (o *Options) read(folders []string, height, width int) (*table.Table, error) {
	if info, err := os.Stat(o.Source); err == nil && info.IsDir() {
		root, err := bounded.FolderWithin(folders, o.Source)
		if err != nil {
			return nil, outside(err)
		}
		defer root.Close()
		opt := images.Options{Height: height, Width: width}
		if o.Size != [2]int{} {
			opt.Height, opt.Width = o.Size[0], o.Size[1]
		}
		if o.Crop {
			opt.Fit = images.CropCenter
		}
		return images.Read(root.FS(), opt)
	}
	name := strings.ToLower(filepath.Base(o.Source))
	read := readers[filepath.Ext(name)]
	if stem := strings.TrimSuffix(name, ".gz"); read == nil && strings.HasSuffix(stem, "-ubyte") {
		return o.mnist(folders)
	}
	if read == nil {
		return nil, fmt.Errorf("its format is not known by its name: it is %s", Formats())
	}
	f, size, err := bounded.OpenWithin(folders, o.Source)
	if err != nil {
		return nil, outside(err)
	}
	defer f.Close()
	return read(o, f, size)
}

// mnist reads images in the form of MNIST, and the labels that lie beside them under the usual name.
func (o *Options) mnist(folders []string) (*table.Table, error) {
	var columns []*table.Column
	for _, part := range []struct{ column, from, to string }{{"image", "", ""}, {"label", "images-idx3", "labels-idx1"}} {
		f, size, err := bounded.OpenWithin(folders, strings.Replace(o.Source, part.from, part.to, 1))
		if err != nil {
			return nil, outside(err)
		}
		t, err := idx.Read(f, size)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		c, err := table.Of(part.column, t)
		if err != nil {
			return nil, err
		}
		if c.Kind == table.Array && t.Type == tensor.Uint8 && len(t.Shape) == 3 { // without an axis of channels
			c.Kind = table.Image
			t.Shape = append(t.Shape, 1)
		}
		columns = append(columns, c)
	}
	return table.New(columns...)
}

func outside(err error) error {
	if errors.Is(err, bounded.ErrOutside) {
		return fmt.Errorf("%w: all who work on the order would see it. If you want that, copy it beside the order file, or add --allow with its folder", err)
	}
	return err
}
