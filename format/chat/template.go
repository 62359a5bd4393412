package chat

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/tally-network/tally/format/chat/jinja"
)

// ErrNoTemplate says that a model carries no template, and so cannot chat.
var ErrNoTemplate = errors.New("the model has no chat template, so it was not made for chats: ask it for completions")

// Tokens are special tokens by the names that templates know them by, such as bos_token.
type Tokens map[string]string

// Template is what makes prompts of conversations.
type Template struct {
	plain, tools *jinja.Template // tools is for conversations that have any; it may be nil
	tokens       Tokens
}

// Parse reads a template.
func Parse(source string, tokens Tokens) (*Template, error) {
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("the chat template cannot be read: %w", err)
	}
	return &Template{plain: t, tokens: tokens}, nil
}

// parseNamed reads the templates of a model that has several: default, and one for tools.
func parseNamed(named map[string]string, tokens Tokens) (*Template, error) {
	source, ok := named["default"]
	if !ok {
		return nil, errors.New("of the model's chat templates none is called default: name one so")
	}
	t, err := Parse(source, tokens)
	if err != nil {
		return nil, err
	}
	if source, ok := named["tool_use"]; ok {
		if t.tools, err = jinja.Parse(source); err != nil {
			return nil, fmt.Errorf("the chat template for tools cannot be read: %w", err)
		}
	}
	return t, nil
}

// Source returns the text of the template for conversations without tools.
func (t *Template) Source() string { return t.plain.Source() }

// ToolSource returns the text of the template for conversations with tools, "" if there is no other.
func (t *Template) ToolSource() string {
	if t.tools == nil {
		return ""
	}
	return t.tools.Source()
}

// Special returns the text of a special token that templates know, such as bos_token, "" if there is none.
func (t *Template) Special(name string) string { return t.tokens[name] }

// mark stands after the text that is to be continued, while it is rendered. It ends in a space to
// see whether the template trims texts.
const mark = "CONTINUE_FINAL_MESSAGE_TAG "

// Render returns a conversation's prompt.
func (t *Template) Render(c *Conversation) (string, error) {
	if len(c.Messages) == 0 {
		return "", errors.New("the conversation has no message")
	}
	used := t.plain
	if c.Tools != nil && t.tools != nil {
		used = t.tools
	}
	if c.Continue {
		return t.open(used, c)
	}
	return t.render(used, c, "")
}

func (t *Template) render(used *jinja.Template, c *Conversation, mark string) (string, error) {
	names, err := c.names(t.tokens, mark)
	if err != nil {
		return "", err
	}
	text, err := used.Render(names, c.Date)
	if err != nil {
		return "", fmt.Errorf("the model's chat template cannot render this conversation: %w", err)
	}
	return text, nil
}

// open renders a conversation up to the end of its last message's text.
func (t *Template) open(used *jinja.Template, c *Conversation) (string, error) {
	if c.Generate {
		return "", errors.New("the last message cannot be continued and followed by another: ask for one of both")
	}
	content := c.Messages[len(c.Messages)-1].Content
	if content == nil || !strings.Contains(used.Source(), "content") {
		return "", errors.New("the last message has no content to continue, or the template reads none")
	}
	last := content.Text
	if len(content.Parts) > 0 {
		i := content.lastText()
		if i < 0 {
			return "", errors.New("the last message has no text to continue")
		}
		last = content.Parts[i].Text
	}
	text, err := t.render(used, c, mark)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(text, strings.TrimSpace(mark))
	if at < 0 || !strings.Contains(text, strings.TrimFunc(last, isSpace)) {
		return "", errors.New("the template does not show the last message whole, so that it cannot be continued")
	}
	if strings.HasPrefix(text[at:], mark) {
		return text[:at], nil
	}
	return strings.TrimRightFunc(text[:at], isSpace), nil
}

// isSpace is Python's: it counts four separators that Go does not.
func isSpace(c rune) bool { return c >= 0x1c && c <= 0x1f || unicode.IsSpace(c) }
