package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// UnmarshalJSON reads a message in the form of OpenAI's clients and of most datasets: role, content, name, tool_calls,
// tool_call_id, reasoning_content, and weight, which is 0 for replies that are not to be learnt. It also reads that of ShareGPT: from and value.
// Other names are passed over.
func (m *Message) UnmarshalJSON(b []byte) error {
	var x struct {
		Role, From, Name string
		Content, Value   *Content
		ToolCalls        []ToolCall `json:"tool_calls"`
		ToolCallID       string     `json:"tool_call_id"`
		Weight           *float64
		Reasoning        string `json:"reasoning_content"`
	}
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	if x.Role == "" && x.From != "" {
		x.Role, x.Content = x.From, x.Value
	}
	if x.Weight != nil && *x.Weight != 0 && *x.Weight != 1 {
		return fmt.Errorf("a message has the weight %v: write 1, or 0 for one that is not to be learnt", *x.Weight)
	}
	if x.Role == "" {
		return errors.New(`a message has no role, as in {"role": "user", "content": "…"}`)
	}
	*m = Message{Role: x.Role, Content: x.Content, Name: x.Name, ToolCalls: x.ToolCalls, ToolCallID: x.ToolCallID, Reasoning: x.Reasoning, Unlearnt: x.Weight != nil && *x.Weight == 0}
	return nil
}

// roles are names of some files, by what templates know.
var roles = map[string]string{"developer": "system", "human": "user", "gpt": assistant, "function_call": assistant, "observation": "tool"}

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

// Arguments returns the object of a call's arguments, in the least bytes. They may be a string that has the object; none are {}.
func Arguments(text json.RawMessage) (json.RawMessage, error) {
	if len(text) > 0 && text[0] == '"' {
		var inner string
		if err := json.Unmarshal(text, &inner); err != nil {
			return nil, err
		}
		text = json.RawMessage(inner)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return json.RawMessage("{}"), nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, err
	}
	if out.Bytes()[0] != '{' {
		return nil, errors.New("the arguments of a call are no object")
	}
	return out.Bytes(), nil
}

// ReadMessages reads a list of messages in JSON, in the form in which a model that is served gets them: roles that mean the same
// have one name, and arguments of calls are objects.
func ReadMessages(b []byte) (all []Message, err error) {
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("messages: there are none")
	}
	for i := range all {
		m := &all[i]
		if same, ok := roles[m.Role]; ok {
			m.Role = same
		}
		for k := range m.ToolCalls {
			if m.ToolCalls[k].Arguments, err = Arguments(m.ToolCalls[k].Arguments); err != nil {
				return nil, fmt.Errorf("messages: message %d: %w", i, err)
			}
		}
	}
	return all, nil
}
