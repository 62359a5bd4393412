package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// message is a turn of a chat, as it comes.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []toolCall      `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
	Audio     json.RawMessage `json:"audio"`
	Function  json.RawMessage `json:"function_call"`
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"` // in a stream
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func callObjects(calls []reply.Call) (out []toolCall) {
	for _, c := range calls {
		t := toolCall{ID: c.ID, Type: "function"}
		t.Function.Name, t.Function.Arguments = c.Name, string(c.Arguments)
		out = append(out, t)
	}
	return out
}

// readMessages returns a conversation. Roles that mean the same have one name.
func readMessages(all []message) (out []reply.Message, err error) {
	if len(all) == 0 || len(all) > reply.MaxMessages {
		return nil, api.Invalid("messages", "there are %d messages: want 1 to %d", len(all), reply.MaxMessages)
	}
	names := map[string]string{} // of tools, by the ids of calls
	for i, m := range all {
		at := fmt.Sprintf("messages[%d]", i)
		t := reply.Message{Role: m.Role, CallID: m.CallID, Name: names[m.CallID]}
		switch m.Role {
		case "developer":
			t.Role = "system"
		case "system", "user", "assistant", "tool":
		case "":
			return nil, api.Invalid(at+".role", "%s has no role: want system, developer, user, assistant or tool", at)
		default:
			return nil, api.Invalid(at+".role", "%s has the role %q: want system, developer, user, assistant or tool", at, m.Role)
		}
		if !api.IsNull(m.Audio) || !api.IsNull(m.Function) {
			return nil, api.Unsupported(at, "%s has audio or a function_call, which are not supported: use text and tool_calls", at)
		}
		if t.Text, err = readContent(at+".content", m.Content, m.Role == "assistant"); err != nil {
			return nil, err
		}
		if len(m.ToolCalls) > 0 && m.Role != "assistant" {
			return nil, api.Invalid(at+".tool_calls", "%s has tool_calls: only an assistant's may", at)
		}
		for j, c := range m.ToolCalls {
			args, err := reply.Arguments(json.RawMessage(c.Function.Arguments))
			if err != nil || c.Function.Name == "" {
				return nil, api.Invalid(fmt.Sprintf("%s.tool_calls[%d].function", at, j), "%s.tool_calls[%d]: want a function's name, and a JSON object as its arguments", at, j)
			}
			names[c.ID] = c.Function.Name
			t.Calls = append(t.Calls, reply.Call{ID: c.ID, Name: c.Function.Name, Arguments: args})
		}
		out = append(out, t)
	}
	return out, nil
}

// textPart is a part of a content that has several.
type textPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// readContent returns the text of a content: a string, or parts that are texts.
func readContent(at string, content json.RawMessage, mayLack bool) (text string, err error) {
	if api.IsNull(content) {
		if !mayLack {
			return "", api.Invalid(at, "%s is missing: want a string or an array of texts", at)
		}
		return "", nil
	}
	switch content[0] {
	case '"':
		err = api.Decode(at, content, &text)
		return text, err
	case '[':
	default:
		return "", api.Invalid(at, "%s is neither a string nor an array of parts", at)
	}
	var parts []textPart
	if err := api.Decode(at, content, &parts); err != nil {
		return "", err
	}
	var b strings.Builder
	for i, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			b.WriteString(p.Text)
		case "refusal":
			b.WriteString(p.Refusal)
		default:
			return "", api.Unsupported(fmt.Sprintf("%s[%d].type", at, i), "%s[%d] is of type %q, which is not supported: models here read text", at, i, p.Type)
		}
	}
	return b.String(), nil
}

// tool is a tool as it comes: of chats in function, of responses in the object itself.
type tool struct {
	Type     string    `json:"type"`
	Function *function `json:"function"`
	function
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// readTools returns the tools, and those of which one must be called, nil if none must.
func readTools(given []tool, choice json.RawMessage) (all, must []reply.Tool, err error) {
	if len(given) > reply.MaxTools {
		return nil, nil, api.Invalid("tools", "there are %d tools: want at most %d", len(given), reply.MaxTools)
	}
	strict := ""
	for i, t := range given {
		at := fmt.Sprintf("tools[%d]", i)
		if t.Type != "function" {
			return nil, nil, api.Unsupported(at+".type", "%s is of type %q, which is not supported: want function", at, t.Type)
		}
		f := t.function
		if t.Function != nil {
			f = *t.Function
		}
		switch {
		case f.Name == "":
			return nil, nil, api.Invalid(at, "%s has no name", at)
		case !api.IsNull(f.Parameters) && f.Parameters[0] != '{':
			return nil, nil, api.Invalid(at+".parameters", "%s: parameters are no object: want a JSON schema", at)
		}
		if api.IsNull(f.Parameters) {
			f.Parameters = nil
		}
		if f.Strict != nil && *f.Strict && strict == "" {
			strict = at
		}
		all = append(all, reply.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
	}
	switch c := string(choice); {
	case c == `"none"`:
		return nil, nil, nil
	case (api.IsNull(choice) || c == `"auto"`) && strict != "":
		return nil, nil, api.Unsupported(strict+".strict", "%s is strict, which is supported where tool_choice makes the model call: otherwise arguments are what it writes", strict)
	case api.IsNull(choice), c == `"auto"`:
		return all, nil, nil
	}
	name, err := readChoice(choice)
	if err == nil {
		must, err = reply.Choose(all, name)
	}
	return all, must, err
}

// readChoice returns the tool that must be called, empty for any: "required", or an object that names it, in its member function or itself.
func readChoice(choice json.RawMessage) (name string, err error) {
	if string(choice) == `"required"` {
		return "", nil
	}
	var c struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(choice, &c) != nil || c.Type != "function" || c.Name+c.Function.Name == "" {
		return "", api.Unsupported("tool_choice", "tool_choice %s is not supported: want auto, none, required, or a function by its name", short(choice))
	}
	return c.Name + c.Function.Name, nil
}

func short(text json.RawMessage) string {
	if len(text) > 40 {
		return string(text[:40]) + "…"
	}
	return string(text)
}
