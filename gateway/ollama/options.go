package ollama

import (
	"encoding/json"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// options say how tokens are drawn.
type options struct {
	Predict     *int            `json:"num_predict"`
	Context     *int            `json:"num_ctx"`
	Temperature *float64        `json:"temperature"`
	TopK        *int            `json:"top_k"`
	TopP        *float64        `json:"top_p"`
	MinP        *float64        `json:"min_p"`
	Repeat      *float64        `json:"repeat_penalty"`
	Presence    *float64        `json:"presence_penalty"`
	Frequency   *float64        `json:"frequency_penalty"`
	Seed        *int64          `json:"seed"`
	Stop        json.RawMessage `json:"stop"`
	optionsRefused
}

type optionsRefused struct {
	LastN    json.RawMessage `json:"repeat_last_n" but:"-1|64" why:"penalties look at all tokens"`
	TypicalP json.RawMessage `json:"typical_p" but:"1|1.0" why:"top_p and min_p are there"`
	TFS      json.RawMessage `json:"tfs_z" but:"1|1.0" why:"top_p and min_p are there"`
	Mirostat json.RawMessage `json:"mirostat" but:"0" why:"top_p and min_p are there"`
	Newline  json.RawMessage `json:"penalize_newline" but:"true" why:"penalties look at all tokens"`
}

// ask sets what the options say, and ollama's defaults.
func (o *options) ask(a *reply.Ask) (err error) {
	if err := api.Refuse(&o.optionsRefused); err != nil {
		return err
	}
	to := &a.Sampling
	to.Temperature, to.TopK, to.TopP = 0.8, 40, 0.9
	err = reply.SetNumbers(
		reply.Number{Name: "temperature", Value: o.Temperature, Low: 0, Top: 100, To: &to.Temperature},
		reply.Number{Name: "top_p", Value: o.TopP, Low: 0, Top: 1, To: &to.TopP},
		reply.Number{Name: "min_p", Value: o.MinP, Low: 0, Top: 1, To: &to.MinP},
		reply.Number{Name: "repeat_penalty", Value: o.Repeat, Low: 0.01, Top: 100, To: &to.Repeat},
		reply.Number{Name: "presence_penalty", Value: o.Presence, Low: -100, Top: 100, To: &to.Presence},
		reply.Number{Name: "frequency_penalty", Value: o.Frequency, Low: -100, Top: 100, To: &to.Frequency},
	)
	if err != nil {
		return err
	}
	if o.TopK != nil {
		to.TopK = max(0, *o.TopK)
	}
	if o.Predict != nil { // −1 and −2 are as many as the context holds
		if a.MaxTokens = max(0, *o.Predict); *o.Predict == 0 {
			return api.Invalid("num_predict", "num_predict is 0: want at least 1, or −1 for as many as the context holds")
		}
	}
	if o.Context != nil {
		if a.Context = *o.Context; a.Context < 1 {
			return api.Invalid("num_ctx", "num_ctx is %d: want at least 1", a.Context)
		}
	}
	if o.Seed != nil && *o.Seed >= 0 { // −1 asks for any
		seed := uint64(*o.Seed)
		a.Seed = &seed
	}
	a.Stops, err = api.Texts("stop", o.Stop, reply.MaxStops)
	return err
}

// readFormat reads what a reply shall be: "json", or a schema.
func readFormat(text json.RawMessage) (*reply.Format, error) {
	switch {
	case api.IsNull(text), string(text) == `""`:
		return nil, nil
	case string(text) == `"json"`:
		return &reply.Format{Field: "format", Schema: reply.AnyObject}, nil
	case text[0] == '{':
		return &reply.Format{Field: "format", Schema: text}, nil
	}
	return nil, api.Invalid("format", "format is neither \"json\" nor a JSON schema")
}

// refused is what neither chat nor generate does.
type refused struct {
	Think       json.RawMessage `json:"think" but:"false" why:"models here do not think apart"`
	Logprobs    json.RawMessage `json:"logprobs" but:"false" why:"/v1/chat/completions has them"`
	TopLogprobs json.RawMessage `json:"top_logprobs" but:"0" why:"/v1/chat/completions has them"`
}
