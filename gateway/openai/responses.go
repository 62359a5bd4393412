package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type responseRequest struct {
	Model        string          `json:"model"`
	Input        json.RawMessage `json:"input"`
	Instructions json.RawMessage `json:"instructions"`
	MaxOutput    *int            `json:"max_output_tokens"`
	Temperature  *float64        `json:"temperature"`
	TopP         *float64        `json:"top_p"`
	Tools        []tool          `json:"tools"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Parallel     *bool           `json:"parallel_tool_calls"`
	Metadata     json.RawMessage `json:"metadata"`
	Stream       bool            `json:"stream"`
	Text         *responseText   `json:"text"`
	responseRefused
}

type responseRefused struct {
	Previous     json.RawMessage `json:"previous_response_id" why:"nothing is kept, so send the whole conversation"`
	Conversation json.RawMessage `json:"conversation" why:"nothing is kept, so send the whole conversation"`
	Prompt       json.RawMessage `json:"prompt" why:"nothing is kept, so send the prompt's text"`
	Store        json.RawMessage `json:"store" but:"false" why:"nothing is kept"`
	Background   json.RawMessage `json:"background" but:"false" why:"nothing is kept"`
	Reasoning    json.RawMessage `json:"reasoning" but:"{}|{\"effort\":\"none\"}|{\"effort\":null}" why:"models here do not reason apart"`
	Include      json.RawMessage `json:"include" but:"[]" why:"there is nothing more to include"`
	TopLogprobs  json.RawMessage `json:"top_logprobs" but:"0" why:"chat completions have it"`
	MaxToolCalls json.RawMessage `json:"max_tool_calls" why:"tools are called by the client"`
	ServiceTier  json.RawMessage `json:"service_tier" but:"\"auto\"|\"default\"" why:"there is one"`
}

// responseText is what the text of a response shall be.
type responseText struct {
	Format json.RawMessage `json:"format"`
	textRefused
}

type textRefused struct {
	Verbosity json.RawMessage `json:"verbosity" but:"\"medium\"" why:"a model writes as much as it writes"`
}

// inputItem is a part of a conversation: a message, a call, or what a tool answered.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

func (q *responseRequest) ask() (*reply.Ask, error) {
	a := &reply.Ask{Model: q.Model, Field: "input", Chat: &reply.Conversation{}, OneCall: !orElse(q.Parallel, true)}
	if err := api.Refuse(&q.responseRefused); err != nil {
		return nil, err
	}
	s := sampling{Temperature: q.Temperature, TopP: q.TopP}
	if err := s.ask(a); err != nil {
		return nil, err
	}
	var err error
	if a.MaxTokens, err = most("max_output_tokens", q.MaxOutput); err != nil {
		return nil, err
	}
	if a.Chat.Tools, a.MustCall, err = readTools(q.Tools, q.ToolChoice); err != nil {
		return nil, err
	}
	if q.Text != nil {
		if err := api.Refuse(&q.Text.textRefused); err != nil {
			return nil, err
		}
		if a.Format, err = reply.ReadFormat("text.format", q.Text.Format); err != nil {
			return nil, err
		}
	}
	a.Chat.Messages, err = q.messages()
	return a, err
}

// messages returns instructions and input as a conversation.
func (q *responseRequest) messages() (out []reply.Message, err error) {
	if !api.IsNull(q.Instructions) {
		text, err := readContent("instructions", q.Instructions, true)
		if err != nil {
			return nil, err
		}
		out = append(out, reply.Message{Role: "system", Text: text})
	}
	if api.IsNull(q.Input) || q.Input[0] == '"' {
		text, err := readContent("input", q.Input, false)
		return append(out, reply.Message{Role: "user", Text: text}), err
	}
	var items []inputItem
	if err := api.Decode("input", q.Input, &items); err != nil {
		return nil, err
	}
	chat := make([]message, 0, len(items))
	for i, item := range items {
		at := fmt.Sprintf("input[%d]", i)
		switch item.Type {
		case "", "message":
			chat = append(chat, message{Role: item.Role, Content: item.Content})
		case "function_call":
			c := toolCall{ID: item.CallID, Type: "function"}
			c.Function.Name, c.Function.Arguments = item.Name, item.Arguments
			if last := len(chat) - 1; last < 0 || chat[last].Role != "assistant" {
				chat = append(chat, message{Role: "assistant"})
			}
			chat[len(chat)-1].ToolCalls = append(chat[len(chat)-1].ToolCalls, c)
		case "function_call_output":
			chat = append(chat, message{Role: "tool", CallID: item.CallID, Content: item.Output})
		default:
			return nil, api.Unsupported(at+".type", "%s is of type %q, which is not supported: want message, function_call or function_call_output", at, item.Type)
		}
	}
	more, err := readMessages(chat)
	return append(out, more...), err
}

// responseObject is a whole response.
type responseObject struct {
	ID         string                     `json:"id"`
	Object     string                     `json:"object"`
	Created    int64                      `json:"created_at"`
	Status     string                     `json:"status"`
	Error      any                        `json:"error"`
	Incomplete *incomplete                `json:"incomplete_details"`
	Model      string                     `json:"model"`
	Output     []outputItem               `json:"output"`
	Usage      *responseUsage             `json:"usage"`
	Tally      *reply.Report              `json:"tally,omitempty"`
	Text       map[string]json.RawMessage `json:"text"`
	responseEcho
}

// responseEcho is what a response repeats of its request.
type responseEcho struct {
	Instructions json.RawMessage `json:"instructions"`
	MaxOutput    *int            `json:"max_output_tokens"`
	Metadata     json.RawMessage `json:"metadata"`
	Parallel     bool            `json:"parallel_tool_calls"`
	Previous     *string         `json:"previous_response_id"`
	Store        bool            `json:"store"`
	Temperature  float64         `json:"temperature"`
	TopP         float64         `json:"top_p"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Tools        []responseTool  `json:"tools"`
	Truncation   string          `json:"truncation"`
}

type responseTool struct {
	Type string `json:"type"`
	function
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// outputItem is a message, or a call of a tool.
type outputItem struct {
	ID        string       `json:"id"`
	Type      string       `json:"type"`
	Status    string       `json:"status"`
	Role      string       `json:"role,omitempty"`
	Content   []outputText `json:"content,omitzero"`
	CallID    string       `json:"call_id,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments *string      `json:"arguments,omitempty"`
}

type outputText struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
	Logprobs    []struct{} `json:"logprobs"`
}

func newOutputText(text string) outputText {
	return outputText{"output_text", text, []struct{}{}, []struct{}{}}
}

func orElse[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}

func orNull(text json.RawMessage, other string) json.RawMessage {
	if api.IsNull(text) {
		return json.RawMessage(other)
	}
	return text
}

func (q *responseRequest) object(m *reply.Model) responseObject {
	o := responseObject{
		ID: "resp_" + reply.NewID(24), Object: "response", Created: time.Now().Unix(), Status: "in_progress", Model: m.Name, Output: []outputItem{},
		Text: map[string]json.RawMessage{"format": json.RawMessage(`{"type":"text"}`)},
		responseEcho: responseEcho{
			Instructions: orNull(q.Instructions, "null"), MaxOutput: q.MaxOutput, Metadata: orNull(q.Metadata, "{}"), Parallel: orElse(q.Parallel, true),
			Temperature: orElse(q.Temperature, 1), TopP: orElse(q.TopP, 1), ToolChoice: orNull(q.ToolChoice, `"auto"`), Tools: []responseTool{}, Truncation: "disabled",
		},
	}
	if q.Text != nil && !api.IsNull(q.Text.Format) {
		o.Text["format"] = q.Text.Format
	}
	for _, t := range q.Tools {
		f := t.function
		if t.Function != nil {
			f = *t.Function
		}
		f.Parameters = orNull(f.Parameters, "null")
		o.Tools = append(o.Tools, responseTool{t.Type, f})
	}
	return o
}

// end completes an object when its reply is over.
func (o *responseObject) end(run *reply.Run, e *reply.End) {
	o.Status = "completed"
	if e.Reason == reply.Length {
		o.Status, o.Incomplete = "incomplete", &incomplete{"max_output_tokens"}
	}
	report := run.Report()
	o.Usage, o.Tally = &responseUsage{Input: run.Read, Output: run.Written(), Total: run.Read + run.Written()}, &report
}

func (v *server) respond(w http.ResponseWriter, r *http.Request) error {
	var q responseRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	a, err := q.ask()
	if err != nil {
		return err
	}
	run, err := v.begin(r.Context(), r.Header, a)
	if err != nil {
		return err
	}
	defer run.Close()
	b := &responseBuilder{object: q.object(run.Model)}
	if !q.Stream {
		if err := b.build(run); err != nil {
			return err
		}
		return api.Write(w, http.StatusOK, &b.object)
	}
	b.stream = api.Events(w)
	err = b.build(run)
	if err != nil && b.stream.Begun() {
		b.fail(api.FaultOf(err))
	}
	return err
}
