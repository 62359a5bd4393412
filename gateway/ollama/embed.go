package ollama

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type embedRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Truncate   *bool           `json:"truncate"`
	Dimensions int             `json:"dimensions"`
	KeepAlive  json.RawMessage `json:"keep_alive"`
}

type embeddingsRequest struct {
	Model     string          `json:"model"`
	Prompt    string          `json:"prompt"`
	KeepAlive json.RawMessage `json:"keep_alive"`
}

// vectors embeds texts.
func (v *server) vectors(r *http.Request, a *reply.Ask, keep json.RawMessage, texts []string, o reply.Embedding) (_ *reply.Vectors, err error) {
	if a.Keep, err = keepAlive(keep); err != nil {
		return nil, err
	}
	if a.Model, err = v.named(r.Context(), a.Model, ""); err != nil {
		return nil, err
	}
	for _, t := range texts {
		a.Prompts = append(a.Prompts, reply.Prompt{Text: t})
	}
	return v.replies.Embed(r.Context(), a, o)
}

func (v *server) embed(w http.ResponseWriter, r *http.Request) error {
	var q embedRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	texts, err := api.Texts("input", q.Input, reply.MaxTexts)
	if err != nil {
		return err
	}
	o := reply.Embedding{Dimensions: q.Dimensions, Truncate: q.Truncate == nil || *q.Truncate} // as ollama does
	got, err := v.vectors(r, &reply.Ask{Model: q.Model, Field: "input"}, q.KeepAlive, texts, o)
	if err != nil {
		return err
	}
	if got.Values == nil {
		got.Values = [][]float32{}
	}
	return api.Write(w, http.StatusOK, struct {
		Model      string        `json:"model"`
		Embeddings [][]float32   `json:"embeddings"`
		Total      time.Duration `json:"total_duration"`
		Load       time.Duration `json:"load_duration"`
		Read       int           `json:"prompt_eval_count"`
	}{got.Model.Name, got.Values, time.Since(got.Times.Begun), got.Times.Load, got.Read})
}

func (v *server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var q embeddingsRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	got, err := v.vectors(r, &reply.Ask{Model: q.Model, Field: "prompt"}, q.KeepAlive, []string{q.Prompt}, reply.Embedding{Truncate: true})
	if err != nil {
		return err
	}
	return api.Write(w, http.StatusOK, map[string][]float32{"embedding": got.Values[0]})
}
