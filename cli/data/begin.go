package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/consume/dataset"
)

// Begun is an order that was begun for data.
type Begun struct {
	*dataset.Proposal
	File       string `json:"order_file"`
	Model      string `json:"model"`
	Parameters int    `json:"parameters"`
	Outside    bool   `json:"outside"` // the data are a folder, which stays where it is
}

// tokenizerName is the file of a tokenizer in a model's folder.
const tokenizerName = "tokenizer.json"

// maxCopy bounds a file of data that is copied beside its order.
const maxCopy = 1 << 30

// Begin writes an order file and a model for data to a directory, and copies the data there if it is one file. It
// replaces no file.
func Begin(ctx context.Context, dir string, o dataset.Options, seed uint64) (*Begun, error) {
	elsewhere := o.Source
	folders, err := o.Bring(ctx, Progress(os.Stderr))
	if err != nil {
		return nil, err
	}
	t, err := o.Read(append(folders, filepath.Dir(filepath.Clean(o.Source))), 0, 0)
	if err != nil {
		return nil, err
	}
	beside := ""
	if o.Text.Tokenizer != "" && o.Text.Tokenizer != dataset.Bytes {
		if beside = filepath.Clean(o.Text.Tokenizer); filepath.Base(beside) == tokenizerName {
			beside = filepath.Dir(beside)
		}
	}
	e, err := o.Encoder([]string{beside})
	if err != nil {
		return nil, err
	}
	if beside != "" {
		o.Text.Tokenizer = tokenizerName
	}
	source := o.Source
	r := &Begun{File: filepath.Join(dir, "order.yaml"), Model: filepath.Join(dir, "model.onnx")}
	if folders != nil {
		o.Source = elsewhere
	} else if info, err := os.Stat(source); err == nil && info.IsDir() {
		r.Outside = true
		if o.Source, err = filepath.Abs(source); err != nil {
			return nil, err
		}
	} else {
		o.Source = filepath.Base(source)
	}
	if r.Proposal, err = o.Propose(t, e); err != nil {
		return nil, err
	}
	a, err := zoo.Find(r.Architecture)
	if err != nil {
		return nil, err
	}
	m, err := a.New(r.Settings, seed)
	if err != nil {
		return nil, err
	}
	b, err := onnx.Write(m.Graph)
	if err != nil {
		return nil, err
	}
	r.Parameters = m.Parameters
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if !r.Outside && folders == nil {
		for _, name := range o.Files() {
			if err := copied(filepath.Join(dir, name), filepath.Join(filepath.Dir(source), name)); err != nil {
				return nil, err
			}
		}
	}
	if err := r.copyTexts(dir, beside); err != nil {
		return nil, err
	}
	return r, errors.Join(replace.Create(r.Model, b), replace.Create(r.File, []byte(r.Order(filepath.Base(dir), filepath.Base(r.Model)))))
}

// copyTexts puts what makes tokens of texts into the order's folder: what lies in a model's folder, and a template that is
// proposed.
func (r *Begun) copyTexts(dir, model string) error {
	if model != "" {
		for _, name := range []string{tokenizerName, "tokenizer_config.json", dataset.TemplateName} {
			if err := copied(filepath.Join(dir, name), filepath.Join(model, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if r.Template == "" {
		return nil
	}
	return replace.Create(filepath.Join(dir, dataset.TemplateName), []byte(r.Template))
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
