package chat

import (
	"encoding/json"
	"errors"
	"fmt"
)

// UnmarshalJSON reads a message in the form of OpenAI's clients and of most datasets: role, content, name, tool_calls,
// tool_call_id, reasoning_content. It also reads that of ShareGPT: from and value. Other names are passed over.
func (m *Message) UnmarshalJSON(b []byte) error {
	var x struct {
		Role, From, Name string
		Content, Value   *Content
		ToolCalls        []ToolCall `json:"tool_calls"`
		ToolCallID       string     `json:"tool_call_id"`
		Reasoning        string     `json:"reasoning_content"`
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	if x.Role == "" && x.From != "" {
		x.Role, x.Content = x.From, x.Value
		if known, ok := shareGPT[x.From]; ok {
			x.Role = known
		}
	}
	if x.Role == "" {
		return errors.New(`a message has no role, as in {"role": "user", "content": "…"}`)
	}
	*m = Message{Role: x.Role, Content: x.Content, Name: x.Name, ToolCalls: x.ToolCalls, ToolCallID: x.ToolCallID, Reasoning: x.Reasoning}
	return nil
}

// shareGPT are the roles of its files.
var shareGPT = map[string]string{"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}

// UnmarshalJSON reads a text, or a list of parts.
func (c *Content) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &c.Text) == nil {
		return nil
	}
	if err := json.Unmarshal(b, &c.Parts); err != nil {
		return errors.New("what a message says is neither a text nor a list of parts")
	}
	return nil
}

// UnmarshalJSON reads a call as OpenAI has it.
func (c *ToolCall) UnmarshalJSON(b []byte) error {
	var x struct {
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	*c = ToolCall{ID: x.ID, Name: x.Function.Name, Arguments: x.Function.Arguments}
	return nil
}

// ReadMessages reads a list of messages in JSON.
func ReadMessages(b []byte) (all []Message, err error) {
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("messages: there are none")
	}
	return all, nil
}
