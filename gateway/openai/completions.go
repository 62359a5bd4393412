package openai

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type completionRequest struct {
	Model         string          `json:"model"`
	Prompt        json.RawMessage `json:"prompt"`
	MaxTokens     *int            `json:"max_tokens"`
	Logprobs      *int            `json:"logprobs"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	Format        json.RawMessage `json:"response_format"`
	sampling
	completionRefused
}

type completionRefused struct {
	Echo       json.RawMessage `json:"echo" but:"false" why:"a reply does not repeat its prompt"`
	Suffix     json.RawMessage `json:"suffix" but:"\"\"" why:"text is not filled in"`
	BestOf     json.RawMessage `json:"best_of" but:"1" why:"every reply is given"`
	GuidedJSON json.RawMessage `json:"guided_json" why:"response_format has the schema"`
}

const defaultMaxTokens = 16 // OpenAI's

func (q *completionRequest) ask() (*reply.Ask, error) {
	a := &reply.Ask{Model: q.Model, Field: "prompt", Likeliest: q.Logprobs}
	if err := api.Refuse(&q.completionRefused); err != nil {
		return nil, err
	}
	if err := q.sampling.ask(a); err != nil {
		return nil, err
	}
	var err error
	if a.MaxTokens, err = most("max_tokens", q.MaxTokens); err != nil {
		return nil, err
	}
	if a.MaxTokens == 0 {
		a.MaxTokens = defaultMaxTokens
	}
	if q.StreamOptions != nil && !q.Stream {
		return nil, api.Invalid("stream_options", "stream_options need stream to be true")
	}
	if a.Format, err = reply.ReadFormat("response_format", q.Format); err != nil {
		return nil, err
	}
	a.Prompts, err = readPrompts("prompt", q.Prompt, reply.MaxReplies)
	return a, err
}

// readPrompts reads a field that is a text, texts, tokens, or several times tokens.
func readPrompts(name string, text json.RawMessage, most int) (out []reply.Prompt, err error) {
	var tokens []int32
	var several [][]int32
	switch {
	case api.IsNull(text):
		return nil, api.Invalid(name, "%s is missing: want a string, tokens, or an array of these", name)
	case text[0] == '[' && json.Unmarshal(text, &tokens) == nil && len(tokens) > 0:
		return []reply.Prompt{{Tokens: tokens}}, nil
	case text[0] == '[' && json.Unmarshal(text, &several) == nil && len(several) > 0:
		if len(several) > most {
			return nil, api.Invalid(name, "%s has %d items: want at most %d", name, len(several), most)
		}
		for i, t := range several {
			if len(t) == 0 {
				return nil, api.Invalid(name, "item %d of %s has no tokens", i, name)
			}
			out = append(out, reply.Prompt{Tokens: t})
		}
		return out, nil
	}
	texts, err := api.Texts(name, text, most)
	if err == nil && len(texts) == 0 {
		err = api.Invalid(name, "%s is empty: want a string, tokens, or an array of these", name)
	}
	for _, t := range texts {
		out = append(out, reply.Prompt{Text: t})
	}
	return out, err
}

type completionObject struct {
	ID          string             `json:"id"`
	Object      string             `json:"object"`
	Created     int64              `json:"created"`
	Model       string             `json:"model"`
	Fingerprint string             `json:"system_fingerprint"`
	Choices     []completionChoice `json:"choices"`
	Usage       *usage             `json:"usage,omitempty"`
	Tally       *reply.Report      `json:"tally,omitempty"`
}

type completionChoice struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	Logprobs *textLogprobs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

type textLogprobs struct {
	Tokens   []string             `json:"tokens"`
	Logprobs []float32            `json:"token_logprobs"`
	Top      []map[string]float32 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"`
}

func textLogprobsOf(tokens []reply.Token) *textLogprobs {
	if len(tokens) == 0 {
		return nil
	}
	out := &textLogprobs{}
	for _, t := range tokens {
		top := map[string]float32{}
		for _, o := range t.Likeliest {
			if _, ok := top[o.Text]; !ok { // of tokens with one text the likeliest stays
				top[o.Text] = finite(o.LogProb)
			}
		}
		out.Tokens = append(out.Tokens, t.Text)
		out.Logprobs = append(out.Logprobs, finite(t.LogProb))
		out.Top = append(out.Top, top)
		out.Offsets = append(out.Offsets, t.Offset)
	}
	return out
}

func (v *server) complete(w http.ResponseWriter, r *http.Request) error {
	var q completionRequest
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
	head := completionObject{ID: "cmpl-" + reply.NewID(24), Object: "text_completion", Created: time.Now().Unix(), Model: run.Model.Name, Fingerprint: fingerprint(run.Model)}
	if q.Stream {
		s := api.Events(w)
		return finish(s, streamCompletion(s, run, head, q.StreamOptions != nil && q.StreamOptions.IncludeUsage))
	}
	all, err := run.Collect()
	if err != nil {
		return err
	}
	for i, c := range all {
		reason := finishReasons[c.End.Reason]
		head.Choices = append(head.Choices, completionChoice{Index: i, Text: c.Text, Logprobs: textLogprobsOf(c.Tokens), Finish: &reason})
	}
	report := run.Report()
	head.Usage, head.Tally = usageOf(run), &report
	return api.Write(w, http.StatusOK, head)
}

func streamCompletion(s *api.Stream, run *reply.Run, head completionObject, withUsage bool) error {
	left := run.Replies()
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		c := completionChoice{Index: e.Choice, Text: e.Text, Logprobs: textLogprobsOf(e.Tokens)}
		if e.End != nil {
			reason := finishReasons[e.End.Reason]
			c.Finish = &reason
			if left--; left == 0 {
				report := run.Report()
				head.Tally = &report
			}
		}
		head.Choices = append(head.Choices[:0], c)
		if err := s.Send("", &head); err != nil {
			return err
		}
	}
	if withUsage {
		head.Choices, head.Usage, head.Tally = []completionChoice{}, usageOf(run), nil
		if err := s.Send("", &head); err != nil {
			return err
		}
	}
	return s.Done()
}
