package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tally-network/tally/format/chat/jinja"
)

// Conversation is what a prompt is made of.
type Conversation struct {
	Messages []Message
	// Tools are JSON objects that describe functions. Nil is not the same as none: templates may ask.
	Tools []json.RawMessage
	// Documents are JSON objects that answers are grounded in, for templates that know of them.
	Documents []json.RawMessage
	// Date is what templates are told if they ask for the date, in its own time zone.
	Date time.Time
	// Generate adds what begins the model's next message.
	Generate bool
	// Continue leaves the last message open, to be continued by the model.
	Continue bool
	// Extra are more values that a template may read, such as enable_thinking. They come before
	// special tokens of the same name.
	Extra map[string]json.RawMessage
}

// Message is one message of a conversation.
type Message struct {
	Role       string
	Content    *Content // nil if there is none, as beside calls of tools
	Name       string
	ToolCalls  []ToolCall
	ToolCallID string
	// Reasoning is what the model thought before its answer; templates know it as reasoning_content.
	Reasoning string
	// Unlearnt says that a model which learns from the conversation shall not learn this message.
	Unlearnt bool
}

// Content is what a message says: text or, if there are any, parts.
type Content struct {
	Text  string
	Parts []Part
}

// Text is content of text alone.
func Text(s string) *Content { return &Content{Text: s} }

// Part is a part of a message. Only parts of type text have a text.
type Part struct{ Type, Text string }

// ToolCall is a call that the model has made.
type ToolCall struct {
	ID, Name string
	// Arguments are JSON: an object, as templates want it, or a string.
	Arguments json.RawMessage
}

// reserved are names that templates read, and that Extra must not have.
var reserved = map[string]bool{
	"messages": true, "tools": true, "documents": true, "add_generation_prompt": true, "conversation": true, "chat_template": true,
	"continue_final_message": true, "conversations": true, "return_assistant_tokens_mask": true, "tokenize": true, "padding": true,
	"truncation": true, "max_length": true, "return_tensors": true, "return_dict": true, "tokenizer_kwargs": true,
	"sanitize_control_tokens": true,
}

// names returns what a template may read. The last message's text ends with mark.
func (c *Conversation) names(tokens Tokens, mark string) (*jinja.Dict, error) {
	out := &jinja.Dict{}
	for id, token := range tokens {
		out.Set(id, token)
	}
	for id, raw := range c.Extra {
		if reserved[id] {
			return nil, fmt.Errorf("%.40q is no name for an extra value: templates know it already", id)
		}
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return nil, fmt.Errorf("the value %.40q: %w", id, err)
		}
		out.Set(id, v)
	}
	messages := &jinja.List{}
	for i := range c.Messages {
		end := ""
		if i == len(c.Messages)-1 {
			end = mark
		}
		m, err := c.Messages[i].value(end)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		messages.Items = append(messages.Items, m)
	}
	out.Set("messages", messages)
	for id, list := range map[string][]json.RawMessage{"tools": c.Tools, "documents": c.Documents} {
		v, err := objects(list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		out.Set(id, v)
	}
	out.Set("add_generation_prompt", c.Generate)
	return out, nil
}

// objects reads JSON objects. Nil is none, in Python's sense.
func objects(list []json.RawMessage) (jinja.Value, error) {
	if list == nil {
		return nil, nil
	}
	out := &jinja.List{}
	for i, raw := range list {
		v, err := jinja.FromJSON(raw)
		if err != nil {
			return nil, fmt.Errorf("number %d: %w", i, err)
		}
		if _, ok := v.(*jinja.Dict); !ok {
			return nil, fmt.Errorf("number %d is no JSON object", i)
		}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// value is a message as templates read it. Keys that have no value are not there.
func (m *Message) value(mark string) (jinja.Value, error) {
	out := &jinja.Dict{}
	if m.Reasoning != "" {
		out.Set("thinking", m.Reasoning) // a name that some templates know it by, and which transformers puts first
	}
	out.Set("role", m.Role)
	if m.Content != nil {
		v, err := m.Content.value(mark)
		if err != nil {
			return nil, err
		}
		out.Set("content", v)
	}
	if m.Name != "" {
		out.Set("name", m.Name)
	}
	if len(m.ToolCalls) > 0 {
		calls := &jinja.List{}
		for i, c := range m.ToolCalls {
			v, err := c.value()
			if err != nil {
				return nil, fmt.Errorf("tool call %d: %w", i, err)
			}
			calls.Items = append(calls.Items, v)
		}
		out.Set("tool_calls", calls)
	}
	if m.ToolCallID != "" {
		out.Set("tool_call_id", m.ToolCallID)
	}
	if m.Reasoning != "" {
		out.Set("reasoning_content", m.Reasoning)
	}
	for _, s := range []string{m.Role, m.Name, m.ToolCallID, m.Reasoning} {
		if !utf8.ValidString(s) {
			return nil, errNoUTF8
		}
	}
	return out, nil
}

var errNoUTF8 = errors.New("a text is no UTF-8")

func (c *Content) value(mark string) (jinja.Value, error) {
	if !utf8.ValidString(c.Text) {
		return nil, errNoUTF8
	}
	if len(c.Parts) == 0 {
		return c.Text + mark, nil
	}
	last := c.lastText()
	out := &jinja.List{}
	for i, p := range c.Parts {
		if !utf8.ValidString(p.Type) || !utf8.ValidString(p.Text) {
			return nil, errNoUTF8
		}
		v := &jinja.Dict{}
		v.Set("type", p.Type)
		switch {
		case p.Type == "text" && i == last:
			v.Set("text", p.Text+mark)
		case p.Type == "text":
			v.Set("text", p.Text)
		}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// lastText returns the index of the last part that is text, or -1.
func (c *Content) lastText() int {
	for i := len(c.Parts) - 1; i >= 0; i-- {
		if c.Parts[i].Type == "text" {
			return i
		}
	}
	return -1
}

func (c *ToolCall) value() (jinja.Value, error) {
	if !utf8.ValidString(c.ID) || !utf8.ValidString(c.Name) {
		return nil, errNoUTF8
	}
	arguments, err := jinja.FromJSON(c.Arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	function := &jinja.Dict{}
	function.Set("name", c.Name)
	function.Set("arguments", arguments)
	out := &jinja.Dict{}
	if c.ID != "" {
		out.Set("id", c.ID)
	}
	out.Set("type", "function")
	out.Set("function", function)
	return out, nil
}
