package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume/dataset/sequences"
)

// Texts are the text section of data: how texts become tokens.
type Texts struct {
	Tokenizer string         `json:"tokenizer,omitempty"` // a tokenizer.json, or a model's folder that holds one; bytes: a token for each byte
	Template  string         `json:"template,omitempty"`  // of chats; none: that of the folder
	End       string         `json:"end,omitempty"`       // token behind a text; none: the folder's eos_token
	Long      sequences.Rule `json:"long,omitempty"`      // what becomes of texts that are longer than what the model reads
	Pack      bool           `json:"pack,omitempty"`      // several texts in a record
	Learn     string         `json:"learn,omitempty"`     // of chats and completions: replies, which is the default, or all
}

// What is learnt of a chat.
const (
	learnReplies = "replies"
	learnAll     = "all"
)

// Files of a model's folder, as Hugging Face has them.
const (
	TokenizerName       = "tokenizer.json"
	TokenizerConfigName = "tokenizer_config.json"
	TemplateName        = "chat_template.jinja"
)

// Bytes is the name of the tokenizer that has a token for each byte.
const Bytes = "bytes"

func (o *Texts) check() error {
	l := sequences.Layout{Length: 2, Long: o.Long}
	if err := l.Check(); err != nil {
		return fmt.Errorf("data.text: %w", err)
	}
	if o.Learn != "" && o.Learn != learnReplies && o.Learn != learnAll {
		return fmt.Errorf("data.text.learn is %q: write %s or %s", o.Learn, learnReplies, learnAll)
	}
	return nil
}

// Encoder turns texts and chats into tokens.
type Encoder struct {
	File      []byte // tokenizer.json
	tokenizer *tokenizer.Tokenizer
	template  *chat.Template // nil if there is none
	end       []int32        // what a text ends with
}

// maxTemplate bounds a template in bytes.
const maxTemplate = 1 << 20

// OpenEncoder reads the files that the text section names, which lie in one of some folders. It returns nil if
// the section names no tokenizer.
func (o *Options) OpenEncoder(folders []string) (*Encoder, error) {
	if o.Text.Tokenizer == "" {
		return nil, nil
	}
	return o.opened(o.Text.encoder(folders))
}

// opened tells what is wrong with an encoder.
func (o *Options) opened(e *Encoder, err error) (*Encoder, error) {
	if errors.Is(err, bounded.ErrOutside) {
		err = fmt.Errorf("%w: copy it beside the order file, or add --allow with its folder", err)
	}
	if err != nil {
		return nil, fmt.Errorf("data.text: %w", err)
	}
	return e, nil
}

func (o *Texts) encoder(folders []string) (e *Encoder, err error) {
	e = &Encoder{}
	special := chat.Tokens{}
	if o.Tokenizer == Bytes {
		e.File = tokenizer.OfBytes()
	} else {
		file, folder := o.Tokenizer, filepath.Dir(o.Tokenizer)
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file, folder = filepath.Join(file, TokenizerName), file
		}
		if e.File, err = readWithin(folders, file, tokenizer.MaxFile); err != nil {
			return nil, err
		}
		if special, err = e.readFolder(folders, folder); err != nil {
			return nil, err
		}
	}
	return o.finish(folders, e, special)
}

// finish parses what the section names beside the tokenizer's file.
func (o *Texts) finish(folders []string, e *Encoder, special chat.Tokens) (_ *Encoder, err error) {
	if e.tokenizer, err = tokenizer.Parse(e.File); err != nil {
		return nil, err
	}
	end := cmp.Or(o.End, special["eos_token"])
	if end != "" {
		id, ok := e.tokenizer.ID(end)
		if !ok {
			return nil, fmt.Errorf("%.40q, which texts end with, is no token of the tokenizer: write another end", end)
		}
		e.end = []int32{id}
	}
	if o.Template == "" {
		return e, nil
	}
	source, err := readWithin(folders, o.Template, maxTemplate)
	if err != nil {
		return nil, err
	}
	e.template, err = chat.Parse(string(source), special)
	return e, err
}

// readFolder reads the chat template of a model's folder, if it has one, and returns its special tokens.
func (e *Encoder) readFolder(folders []string, folder string) (chat.Tokens, error) {
	var f chat.Folder
	for _, x := range []struct {
		name string
		to   *[]byte
		most int64
	}{{TokenizerConfigName, &f.Config, chat.MaxConfig}, {TemplateName, &f.Template, maxTemplate}, {"additional_chat_templates/tool_use.jinja", &f.ToolUse, maxTemplate}} {
		b, err := readWithin(folders, filepath.Join(folder, x.name), x.most)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		*x.to = b
	}
	special, err := f.SpecialTokens()
	if err != nil {
		return nil, err
	}
	if e.template, err = chat.FromFolder(f); errors.Is(err, chat.ErrNoTemplate) {
		e.template, err = nil, nil
	}
	return special, err
}

func readWithin(folders []string, name string, most int64) ([]byte, error) {
	f, size, err := bounded.OpenWithin(folders, name)
	if err != nil {
		return nil, err
	}
	b, err := bounded.ReadAll(f, size, most)
	return b, errors.Join(err, f.Close())
}

// size returns how many tokens there are, 0 without a tokenizer.
func (e *Encoder) size() int {
	if e == nil {
		return 0
	}
	return e.tokenizer.Size()
}

// fill returns the token that stands where there is none: nothing is learnt from it.
func (e *Encoder) pad() int32 {
	if e == nil || len(e.end) == 0 {
		return 0
	}
	return e.end[0]
}

// text returns a text's tokens, with those that the tokenizer puts around texts, and what ends it.
func (e *Encoder) text(s string) (sequences.Example, error) {
	ids, err := e.tokenizer.Encode(s, true)
	if n := len(ids); err == nil && (n == 0 || len(e.end) > 0 && ids[n-1] != e.end[0]) {
		ids = append(ids, e.end...)
	}
	return sequences.Example{Tokens: ids}, err
}

// completion returns the tokens of a text, of which what follows the prompt is learnt.
func (e *Encoder) completion(prompt, reply string) (sequences.Example, error) {
	before, err := e.tokenizer.Encode(prompt, true)
	if err != nil {
		return sequences.Example{}, err
	}
	s, err := e.text(prompt + reply)
	if err != nil {
		return s, err
	}
	s.LossMask = make([]bool, len(s.Tokens))
	for i := common(before, s.Tokens); i < len(s.Tokens); i++ {
		s.LossMask[i] = true
	}
	return s, nil
}

// common returns how many tokens two texts have in common from their starts on.
func common(a, b []int32) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// errNoTemplate says what chats want.
var errNoTemplate = errors.New("chats want a template: write data.text.template, or name a model's folder with one for data.text.tokenizer")

// dated is the date that templates are told: it shall not depend on when an order is made.
var dated = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// chat returns the tokens of a conversation, of which replies are learnt. Where a template shows earlier
// replies otherwise than the last one, each reply is a sequence of its own, as the model will read and write it.
func (e *Encoder) chat(c *chat.Conversation, learn string) (all []sequences.Example, err error) {
	if e.template == nil {
		return nil, errNoTemplate
	}
	c.Date = dated
	if learn == learnAll {
		text, err := e.template.Render(c)
		if err != nil {
			return nil, err
		}
		ids, err := e.tokenizer.Encode(text, false)
		return []sequences.Example{{Tokens: ids}}, err
	}
	replies, err := e.template.Replies(c)
	if err != nil {
		return nil, err
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("no message is the assistant's: leave the record out, or write learn: %s", learnAll)
	}
	var now sequences.Example
	for _, r := range replies {
		before, err := e.tokenizer.Encode(r.Prompt, false)
		if err != nil {
			return nil, err
		}
		whole, err := e.tokenizer.Encode(r.Whole, false)
		if err != nil {
			return nil, err
		}
		if common(now.Tokens, whole) < len(now.Tokens) {
			all = append(all, now)
			now = sequences.Example{}
		}
		learnt := make([]bool, len(whole))
		copy(learnt, now.LossMask)
		for i := common(before, whole); i < e.stop(whole) && !r.Unlearnt; i++ {
			learnt[i] = true
		}
		now = sequences.Example{Tokens: whole, LossMask: learnt}
	}
	return append(all, now), nil
}

// stop returns where a reply ends: templates put white space behind what ends it, which nobody lets a model write.
func (e *Encoder) stop(ids []int32) int {
	n := len(ids)
	for ; n > 0; n-- {
		b, ok := e.tokenizer.Bytes(ids[n-1])
		if !ok || strings.TrimSpace(string(b)) != "" {
			break
		}
	}
	return n
}
