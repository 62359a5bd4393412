package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
)

// Texts are the files of a model that are no weights, by their names, with slashes. Of a GGUF file it is its header, which is called as headerName says.
type Texts map[string][]byte

// The names of files that are read, and how many bytes each may have.
const (
	configName     = "config.json"
	generationName = "generation_config.json"
	tokenizerName  = "tokenizer.json"
	tokensName     = "tokenizer_config.json"
	templateName   = "chat_template.jinja"
	toolUseName    = "additional_chat_templates/tool_use.jinja"
	headerName     = "header.gguf"

	maxText = 4 << 20
)

var maxBytes = map[string]int64{
	configName: maxText, generationName: maxText, tokenizerName: 64 << 20, tokensName: chat.MaxConfig, templateName: maxText, toolUseName: maxText,
	headerName: gguf.MaxHeader,
}

// ReadTexts reads them at a path.
func ReadTexts(path string) (Texts, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		text, err := header(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return Texts{headerName: text}, nil
	}
	all := Texts{}
	for name, most := range maxBytes { // each alone
		text, err := bounded.ReadFile(filepath.Join(path, filepath.FromSlash(name)), most)
		switch {
		case errors.Is(err, fs.ErrNotExist) || name == headerName:
		case err != nil:
			return nil, err
		default:
			all[name] = text
		}
	}
	return all, nil
}

func header(path string) ([]byte, error) {
	file, size, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := gguf.Read(file, size)
	if err != nil {
		return nil, err
	}
	text := make([]byte, f.Header)
	_, err = file.ReadAt(text, 0)
	return text, err
}

// gguf reads a header. The weights behind it may be of any size.
func (t Texts) gguf() (*gguf.File, error) {
	return gguf.Read(bytes.NewReader(t[headerName]), math.MaxInt64/2)
}

// Template returns the chat template, nil if there is none.
func (t Texts) Template() (template *chat.Template, err error) {
	if t[headerName] != nil {
		f, err := t.gguf()
		if err != nil {
			return nil, err
		}
		template, err = chat.FromGGUF(f)
		return unlessNone(template, err)
	}
	return unlessNone(chat.FromFolder(chat.Folder{Config: t[tokensName], Template: t[templateName], ToolUse: t[toolUseName]}))
}

func unlessNone(t *chat.Template, err error) (*chat.Template, error) {
	if errors.Is(err, chat.ErrNoTemplate) {
		return nil, nil
	}
	return t, err
}

// Parts are what clients of a model need of it.
type Parts struct {
	Config    *family.Config
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil if it has no chats
	Ends      []int32        // tokens that end a reply
	Forms     *lm.Forms      // binds its replies
}

// Parse reads the parts from texts.
func (t Texts) Parse() (*Parts, error) {
	p := &Parts{}
	err := error(nil)
	if t[headerName] != nil {
		err = p.parseGGUF(t)
	} else {
		err = p.parseFolder(t)
	}
	if err != nil {
		return nil, err
	}
	if p.Template, err = t.Template(); err != nil {
		return nil, err
	}
	if n := p.Config.Vocabulary; p.Tokenizer.Size() > n {
		return nil, fmt.Errorf("the tokenizer has %d tokens, the weights %d: they are of different models", p.Tokenizer.Size(), n)
	}
	p.Forms = lm.NewForms(p.words)
	slices.Sort(p.Ends)
	p.Ends = slices.Compact(p.Ends)
	p.Ends = slices.DeleteFunc(p.Ends, func(id int32) bool { return id < 0 || int(id) >= p.Config.Vocabulary })
	return p, nil
}

// words returns what the model's tokens add to a text.
func (p *Parts) words() *grammar.Vocabulary {
	return grammar.NewVocabulary(p.Tokenizer.Size(), func(id int32) []byte {
		text, _ := p.Tokenizer.Bytes(id)
		return text
	})
}

func (p *Parts) parseFolder(t Texts) (err error) {
	switch {
	case t[configName] == nil:
		return fmt.Errorf("there is no %s: take the folder as Hugging Face has it", configName)
	case t[tokenizerName] == nil:
		return fmt.Errorf("there is no %s: save the tokenizer with transformers, which writes one", tokenizerName)
	}
	if p.Config, err = family.Parse(t[configName]); err != nil {
		return err
	}
	if p.Tokenizer, err = tokenizer.Parse(t[tokenizerName]); err != nil {
		return err
	}
	return p.endings(t[tokensName], t[generationName], t[configName])
}

func (p *Parts) parseGGUF(t Texts) error {
	f, err := t.gguf()
	if err != nil {
		return err
	}
	if p.Config, err = family.ParseGGUF(f); err != nil {
		return err
	}
	g, err := tokenizer.FromGGUF(f)
	if err != nil {
		return err
	}
	p.Ends = g.Ends()
	spec, err := g.Spec()
	if err != nil {
		return err
	}
	p.Tokenizer, err = tokenizer.New(spec)
	return err
}

// endings reads which tokens end replies: those of generation_config.json, else of config.json; and eos_token of tokenizer_config.json.
func (p *Parts) endings(tokens, generation, config []byte) error {
	for _, text := range [][]byte{generation, config} {
		var c struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		if text == nil {
			continue
		}
		if err := json.Unmarshal(text, &c); err != nil {
			return fmt.Errorf("eos_token_id: %w", err)
		}
		if one := int32(0); json.Unmarshal(c.EOS, &one) == nil && string(c.EOS) != "null" {
			p.Ends = append(p.Ends, one)
		} else if len(c.EOS) > 0 && json.Unmarshal(c.EOS, &p.Ends) != nil {
			return fmt.Errorf("eos_token_id is %.40s: want an id, or several", c.EOS)
		}
		if len(p.Ends) > 0 {
			break
		}
	}
	var c struct {
		EOS json.RawMessage `json:"eos_token"`
	}
	if tokens == nil {
		return nil
	}
	if err := json.Unmarshal(tokens, &c); err != nil {
		return fmt.Errorf("tokenizer_config.json: %w", err)
	}
	var name string
	var added struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(c.EOS, &name) != nil && json.Unmarshal(c.EOS, &added) == nil {
		name = added.Content
	}
	if id, ok := p.Tokenizer.ID(name); ok && name != "" {
		p.Ends = append(p.Ends, id)
	}
	return nil
}

// Files is a model as its files have it.
type Files struct {
	*Parts
	Texts       Texts
	Weights     *lm.Model
	Description *Description
	roots       map[string]canon.Hash // of the weights, once they are hashed
	base        *Files                // of an adapted model
}

// Adapted returns the model with the adapter in a folder as PEFT writes it. Both share all that they have in common.
func (f *Files) Adapted(dir string) (*Files, error) {
	a, err := lm.ReadAdapter(dir)
	if err != nil {
		return nil, err
	}
	out, d := *f, *f.Description
	if out.Weights, err = f.Weights.Adapted(dir); err != nil {
		return nil, err
	}
	d.Adapter = adapterOf(a)
	d.Bytes, d.Parameters, d.Memory = d.Bytes+a.Bytes, d.Parameters+a.Parameters, d.Memory+a.Bytes
	out.base, out.roots, out.Description = f, nil, &d
	return &out, nil
}

// Open opens a GGUF file, or a folder as Hugging Face has them.
func Open(path string) (*Files, error) {
	d, err := Describe(path)
	if err != nil {
		return nil, err
	}
	f := &Files{Description: d}
	if f.Texts, err = ReadTexts(path); err != nil {
		return nil, err
	}
	if f.Parts, err = f.Texts.Parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Texts[headerName] != nil {
		f.Weights, err = lm.OpenGGUF(path)
	} else {
		f.Weights, err = lm.Open(path)
	}
	if err == nil {
		f.Weights.SetForms(f.Forms)
	}
	return f, err
}

// Template returns the chat template of the model at a path, nil if it has none.
func Template(path string) (*chat.Template, error) {
	t, err := ReadTexts(path)
	if err != nil {
		return nil, err
	}
	return t.Template()
}

// NameOf returns what a model is called that lies at a path.
func NameOf(path string) string {
	name := filepath.Base(filepath.Clean(path))
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".gguf") {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
