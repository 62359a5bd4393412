package chat

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/format/chat/jinja"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer"
)

// MaxConfig bounds a tokenizer_config.json, which may describe a hundred thousand tokens.
const MaxConfig = 64 << 20

// Folder has the files of a model's folder that say how it chats. Files that are not there are nil.
type Folder struct {
	Config   []byte // tokenizer_config.json
	Template []byte // chat_template.jinja, which comes before the template of the former
	ToolUse  []byte // additional_chat_templates/tool_use.jinja
}

// FromFolder reads the template of a folder, as Hugging Face has them.
func FromFolder(f Folder) (*Template, error) {
	if len(f.Config) > MaxConfig {
		return nil, fmt.Errorf("tokenizer_config.json has %d bytes, of at most %d", len(f.Config), MaxConfig)
	}
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	tokens, err := tokensOf(config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	named := map[string]string{}
	if f.Template != nil {
		named["default"] = string(f.Template)
	}
	if f.ToolUse != nil {
		named["tool_use"] = string(f.ToolUse)
	}
	if len(named) == 0 {
		if named, err = templatesOf(config); err != nil {
			return nil, fmt.Errorf("tokenizer_config.json: %w", err)
		}
	}
	return parseNamed(named, tokens)
}

// SpecialTokens returns the special tokens that the configuration names. A folder without one has none.
func (f *Folder) SpecialTokens() (Tokens, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	return tokensOf(config)
}

// config reads the configuration, which is empty if there is none.
func (f *Folder) config() (*jinja.Dict, error) {
	if f.Config == nil {
		return &jinja.Dict{}, nil
	}
	v, err := jinja.FromJSON(f.Config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	config, ok := v.(*jinja.Dict)
	if !ok {
		return nil, errors.New("tokenizer_config.json is no JSON object")
	}
	return config, nil
}

// tokensOf returns the special tokens of a configuration: texts, or objects with a content.
func tokensOf(config *jinja.Dict) (Tokens, error) {
	tokens := Tokens{}
	for id, v := range config.Texts("_token") {
		if d, ok := v.(*jinja.Dict); ok {
			if v, ok = d.Get("content"); !ok {
				return nil, fmt.Errorf("%.40q is an object without a content", id)
			}
		}
		if s, ok := v.(string); ok {
			tokens[id] = s
		}
	}
	return tokens, nil
}

// templatesOf returns the templates of a configuration: a text, or a list of named ones.
func templatesOf(config *jinja.Dict) (map[string]string, error) {
	v, _ := config.Get("chat_template")
	switch v := v.(type) {
	case nil:
		return nil, ErrNoTemplate
	case string:
		return map[string]string{"default": v}, nil
	case *jinja.List:
		named := map[string]string{}
		for _, x := range v.Items {
			d, ok := x.(*jinja.Dict)
			if !ok {
				return nil, errors.New("chat_template is a list of other things than templates")
			}
			id, _ := d.Get("name")
			source, _ := d.Get("template")
			key, isText := id.(string)
			text, ok := source.(string)
			if !ok || !isText {
				return nil, errors.New("a template in chat_template wants a name and a template")
			}
			named[key] = text
		}
		return named, nil
	}
	return nil, errors.New("chat_template is neither a text nor a list")
}

// FromGGUF reads the template of a GGUF file.
func FromGGUF(f *gguf.File) (*Template, error) {
	named := map[string]string{}
	for id, key := range map[string]string{"default": "tokenizer.chat_template", "tool_use": "tokenizer.chat_template.tool_use"} {
		source, err := f.Text(key)
		switch {
		case err == nil:
			named[id] = source
		case !errors.Is(err, gguf.ErrNoKey):
			return nil, err
		}
	}
	if len(named) == 0 {
		return nil, ErrNoTemplate
	}
	tokens, err := tokenizer.SpecialOfGGUF(f)
	if err != nil {
		return nil, err
	}
	return parseNamed(named, tokens)
}
