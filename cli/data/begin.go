package data

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/consume/dataset"
)

// Begun is an order that was begun for data.
type Begun struct {
	*dataset.Proposal
	File       string `json:"order_file"`
	Model      string `json:"model"`
	Parameters int    `json:"parameters"`
	Outside    bool   `json:"outside"` // the data are a folder, several files or large, and stay where they are
}

// maxCopy bounds a file that is copied beside its order.
const maxCopy = 1 << 30

// Sketch is what somebody says of an order that is begun for data.
type Sketch struct {
	dataset.Options
	Keep []string // columns that are learnt from even if they look like ids
	Seed uint64   // of the initial weights
}

// Begin writes an order file and a model for data to a directory, and copies the data there if it is one file of at most 1 GiB. It
// replaces no file. progress is told of data that are fetched; it may be nil.
func Begin(ctx context.Context, dir string, o Sketch, progress func(name string, done, total int64)) (*Begun, error) {
	r := &Begun{File: filepath.Join(dir, "order.yaml"), Model: filepath.Join(dir, "model.onnx")}
	in, err := r.open(ctx, o.Options, progress)
	if err != nil {
		return nil, err
	}
	if r.Proposal, err = in.Propose(in.table, in.encoder, o.Keep...); err != nil {
		return nil, err
	}
	a, err := zoo.Find(r.Architecture)
	if err != nil {
		return nil, err
	}
	m, err := a.New(r.Settings, o.Seed)
	if err != nil {
		return nil, err
	}
	model, err := onnx.Write(m.Graph)
	if err != nil {
		return nil, err
	}
	r.Parameters = m.Parameters
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for name, from := range in.copies { // order: each is a file of its own
		if err := copied(filepath.Join(dir, name), from); err != nil {
			return nil, err
		}
	}
	if r.Template != "" {
		if err := replace.Create(filepath.Join(dir, dataset.TemplateName), []byte(r.Template)); err != nil {
			return nil, err
		}
	}
	if err := replace.Create(r.Model, model); err != nil {
		return nil, err
	}
	return r, replace.Create(r.File, []byte(r.Order(filepath.Base(dir), filepath.Base(r.Model))))
}

// opened is what an order is begun for.
type opened struct {
	dataset.Options // as the order file names things
	table           *table.Table
	encoder         *dataset.Encoder  // nil if none is named
	copies          map[string]string // files by their names beside the order
}

// open reads the data, and finds how the order names them.
func (r *Begun) open(ctx context.Context, o dataset.Options, progress func(name string, done, total int64)) (in *opened, err error) {
	in = &opened{copies: map[string]string{}}
	folders, pinned, err := o.Fetch(ctx, []string{o.Source}, progress)
	if err != nil {
		return nil, err
	}
	o.Allocator = scratch.Allocator("")
	if in.table, err = o.Read(append(folders, filepath.Dir(filepath.Clean(o.Source))), 0, 0); err != nil {
		return nil, err
	}
	if in.encoder, err = in.openEncoder(&o); err != nil {
		return nil, err
	}
	in.Options = o
	_, _, several := o.Folder()
	switch {
	case pinned != "":
		in.Source = pinned
	case several || large(&o):
		r.Outside = true
		in.Source, err = filepath.Abs(o.Source)
	default:
		in.Source = filepath.Base(o.Source)
		for _, name := range o.Files() {
			in.copies[name] = filepath.Join(filepath.Dir(o.Source), name)
		}
	}
	return in, err
}

// large reports whether a source has a file that is not copied beside its order.
func large(o *dataset.Options) bool {
	for _, name := range o.Files() {
		if info, err := os.Stat(filepath.Join(filepath.Dir(o.Source), name)); err == nil && info.Size() > maxCopy {
			return true
		}
	}
	return false
}

// openEncoder reads the tokenizer that is named, and has the options name its copy. What lies beside it in a model's folder is
// copied, too.
func (in *opened) openEncoder(o *dataset.Options) (*dataset.Encoder, error) {
	named := o.Text.Tokenizer
	if named == "" || named == dataset.Bytes {
		return o.OpenEncoder(nil)
	}
	folder := filepath.Dir(named)
	if info, err := os.Stat(named); err == nil && info.IsDir() {
		folder, named = named, filepath.Join(named, dataset.TokenizerName)
	}
	in.copies[dataset.TokenizerName] = named
	for _, name := range []string{dataset.TokenizerConfigName, dataset.TemplateName} {
		if path := filepath.Join(folder, name); exists(path) {
			in.copies[name] = path
		}
	}
	folders := []string{folder}
	for _, path := range in.copies { // order: a set. A hub's cache has links to where its files lie.
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		folders = append(folders, filepath.Dir(real))
	}
	e, err := o.OpenEncoder(folders)
	o.Text.Tokenizer = dataset.TokenizerName
	return e, err
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// copied copies a file to one that is not there yet.
func copied(to, from string) error {
	f, size, err := bounded.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if size > maxCopy {
		return fmt.Errorf("%s has %d bytes, more than %d: put it beside the order file yourself", from, size, maxCopy)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil {
		return err
	}
	return replace.Create(to, b)
}
