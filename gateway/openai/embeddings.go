package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type embeddingRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Encoding   string          `json:"encoding_format"`
	Dimensions *int            `json:"dimensions"`
}

type embeddingObject struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // numbers, or their bytes in base64
}

type embeddingReply struct {
	Object string            `json:"object"`
	Data   []embeddingObject `json:"data"`
	Model  string            `json:"model"`
	Usage  embeddingUsage    `json:"usage"`
}

type embeddingUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

func (v *server) embed(w http.ResponseWriter, r *http.Request) error {
	var q embeddingRequest
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	if q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64" {
		return api.Invalid("encoding_format", "encoding_format is %q: want float or base64", q.Encoding)
	}
	a := &reply.Ask{Model: q.Model, Field: "input"}
	var o reply.Embedding
	var err error
	if o.Dimensions, err = most("dimensions", q.Dimensions); err != nil {
		return err
	}
	if a.Prompts, err = readPrompts("input", q.Input, reply.MaxTexts); err != nil {
		return err
	}
	got, err := v.replies.Embed(r.Context(), a, o)
	if err != nil {
		return err
	}
	out := embeddingReply{Object: "list", Model: got.Model.Name, Usage: embeddingUsage{got.Read, got.Read}}
	for i, x := range got.Values {
		o := embeddingObject{"embedding", i, x}
		if q.Encoding == "base64" {
			o.Embedding = pack(x)
		}
		out.Data = append(out.Data, o)
	}
	return api.Write(w, http.StatusOK, out)
}

// pack returns the bytes of numbers, the least significant first, in base64.
func pack(x []float32) string {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(b)
}
