package openai

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type chatRequest struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Tools         []tool          `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Parallel      *bool           `json:"parallel_tool_calls"`
	MaxTokens     *int            `json:"max_tokens"`
	MaxCompletion *int            `json:"max_completion_tokens"`
	Logprobs      bool            `json:"logprobs"`
	TopLogprobs   *int            `json:"top_logprobs"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	Format        json.RawMessage `json:"response_format"`
	sampling
	chatRefused
}

type chatRefused struct {
	Audio           json.RawMessage `json:"audio" why:"replies are text"`
	Modalities      json.RawMessage `json:"modalities" but:"[\"text\"]" why:"replies are text"`
	Functions       json.RawMessage `json:"functions" but:"[]" why:"tools have replaced it"`
	FunctionCall    json.RawMessage `json:"function_call" but:"\"none\"" why:"tool_choice has replaced it"`
	Prediction      json.RawMessage `json:"prediction" why:"replies are not predicted"`
	ReasoningEffort json.RawMessage `json:"reasoning_effort" but:"\"none\"" why:"models here do not reason apart"`
	WebSearch       json.RawMessage `json:"web_search_options" why:"models here search nothing"`
	Store           json.RawMessage `json:"store" but:"false" why:"nothing is kept"`
	Verbosity       json.RawMessage `json:"verbosity" but:"\"medium\"" why:"a model writes as much as it writes"`
	ServiceTier     json.RawMessage `json:"service_tier" but:"\"auto\"|\"default\"" why:"there is one"`
	GuidedJSON      json.RawMessage `json:"guided_json" why:"response_format has the schema"`
}

func (q *chatRequest) ask() (*reply.Ask, error) {
	a := &reply.Ask{Model: q.Model, Field: "messages", OneCall: !orElse(q.Parallel, true)}
	if err := api.Refuse(&q.chatRefused); err != nil {
		return nil, err
	}
	messages, err := readMessages(q.Messages)
	if err != nil {
		return nil, err
	}
	a.Chat = &reply.Conversation{Messages: messages}
	if a.Chat.Tools, a.MustCall, err = readTools(q.Tools, q.ToolChoice); err != nil {
		return nil, err
	}
	if a.Format, err = reply.ReadFormat("response_format", q.Format); err != nil {
		return nil, err
	}
	if err := q.sampling.ask(a); err != nil {
		return nil, err
	}
	a.MaxTokens, err = most("max_completion_tokens", q.MaxCompletion)
	if q.MaxCompletion == nil {
		a.MaxTokens, err = most("max_tokens", q.MaxTokens)
	}
	if err != nil {
		return nil, err
	}
	if q.Logprobs {
		a.Likeliest = new(int)
		if q.TopLogprobs != nil {
			a.Likeliest = q.TopLogprobs
		}
	} else if q.TopLogprobs != nil && *q.TopLogprobs != 0 {
		return nil, api.Invalid("top_logprobs", "top_logprobs needs logprobs to be true")
	}
	if q.StreamOptions != nil && !q.Stream {
		return nil, api.Invalid("stream_options", "stream_options need stream to be true")
	}
	return a, nil
}

// chatObject is a reply, or a piece of one.
type chatObject struct {
	ID          string        `json:"id"`
	Object      string        `json:"object"`
	Created     int64         `json:"created"`
	Model       string        `json:"model"`
	Fingerprint string        `json:"system_fingerprint"`
	Choices     []chatChoice  `json:"choices"`
	Usage       *usage        `json:"usage,omitempty"`
	Tally       *reply.Report `json:"tally,omitempty"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatMessage  `json:"message,omitempty"`
	Delta    *chatDelta    `json:"delta,omitempty"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type chatLogprobs struct {
	Content []chatLogprob `json:"content"`
	Refusal []chatLogprob `json:"refusal"`
}

type chatLogprob struct {
	Token   string        `json:"token"`
	Logprob float32       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []chatLogprob `json:"top_logprobs,omitempty"`
}

func logprobsOf(tokens []reply.Token) *chatLogprobs {
	if len(tokens) == 0 {
		return nil
	}
	out := &chatLogprobs{}
	for _, t := range tokens {
		s := logprobOf(t)
		s.Top = []chatLogprob{}
		for _, o := range t.Likeliest {
			s.Top = append(s.Top, logprobOf(o))
		}
		out.Content = append(out.Content, s)
	}
	return out
}

func logprobOf(t reply.Token) chatLogprob {
	s := chatLogprob{Token: t.Text, Logprob: finite(t.LogProb), Bytes: []int{}}
	for _, b := range []byte(t.Text) {
		s.Bytes = append(s.Bytes, int(b))
	}
	return s
}

// finite returns a logarithm that JSON has a number for. OpenAI writes −9999 for what never happens.
func finite(logProb float32) float32 {
	if !(logProb > -9999) {
		return -9999
	}
	return logProb
}

func (v *server) chat(w http.ResponseWriter, r *http.Request) error {
	var q chatRequest
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
	head := chatObject{ID: "chatcmpl-" + reply.NewID(24), Created: time.Now().Unix(), Model: run.Model.Name, Fingerprint: fingerprint(run.Model)}
	if q.Stream {
		s := api.Events(w)
		return finish(s, streamChat(s, run, head, q.StreamOptions != nil && q.StreamOptions.IncludeUsage))
	}
	head.Object = "chat.completion"
	all, err := run.Collect()
	if err != nil {
		return err
	}
	for i, c := range all {
		m := &chatMessage{Role: "assistant", Content: &c.Text, ToolCalls: callObjects(c.Calls)}
		if c.Text == "" && len(c.Calls) > 0 {
			m.Content = nil
		}
		reason := finishReasons[c.End.Reason]
		head.Choices = append(head.Choices, chatChoice{Index: i, Message: m, Logprobs: logprobsOf(c.Tokens), Finish: &reason})
	}
	report := run.Report()
	head.Usage, head.Tally = usageOf(run), &report
	return api.Write(w, http.StatusOK, head)
}

// streamChat sends a reply as it comes: who speaks, pieces, the reason of each end, and usage if it is wanted.
func streamChat(s *api.Stream, run *reply.Run, head chatObject, withUsage bool) error {
	head.Object = "chat.completion.chunk"
	begun, calls, left := map[int]bool{}, map[int]int{}, run.Replies()
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		d := &chatDelta{}
		if !begun[e.Choice] {
			begun[e.Choice] = true
			empty := ""
			d.Role, d.Content = "assistant", &empty
		}
		if e.Text != "" {
			d.Content = &e.Text
		}
		d.ToolCalls = callObjects(e.Calls)
		for i := range d.ToolCalls {
			n := calls[e.Choice]
			d.ToolCalls[i].Index = &n
			calls[e.Choice]++
		}
		head.Choices = append(head.Choices[:0], chatChoice{Index: e.Choice, Delta: d, Logprobs: logprobsOf(e.Tokens)})
		if e.Text != "" || len(e.Calls) > 0 || len(e.Tokens) > 0 || d.Role != "" {
			if err := s.Send("", &head); err != nil {
				return err
			}
		}
		if e.End == nil {
			continue
		}
		reason := finishReasons[e.End.Reason]
		head.Choices[0] = chatChoice{Index: e.Choice, Delta: &chatDelta{}, Finish: &reason}
		if left--; left == 0 {
			report := run.Report()
			head.Tally = &report
		}
		if err := s.Send("", &head); err != nil {
			return err
		}
	}
	if withUsage {
		head.Choices, head.Usage, head.Tally = []chatChoice{}, usageOf(run), nil
		if err := s.Send("", &head); err != nil {
			return err
		}
	}
	return s.Done()
}
