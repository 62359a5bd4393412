package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/encoder"
	"github.com/tally-network/tally/model/files"
)

// Description is what a model's files say of it; one of both is not nil.
type Description struct {
	Language *files.Description
	Encoder  *encoder.Description
}

// Describe reads what the files at a path say of their model; no weights.
func Describe(path string) (d Description, err error) {
	if d.Language, err = files.Describe(path); err == nil {
		return d, nil
	}
	e, encoderErr := encoder.Describe(path)
	if encoderErr != nil {
		return d, err
	}
	return Description{Encoder: e}, nil
}

// Files is a model as its files have it: a language model, or an encoder.
type Files struct {
	Language    *files.Files     // nil of an encoder
	Encoder     *encoder.Encoder // nil of a language model
	Tokenizer   *tokenizer.Tokenizer
	Description Description
}

// maxTokenizer bounds tokenizer.json, in bytes.
const maxTokenizer = 64 << 20

// Open opens a GGUF file, or a folder as Hugging Face has them.
func Open(path string) (*Files, error) {
	d, err := Describe(path)
	if err != nil {
		return nil, err
	}
	f := &Files{Description: d}
	if d.Encoder == nil {
		if f.Language, err = files.Open(path); err == nil {
			f.Tokenizer = f.Language.Tokenizer
		}
		return f, err
	}
	return f, f.openEncoder(path)
}

// openEncoder reads a sentence encoder.
func (f *Files) openEncoder(dir string) error {
	text, err := bounded.ReadFile(filepath.Join(dir, "tokenizer.json"), maxTokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no tokenizer.json: save the tokenizer with transformers, which writes one", dir)
	} else if err != nil {
		return err
	}
	if f.Tokenizer, err = tokenizer.Parse(text); err != nil {
		return err
	}
	if f.Encoder, err = encoder.Open(dir); err != nil {
		return err
	}
	if n := f.Encoder.Vocabulary; f.Tokenizer.Size() > n {
		return fmt.Errorf("the tokenizer has %d tokens, the weights %d: they are of different models", f.Tokenizer.Size(), n)
	}
	return nil
}
