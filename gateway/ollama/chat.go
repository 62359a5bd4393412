package ollama

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type chatRequest struct {
	Model     string          `json:"model"`
	Messages  []message       `json:"messages"`
	Tools     []tool          `json:"tools"`
	Options   options         `json:"options"`
	Stream    *bool           `json:"stream"`
	KeepAlive json.RawMessage `json:"keep_alive"`
	Format    json.RawMessage `json:"format"`
	refused
}

type message struct {
	Role      string            `json:"role"`
	Content   string            `json:"content"`
	Images    []json.RawMessage `json:"images,omitempty"`
	ToolCalls []toolCall        `json:"tool_calls,omitempty"`
	ToolName  string            `json:"tool_name,omitempty"`
	CallID    string            `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     int             `json:"index,omitempty"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func (q *chatRequest) conversation() (*reply.Conversation, error) {
	if len(q.Messages) > reply.MaxMessages || len(q.Tools) > reply.MaxTools {
		return nil, api.Invalid("messages", "there are %d messages and %d tools: want at most %d and %d", len(q.Messages), len(q.Tools), reply.MaxMessages, reply.MaxTools)
	}
	c := &reply.Conversation{}
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages[%d]", i)
		switch {
		case m.Role != "system" && m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
			return nil, api.Invalid(at+".role", "%s has the role %q: want system, user, assistant or tool", at, m.Role)
		case len(m.Images) > 0:
			return nil, api.Unsupported(at+".images", "%s has images, which are not supported: models here read text", at)
		case len(m.ToolCalls) > 0 && m.Role != "assistant":
			return nil, api.Invalid(at+".tool_calls", "%s has tool_calls: only an assistant's may", at)
		}
		t := reply.Message{Role: m.Role, Text: m.Content, Name: m.ToolName, CallID: m.CallID}
		for _, k := range m.ToolCalls {
			args, err := reply.Arguments(k.Function.Arguments)
			if err != nil || k.Function.Name == "" {
				return nil, api.Invalid(at+".tool_calls", "%s.tool_calls: want a function's name, and an object as its arguments", at)
			}
			t.Calls = append(t.Calls, reply.Call{ID: k.ID, Name: k.Function.Name, Arguments: args})
		}
		c.Messages = append(c.Messages, t)
	}
	for i, t := range q.Tools {
		f := t.Function
		if f.Name == "" || !api.IsNull(f.Parameters) && f.Parameters[0] != '{' {
			return nil, api.Invalid(fmt.Sprintf("tools[%d]", i), "tools[%d]: want a function's name, and a JSON schema as its parameters", i)
		}
		if api.IsNull(f.Parameters) {
			f.Parameters = nil
		}
		c.Tools = append(c.Tools, reply.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	return c, nil
}

func (v *server) chat(w http.ResponseWriter, r *http.Request) error {
	var q chatRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	if err := api.Refuse(&q.refused); err != nil {
		return err
	}
	c, err := q.conversation()
	if err != nil {
		return err
	}
	a := &reply.Ask{Field: "messages", Chat: c}
	s := asked{ask: a, options: &q.Options, keep: q.KeepAlive, stream: isStream(q.Stream), chat: true, idle: len(c.Messages) == 0}
	if a.Format, err = readFormat(q.Format); err != nil {
		return err
	}
	if a.Model, err = v.named(r.Context(), q.Model, ""); err != nil {
		return err
	}
	return v.answer(w, r, s)
}
