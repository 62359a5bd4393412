package openai

import (
	"context"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type server struct{ replies *reply.Service }

// New returns the API over what gives replies.
func New(s *reply.Service) api.API {
	v := &server{s}
	return api.API{Name: "openai", Fail: Fail, Routes: []api.Route{
		{Method: "GET", Path: "/v1/models", Summary: "List models", Serve: v.models},
		{Method: "GET", Path: "/v1/models/{name...}", Summary: "Show a model", Serve: v.model},
		{Method: "POST", Path: "/v1/chat/completions", Summary: "Reply to a conversation", Request: chatRequest{}, Serve: v.chat},
		{Method: "POST", Path: "/v1/completions", Summary: "Go on with a text", Request: completionRequest{}, Serve: v.complete},
		{Method: "POST", Path: "/v1/embeddings", Summary: "Turn texts into vectors", Request: embeddingRequest{}, Serve: v.embed},
		{Method: "POST", Path: "/v1/responses", Summary: "Reply to input, without keeping anything", Request: responseRequest{}, Serve: v.respond},
	}}
}

// failure is OpenAI's shape of an error.
type failure struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func shape(f *api.Fault) (out failure) {
	out.Error.Message = f.Message
	if f.Param != "" {
		out.Error.Param = &f.Param
	}
	if f.Code != "" {
		out.Error.Code = &f.Code
	}
	switch {
	case f.Code == "insufficient_quota":
		out.Error.Type = f.Code
	case f.Status == http.StatusUnauthorized:
		out.Error.Type = "authentication_error"
	case f.Status == http.StatusTooManyRequests:
		out.Error.Type = "rate_limit_error"
	case f.Status >= 500:
		out.Error.Type = "server_error"
	default:
		out.Error.Type = "invalid_request_error"
	}
	return out
}

// Fail writes a fault in OpenAI's shape.
func Fail(w http.ResponseWriter, f *api.Fault) {
	f.Headers(w.Header())
	_ = api.Write(w, f.Status, shape(f)) // who has left needs no error
}

// finish ends a stream: with a fault, if nothing was sent yet, or else with an event that says it.
func finish(s *api.Stream, err error) error {
	if err == nil || !s.Begun() {
		return err
	}
	_ = s.Send("", shape(api.FaultOf(err))) // who has left needs no error
	return err
}

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Digest  string `json:"digest,omitempty"`
}

func describe(l reply.Listing) modelObject {
	return modelObject{l.Name, "model", seconds(l.Modified), "tally", l.Digest}
}

func seconds(t time.Time) int64 { return max(0, t.Unix()) }

func (v *server) models(w http.ResponseWriter, r *http.Request) error {
	all, err := v.replies.Models.List(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{"list", []modelObject{}}
	for _, l := range all {
		out.Data = append(out.Data, describe(l))
	}
	return api.Write(w, http.StatusOK, out)
}

func (v *server) model(w http.ResponseWriter, r *http.Request) error {
	l, err := v.replies.Find(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return api.Write(w, http.StatusOK, describe(l))
}

// begin starts the replies to what is asked, with what headers ask.
func (v *server) begin(ctx context.Context, h http.Header, a *reply.Ask) (*reply.Run, error) {
	if err := a.ReadHeaders(h); err != nil {
		return nil, err
	}
	return v.replies.Begin(ctx, a)
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func usageOf(r *reply.Run) *usage {
	return &usage{r.Read, r.Written(), r.Read + r.Written()}
}

// fingerprint names what computed a reply.
func fingerprint(m *reply.Model) string {
	return "fp_" + m.Digest[:min(12, len(m.Digest))]
}

var finishReasons = map[reply.Reason]string{reply.Stop: "stop", reply.Length: "length", reply.Calls: "tool_calls"}
