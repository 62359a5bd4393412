package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/chat/jinja"
)

func hi() *Conversation {
	return &Conversation{Messages: []Message{{Role: "user", Content: Text("hi")}}}
}

func TestFromFolder(t *testing.T) {
	withTools := hi()
	withTools.Tools = []json.RawMessage{}
	const named = `{"chat_template":[{"name":"default","template":"d{{ bos_token }}"},{"name":"tool_use","template":"t"}],"bos_token":{"content":"<b>","lstrip":false},"pad_token":null}`
	for _, x := range []struct {
		folder Folder
		c      *Conversation
		want   string
	}{
		{Folder{Config: []byte(`{"chat_template":"{{ messages[0].content }}{{ eos_token }}{{ bos_token is defined }}","eos_token":"</s>"}`)}, hi(), "hi</s>False"},
		{Folder{Config: []byte(named)}, hi(), "d<b>"},
		{Folder{Config: []byte(named)}, withTools, "t"},
		{Folder{Config: []byte(named), Template: []byte("own{{ bos_token }}")}, withTools, "own<b>"},
		{Folder{Template: []byte("own")}, hi(), "own"},
		{Folder{Template: []byte("own"), ToolUse: []byte("tools")}, withTools, "tools"},
	} {
		tmpl, err := FromFolder(x.folder)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(x.c); err != nil || got != x.want {
			t.Errorf("%q, %v, want %q", got, err, x.want)
		}
	}
	if _, err := FromFolder(Folder{Config: []byte(`{}`)}); !errors.Is(err, ErrNoTemplate) {
		t.Error(err)
	}
	for _, x := range []struct{ config, why string }{
		{`[]`, "no JSON object"}, {`{`, "cannot be read"}, {`{"chat_template":1}`, "neither a text nor a list"}, {`{"chat_template":[1]}`, "other things"}, {`{"chat_template":[{"name":"x"}]}`, "wants a name and a template"},
		{`{"chat_template":[{"name":"x","template":""}]}`, "called default"}, {`{"chat_template":"{{"}`, "cannot be read"}, {`{"chat_template":"","bos_token":{}}`, "without a content"},
		{`{"chat_template":[{"name":"default","template":""},{"name":"tool_use","template":"{% x %}"}]}`, "for tools"},
	} {
		if _, err := FromFolder(Folder{Config: []byte(x.config)}); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: error %v, want %q", x.config, err, x.why)
		}
	}
	if _, err := FromFolder(Folder{Config: bytes.Repeat([]byte(" "), MaxConfig+1)}); err == nil {
		t.Error("a configuration of any size is read")
	}
}

func TestRenderRefuses(t *testing.T) {
	tmpl, err := Parse("{{ messages[0].content }}{% if messages[0].role == 'x' %}{{ raise_exception('no x') }}{% endif %}", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		change func(c *Conversation)
		why    string
	}{
		{func(c *Conversation) { c.Messages = nil }, "no message"},
		{func(c *Conversation) { c.Messages[0].Role = "\xff" }, "no UTF-8"},
		{func(c *Conversation) { c.Messages[0].Content = Text("\xff") }, "no UTF-8"},
		{func(c *Conversation) { c.Messages[0].Content = &Content{Parts: []Part{{"text", "\xff"}}} }, "no UTF-8"},
		{func(c *Conversation) { c.Messages[0].ToolCalls = []ToolCall{{Name: "f", Arguments: []byte("{")}} }, "arguments"},
		{func(c *Conversation) { c.Tools = []json.RawMessage{[]byte("1")} }, "no JSON object"},
		{func(c *Conversation) { c.Documents = []json.RawMessage{[]byte("x")} }, "cannot be read"},
		{func(c *Conversation) { c.Extra = map[string]json.RawMessage{"messages": []byte("1")} }, "no name for an extra value"},
		{func(c *Conversation) { c.Extra = map[string]json.RawMessage{"x": []byte("]")} }, "cannot be read"},
		{func(c *Conversation) { c.Generate, c.Continue = true, true }, "one of both"},
		{func(c *Conversation) { c.Continue, c.Messages[0].Content = true, nil }, "no content to continue"},
		{func(c *Conversation) {
			c.Continue, c.Messages[0].Content = true, &Content{Parts: []Part{{"image", ""}}}
		}, "no text to continue"},
		{func(c *Conversation) { c.Continue, c.Messages = true, append(hi().Messages, c.Messages...) }, "does not show the last message"},
	} {
		c := hi()
		x.change(c)
		if _, err := tmpl.Render(c); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("error %v, want %q", err, x.why)
		}
	}
	c := hi()
	c.Messages[0].Role = "x"
	_, err = tmpl.Render(c)
	if r := (*jinja.Refusal)(nil); !errors.As(err, &r) || r.Reason != "no x" {
		t.Error(err)
	}
}

func FuzzFromFolder(f *testing.F) {
	f.Add([]byte(`{"chat_template":[{"name":"default","template":"{{ messages }}"}],"bos_token":{"content":"<b>"}}`), "hi")
	f.Add([]byte(`{"chat_template":"{% for m in messages %}{{ m.content }}{% endfor %}","eos_token":"</s>"}`), "a\nb")
	f.Fuzz(func(t *testing.T, config []byte, text string) {
		tmpl, err := FromFolder(Folder{Config: config})
		if err != nil {
			return
		}
		c := hi()
		c.Messages[0].Content = Text(text)
		for _, c.Continue = range []bool{false, true} {
			a, err := tmpl.Render(c)
			if b, again := tmpl.Render(c); err == nil && (again != nil || a != b) {
				t.Errorf("%q, and then %q, %v", a, b, again)
			}
		}
	})
}
