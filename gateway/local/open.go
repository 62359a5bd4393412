package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/lm"
)

// Files is a model as its files have it.
type Files struct {
	Weights     *lm.Model
	Tokenizer   *tokenizer.Tokenizer
	Template    *chat.Template // nil if it has no chats
	Ends        []int32        // tokens that end a reply
	Description *lm.Description
}

// maxTokenizer and maxText bound tokenizer.json and smaller files, in bytes.
const (
	maxTokenizer = 64 << 20
	maxText      = 4 << 20
)

// Open opens a GGUF file, or a folder as Hugging Face has them.
func Open(path string) (*Files, error) {
	d, err := lm.Describe(path)
	if err != nil {
		return nil, err
	}
	f := &Files{Description: d}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		err = f.openFolder(path)
		return f, err
	}
	if err = f.openGGUF(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// template takes over a template, if there is one.
func (f *Files) template(t *chat.Template, err error) error {
	if f.Template = t; errors.Is(err, chat.ErrNoTemplate) {
		f.Template, err = nil, nil
	}
	return err
}

// Template returns the chat template of the model at a path, nil if it has none.
func Template(path string) (*chat.Template, error) {
	var f Files
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		folder, err := chatFolder(path)
		if err != nil {
			return nil, err
		}
		err = f.template(chat.FromFolder(folder))
		return f.Template, err
	}
	head, err := readGGUF(path)
	if err != nil {
		return nil, err
	}
	err = f.template(chat.FromGGUF(head))
	return f.Template, err
}

// readGGUF reads what a file says of itself; no weights.
func readGGUF(path string) (*gguf.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return gguf.Read(file, info.Size())
}

// chatFolder reads the files of a folder that say how it chats.
func chatFolder(dir string) (f chat.Folder, err error) {
	for _, x := range []struct {
		name string
		most int64
		to   *[]byte
	}{
		{"tokenizer_config.json", chat.MaxConfig, &f.Config}, {"chat_template.jinja", maxText, &f.Template},
		{filepath.Join("additional_chat_templates", "tool_use.jinja"), maxText, &f.ToolUse},
	} {
		if *x.to, err = optional(filepath.Join(dir, x.name), x.most); err != nil {
			return f, err
		}
	}
	return f, nil
}

// optional reads a file that may be missing.
func optional(path string, most int64) ([]byte, error) {
	text, err := bounded.ReadFile(path, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// check compares the parts.
func (f *Files) check() error {
	if n := f.Weights.Vocabulary; f.Tokenizer.Size() > n {
		return fmt.Errorf("the tokenizer has %d tokens, the weights %d: they are of different models", f.Tokenizer.Size(), n)
	}
	slices.Sort(f.Ends)
	f.Ends = slices.Compact(f.Ends)
	f.Ends = slices.DeleteFunc(f.Ends, func(id int32) bool { return id < 0 || int(id) >= f.Weights.Vocabulary })
	return nil
}

func (f *Files) openFolder(dir string) error {
	folder, err := chatFolder(dir)
	if err != nil {
		return err
	}
	generation, err := optional(filepath.Join(dir, "generation_config.json"), maxText)
	if err != nil {
		return err
	}
	config, err := optional(filepath.Join(dir, "config.json"), maxText)
	if err != nil {
		return err
	}
	text, err := bounded.ReadFile(filepath.Join(dir, "tokenizer.json"), maxTokenizer)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no tokenizer.json: save the tokenizer with transformers, which writes one", dir)
	} else if err != nil {
		return err
	}
	if f.Tokenizer, err = tokenizer.Parse(text); err != nil {
		return err
	}
	if err := f.template(chat.FromFolder(folder)); err != nil {
		return err
	}
	if err := f.endings(folder.Config, generation, config); err != nil {
		return err
	}
	if f.Weights, err = lm.Open(dir); err != nil {
		return err
	}
	return f.check()
}

// endings reads which tokens end replies: those of generation_config.json, else of config.json; and eos_token of tokenizer_config.json.
func (f *Files) endings(tokens, generation, config []byte) error {
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
			f.Ends = append(f.Ends, one)
		} else if len(c.EOS) > 0 && json.Unmarshal(c.EOS, &f.Ends) != nil {
			return fmt.Errorf("eos_token_id is %.40s: want an id, or several", c.EOS)
		}
		if len(f.Ends) > 0 {
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
	if id, ok := f.Tokenizer.ID(name); ok && name != "" {
		f.Ends = append(f.Ends, id)
	}
	return nil
}

func (f *Files) openGGUF(path string) error {
	head, err := readGGUF(path)
	if err != nil {
		return err
	}
	r := reader{f: head}
	t := r.tokenizer()
	for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if id := r.id(key); id != tokenizer.None {
			f.Ends = append(f.Ends, id)
		}
	}
	if r.err != nil {
		return r.err
	}
	spec, err := tokenizer.FromGGUF(t)
	if err != nil {
		return err
	}
	if f.Tokenizer, err = tokenizer.New(spec); err != nil {
		return err
	}
	if err := f.template(chat.FromGGUF(head)); err != nil {
		return err
	}
	if f.Weights, err = lm.OpenGGUF(path); err != nil {
		return err
	}
	return f.check()
}

// reader reads metadata of a tokenizer, up to the first error. What is not there is empty.
type reader struct {
	f   *gguf.File
	err error
}

const ggml = "tokenizer.ggml."

func read[T any](r *reader, key string, get func(key string) (T, error)) (x T) {
	if r.err == nil && r.f.Has(ggml+key) {
		x, r.err = get(ggml + key)
	}
	return x
}

func (r *reader) id(key string) int32 {
	if r.err != nil || !r.f.Has(ggml+key) {
		return tokenizer.None
	}
	id, err := r.f.Uint(ggml + key)
	if r.err = err; id > maxID {
		return tokenizer.None // as 2³²−1 stands for none
	}
	return int32(id)
}

const maxID = 1<<31 - 1

func (r *reader) flag(key string) *bool {
	if r.err != nil || !r.f.Has(ggml+key) {
		return nil
	}
	yes, err := r.f.Bool(ggml + key)
	r.err = err
	return &yes
}

func (r *reader) tokenizer() tokenizer.GGUF {
	g := tokenizer.GGUF{
		Model: read(r, "model", r.f.Text), Pre: read(r, "pre", r.f.Text), Tokens: read(r, "tokens", r.f.Texts), Merges: read(r, "merges", r.f.Texts),
		BOS: r.id("bos_token_id"), EOS: r.id("eos_token_id"), Unknown: r.id("unknown_token_id"), CLS: r.id("cls_token_id"), SEP: r.id("seperator_token_id"),
		AddBOS: r.flag("add_bos_token"), AddEOS: r.flag("add_eos_token"), AddSEP: r.flag("add_sep_token"), AddSpace: r.flag("add_space_prefix"),
	}
	for _, s := range read(r, "scores", r.f.Floats) {
		g.Scores = append(g.Scores, float32(s))
	}
	for _, t := range read(r, "token_type", r.f.Ints) {
		if t != int64(int32(t)) {
			r.err = fmt.Errorf("a token has type %d", t)
			break
		}
		g.Types = append(g.Types, int32(t))
	}
	return g
}

// NameOf returns what a model is called that lies at a path.
func NameOf(path string) string {
	name := filepath.Base(filepath.Clean(path))
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".gguf") {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
