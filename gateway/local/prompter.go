package local

import (
	"encoding/json"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/gateway/reply"
)

// NewPrompter returns what writes prompts by a template; nil if there is none.
func NewPrompter(t *chat.Template) reply.Prompter {
	if t == nil {
		return nil
	}
	return prompter{t}
}

// prompter writes prompts by a template.
type prompter struct{ template *chat.Template }

// Prompt implements reply.Prompter.
func (p prompter) Prompt(c *reply.Conversation) (string, error) {
	out := &chat.Conversation{Date: c.Date, Generate: !c.Continue, Continue: c.Continue}
	for _, m := range c.Messages {
		x := chat.Message{Role: m.Role, Name: m.Name, ToolCallID: m.CallID}
		if m.Text != "" || len(m.Calls) == 0 {
			x.Content = chat.Text(m.Text)
		}
		for _, call := range m.Calls {
			x.ToolCalls = append(x.ToolCalls, chat.ToolCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments})
		}
		out.Messages = append(out.Messages, x)
	}
	for _, t := range c.Tools {
		text, err := json.Marshal(tool{"function", function{t.Name, t.Description, t.Parameters}})
		if err != nil {
			return "", err
		}
		out.Tools = append(out.Tools, text)
	}
	return p.template.Render(out)
}

// tool is a tool as templates know it.
type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}
