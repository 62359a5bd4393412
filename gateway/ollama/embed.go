package ollama

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type embedRequest struct {
	Model     string          `json:"model"`
	Input     json.RawMessage `json:"input"`
	KeepAlive json.RawMessage `json:"keep_alive"`
	embedRefused
}

type embedRefused struct {
	Dimensions json.RawMessage `json:"dimensions" but:"0" why:"vectors have the size that the model gives them"`
}

type embeddingsRequest struct {
	Model     string          `json:"model"`
	Prompt    string          `json:"prompt"`
	KeepAlive json.RawMessage `json:"keep_alive"`
}

// vectors embeds texts.
func (v *server) vectors(r *http.Request, model, field string, keep json.RawMessage, texts []string) (_ *reply.Vectors, err error) {
	a := &reply.Ask{Field: field}
	if a.Keep, err = keepAlive(keep); err != nil {
		return nil, err
	}
	if a.Model, err = v.named(r.Context(), model, ""); err != nil {
		return nil, err
	}
	return v.replies.Embed(r.Context(), a, texts)
}

func (v *server) embed(w http.ResponseWriter, r *http.Request) error {
	var q embedRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	if err := api.Refuse(&q.embedRefused); err != nil {
		return err
	}
	texts, err := api.Texts("input", q.Input, reply.MaxTexts)
	if err != nil {
		return err
	}
	got, err := v.vectors(r, q.Model, "input", q.KeepAlive, texts)
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
	got, err := v.vectors(r, q.Model, "prompt", q.KeepAlive, []string{q.Prompt})
	if err != nil {
		return err
	}
	return api.Write(w, http.StatusOK, map[string][]float32{"embedding": got.Values[0]})
}
