package anthropic

import (
	"net/http"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type server struct{ replies *reply.Service }

// New returns the API over what gives replies.
func New(s *reply.Service) api.API {
	v := &server{s}
	return api.API{Name: "anthropic", Fail: Fail, Routes: []api.Route{
		{Method: "POST", Path: "/v1/messages", Summary: "Reply to a conversation", Request: request{}, Serve: v.messages},
		{Method: "POST", Path: "/v1/messages/count_tokens", Summary: "Count the tokens of a conversation", Request: request{}, Serve: v.count},
	}}
}

// failure is Anthropic's shape of an error.
type failure struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Request string `json:"request_id,omitempty"`
}

var kinds = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", http.StatusServiceUnavailable: "overloaded_error",
	http.StatusGatewayTimeout: "timeout_error",
}

func shape(f *api.Fault) failure {
	out := failure{Type: "error"}
	out.Error.Message = f.Message
	out.Error.Type = kinds[f.Status]
	if out.Error.Type == "" {
		out.Error.Type = "invalid_request_error"
		if f.Status >= 500 {
			out.Error.Type = "api_error"
		}
	}
	return out
}

// Fail writes a fault in Anthropic's shape.
func Fail(w http.ResponseWriter, f *api.Fault) {
	f.Headers(w.Header())
	out := shape(f)
	out.Request = w.Header().Get("Request-Id")
	_ = api.Write(w, f.Status, out) // who has left needs no error
}

func (v *server) messages(w http.ResponseWriter, r *http.Request) error {
	var q request
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	if q.MaxTokens == nil {
		return api.Invalid("max_tokens", "max_tokens is missing: say how many tokens the reply may have")
	}
	a, err := q.ask()
	if err != nil {
		return err
	}
	if err := a.ReadHeaders(r.Header); err != nil {
		return err
	}
	run, err := v.replies.Begin(r.Context(), a)
	if err != nil {
		return err
	}
	defer run.Close()
	b := &messageBuilder{message: newMessage(run)}
	if !q.Stream {
		if err := b.build(run); err != nil {
			return err
		}
		return api.Write(w, http.StatusOK, &b.message)
	}
	b.stream = api.Events(w)
	err = b.build(run)
	if err != nil && b.stream.Begun() {
		_ = b.stream.Send("error", shape(api.FaultOf(err))) // who has left needs no error
	}
	return err
}

func (v *server) count(w http.ResponseWriter, r *http.Request) error {
	var q request
	if err := api.Read(w, r, &q); err != nil {
		return err
	}
	a, err := q.ask()
	if err != nil {
		return err
	}
	if err := a.ReadHeaders(r.Header); err != nil {
		return err
	}
	n, err := v.replies.Count(r.Context(), a)
	if err != nil {
		return err
	}
	return api.Write(w, http.StatusOK, map[string]int{"input_tokens": n})
}
