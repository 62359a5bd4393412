package openai

import (
	"encoding/json"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// sampling is the part of a request that says how tokens are drawn.
type sampling struct {
	Temperature *float64           `json:"temperature"`
	TopP        *float64           `json:"top_p"`
	TopK        *int               `json:"top_k"`
	MinP        *float64           `json:"min_p"`
	Presence    *float64           `json:"presence_penalty"`
	Frequency   *float64           `json:"frequency_penalty"`
	Repetition  *float64           `json:"repetition_penalty"`
	Bias        map[string]float64 `json:"logit_bias"`
	Seed        *int64             `json:"seed"`
	N           *int               `json:"n"`
	Stop        json.RawMessage    `json:"stop"`
}

// ask sets what the fields say.
func (s *sampling) ask(a *reply.Ask) (err error) {
	to := &a.Sampling
	to.Temperature = 1
	err = reply.SetNumbers(
		reply.Number{Name: "temperature", Value: s.Temperature, Low: 0, Top: 2, To: &to.Temperature},
		reply.Number{Name: "top_p", Value: s.TopP, Low: 0, Top: 1, To: &to.TopP},
		reply.Number{Name: "min_p", Value: s.MinP, Low: 0, Top: 1, To: &to.MinP},
		reply.Number{Name: "presence_penalty", Value: s.Presence, Low: -2, Top: 2, To: &to.Presence},
		reply.Number{Name: "frequency_penalty", Value: s.Frequency, Low: -2, Top: 2, To: &to.Frequency},
		reply.Number{Name: "repetition_penalty", Value: s.Repetition, Low: 0.01, Top: 100, To: &to.Repeat},
	)
	if err != nil {
		return err
	}
	if s.TopK != nil {
		if *s.TopK < -1 {
			return api.Invalid("top_k", "top_k is %d: want 0 or −1 for all, or how many", *s.TopK)
		}
		to.TopK = max(0, *s.TopK)
	}
	if to.Bias, err = reply.ReadBias("logit_bias", s.Bias); err != nil {
		return err
	}
	if s.Seed != nil {
		seed := uint64(*s.Seed) // −1 is as good a seed as others
		a.Seed = &seed
	}
	a.Choices = 1
	if s.N != nil {
		a.Choices = *s.N
		if a.Choices < 1 {
			return api.Invalid("n", "n is %d: want at least 1", a.Choices)
		}
	}
	a.Stops, err = api.Texts("stop", s.Stop, reply.MaxStops)
	return err
}

// streamOptions say what a stream has beside the reply.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// most returns how many tokens a reply may have, of a field that may be absent.
func most(name string, n *int) (int, error) {
	if n == nil {
		return 0, nil
	}
	if *n < 1 {
		return 0, api.Invalid(name, "%s is %d: want at least 1", name, *n)
	}
	return *n, nil
}
