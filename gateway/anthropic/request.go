package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type request struct {
	Model       string          `json:"model"`
	MaxTokens   *int            `json:"max_tokens"`
	Messages    []turn          `json:"messages"`
	System      json.RawMessage `json:"system"`
	Stops       []string        `json:"stop_sequences"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	TopK        *int            `json:"top_k"`
	Tools       []tool          `json:"tools"`
	ToolChoice  *toolChoice     `json:"tool_choice"`
	Stream      bool            `json:"stream"`
	Format      json.RawMessage `json:"output_format"`
	Config      *outputConfig   `json:"output_config"`
	refused
}

type refused struct {
	Thinking  json.RawMessage `json:"thinking" but:"{\"type\":\"disabled\"}" why:"models here do not think apart"`
	Container json.RawMessage `json:"container" why:"nothing is run here"`
	Servers   json.RawMessage `json:"mcp_servers" but:"[]" why:"tools are called by the client"`
	Context   json.RawMessage `json:"context_management" why:"a conversation is read whole or not at all"`
}

// outputConfig is where newer clients put the format.
type outputConfig struct {
	Format json.RawMessage `json:"format"`
	configRefused
}

type configRefused struct {
	Effort json.RawMessage `json:"effort" why:"models here do not think apart"`
}

type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

type toolChoice struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	OneCall bool   `json:"disable_parallel_tool_use"`
}

// block is a part of a turn.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	UseID   string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
}

func (q *request) ask() (*reply.Ask, error) {
	a := &reply.Ask{Model: q.Model, Field: "messages", Stops: q.Stops, Chat: &reply.Conversation{}}
	if err := api.Refuse(&q.refused); err != nil {
		return nil, err
	}
	to := &a.Sampling
	to.Temperature = 1
	err := reply.SetNumbers(
		reply.Number{Name: "temperature", Value: q.Temperature, Low: 0, Top: 1, To: &to.Temperature},
		reply.Number{Name: "top_p", Value: q.TopP, Low: 0, Top: 1, To: &to.TopP},
	)
	if err != nil {
		return nil, err
	}
	if q.TopK != nil {
		if to.TopK = *q.TopK; to.TopK < 0 {
			return nil, api.Invalid("top_k", "top_k is %d: want at least 0", to.TopK)
		}
	}
	if q.MaxTokens != nil {
		if a.MaxTokens = *q.MaxTokens; a.MaxTokens < 1 {
			return nil, api.Invalid("max_tokens", "max_tokens is %d: want at least 1", a.MaxTokens)
		}
	}
	a.OneCall = q.ToolChoice != nil && q.ToolChoice.OneCall
	if a.Chat.Tools, a.MustCall, err = q.tools(); err != nil {
		return nil, err
	}
	if a.Format, err = q.format(); err != nil {
		return nil, err
	}
	a.Chat.Messages, err = q.conversation()
	return a, err
}

// format returns what the reply shall be, nil for any text.
func (q *request) format() (*reply.Format, error) {
	if q.Config == nil {
		return reply.ReadFormat("output_format", q.Format)
	}
	if err := api.Refuse(&q.Config.configRefused); err != nil {
		return nil, err
	}
	return reply.ReadFormat("output_config.format", q.Config.Format)
}

// tools returns the tools, and those of which one must be called, nil if none must.
func (q *request) tools() (out, must []reply.Tool, err error) {
	calls := q.ToolChoice != nil && (q.ToolChoice.Type == "any" || q.ToolChoice.Type == "tool")
	if len(q.Tools) > reply.MaxTools {
		return nil, nil, api.Invalid("tools", "there are %d tools: want at most %d", len(q.Tools), reply.MaxTools)
	}
	for i, t := range q.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type != "" && t.Type != "custom":
			return nil, nil, api.Unsupported(at+".type", "%s is of type %q, which is not supported: want custom", at, t.Type)
		case t.Name == "":
			return nil, nil, api.Invalid(at+".name", "%s has no name", at)
		case t.Strict && !calls:
			return nil, nil, api.Unsupported(at+".strict", "%s is strict, which is supported where tool_choice makes the model call: otherwise arguments are what it writes", at)
		case api.IsNull(t.Schema) || t.Schema[0] != '{':
			return nil, nil, api.Invalid(at+".input_schema", "%s has no input_schema: want a JSON schema", at)
		}
		out = append(out, reply.Tool{Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	switch {
	case calls:
		must, err = reply.Choose(out, q.ToolChoice.Name)
		return out, must, err
	case q.ToolChoice == nil || q.ToolChoice.Type == "auto":
		return out, nil, nil
	case q.ToolChoice.Type == "none":
		return nil, nil, nil
	}
	return nil, nil, api.Unsupported("tool_choice", "tool_choice %q is not supported: use auto, any, tool or none", q.ToolChoice.Type)
}

// conversation returns system and turns as messages.
func (q *request) conversation() (out []reply.Message, err error) {
	if len(q.Messages) == 0 || len(q.Messages) > reply.MaxMessages {
		return nil, api.Invalid("messages", "there are %d messages: want 1 to %d", len(q.Messages), reply.MaxMessages)
	}
	if !api.IsNull(q.System) {
		text, err := readText("system", q.System)
		if err != nil {
			return nil, err
		}
		out = append(out, reply.Message{Role: "system", Text: text})
	}
	names := map[string]string{} // of tools, by the ids of their calls
	for i, m := range q.Messages {
		at := fmt.Sprintf("messages.%d", i)
		if m.Role != "user" && m.Role != "assistant" {
			return nil, api.Invalid(at+".role", "%s has the role %q: want user or assistant", at, m.Role)
		}
		blocks, err := readBlocks(at+".content", m.Content)
		if err != nil {
			return nil, err
		}
		more, err := messagesOf(at, m.Role, blocks, names)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// messagesOf returns a turn as messages: answers of tools are messages of their own, before what the user says.
func messagesOf(at, role string, blocks []block, names map[string]string) (out []reply.Message, err error) {
	var text strings.Builder
	var calls []reply.Call
	for j, b := range blocks {
		at := fmt.Sprintf("%s.content.%d", at, j)
		switch {
		case b.Type == "text":
			text.WriteString(b.Text)
		case b.Type == "tool_use" && role == "assistant":
			args, err := reply.Arguments(b.Input)
			if err != nil || b.Name == "" {
				return nil, api.Invalid(at, "%s: want a tool's name, and an object as input", at)
			}
			names[b.ID] = b.Name
			calls = append(calls, reply.Call{ID: b.ID, Name: b.Name, Arguments: args})
		case b.Type == "tool_result" && role == "user":
			t := ""
			if !api.IsNull(b.Content) {
				if t, err = readText(at+".content", b.Content); err != nil {
					return nil, err
				}
			}
			out = append(out, reply.Message{Role: "tool", Text: t, CallID: b.UseID, Name: names[b.UseID]})
		default:
			return nil, api.Unsupported(at+".type", "%s is of type %q, which is not supported in a turn of the %s: models here read text", at, b.Type, role)
		}
	}
	if text.Len() > 0 || len(out) == 0 {
		out = append(out, reply.Message{Role: role, Text: text.String(), Calls: calls})
	}
	return out, nil
}

// readBlocks reads a content: a string, which is one block, or blocks.
func readBlocks(at string, content json.RawMessage) (out []block, err error) {
	switch {
	case api.IsNull(content):
		return nil, api.Invalid(at, "%s is missing: want a string or an array of blocks", at)
	case content[0] == '"':
		out = []block{{Type: "text"}}
		err = api.Decode(at, content, &out[0].Text)
	case content[0] == '[':
		err = api.Decode(at, content, &out)
	default:
		err = api.Invalid(at, "%s is neither a string nor an array of blocks", at)
	}
	return out, err
}

// readText reads a content that may have texts alone.
func readText(at string, content json.RawMessage) (string, error) {
	blocks, err := readBlocks(at, content)
	var text strings.Builder
	for i, b := range blocks {
		if b.Type != "text" {
			return "", api.Unsupported(fmt.Sprintf("%s.%d.type", at, i), "%s.%d is of type %q, which is not supported: models here read text", at, i, b.Type)
		}
		text.WriteString(b.Text)
	}
	return text.String(), err
}
