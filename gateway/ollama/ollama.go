package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

type server struct{ replies *reply.Service }

// version is that of ollama's API which is followed. Clients ask for it, and refuse older ones.
const version = "0.12.6"

// New returns the API over what gives replies.
func New(s *reply.Service) api.API {
	v := &server{s}
	return api.API{Name: "ollama", Fail: Fail, Routes: []api.Route{
		{Method: "HEAD", Path: "/{$}", Summary: "Whether the gateway runs", Free: true, Serve: v.running},
		{Method: "GET", Path: "/{$}", Summary: "Whether the gateway runs", Free: true, Serve: v.running},
		{Method: "GET", Path: "/api/version", Summary: "The version of ollama's API", Free: true, Serve: v.version},
		{Method: "POST", Path: "/api/generate", Summary: "Reply to a prompt", Request: generateRequest{}, Serve: v.generate},
		{Method: "POST", Path: "/api/chat", Summary: "Reply to a conversation", Request: chatRequest{}, Serve: v.chat},
		{Method: "POST", Path: "/api/embed", Summary: "Turn texts into vectors", Request: embedRequest{}, Serve: v.embed},
		{Method: "POST", Path: "/api/embeddings", Summary: "Turn a text into a vector", Request: embeddingsRequest{}, Serve: v.embeddings},
		{Method: "GET", Path: "/api/tags", Summary: "List models", Serve: v.tags},
		{Method: "POST", Path: "/api/show", Summary: "Show a model", Request: showRequest{}, Serve: v.show},
		{Method: "GET", Path: "/api/ps", Summary: "List models that are ready", Serve: v.ps},
		{Method: "POST", Path: "/api/pull", Summary: "Fetch a model", Owner: true, Request: pullRequest{}, Serve: v.pull},
	}}
}

type failure struct {
	Error string `json:"error"`
}

// Fail writes a fault in ollama's shape.
func Fail(w http.ResponseWriter, f *api.Fault) {
	f.Headers(w.Header())
	_ = api.Write(w, f.Status, failure{f.Message}) // who has left needs no error
}

// finish ends a stream: with a fault, if nothing was sent yet, or else with a line that says it.
func finish(s *api.Stream, err error) error {
	if err == nil || !s.Begun() {
		return err
	}
	_ = s.Send("", failure{api.FaultOf(err).Message}) // who has left needs no error
	return err
}

func (v *server) running(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte("Ollama is running")) // clients look for these words
	return err
}

func (v *server) version(w http.ResponseWriter, r *http.Request) error {
	return api.Write(w, http.StatusOK, map[string]string{"version": version})
}

// named returns the name of a model. A version that is the latest is no part of it, unless there is such a model.
func (v *server) named(ctx context.Context, model, name string) (string, error) {
	if model == "" {
		model = name // the field's older name
	}
	short, ok := strings.CutSuffix(model, ":latest")
	if !ok {
		return model, nil
	}
	_, err := v.replies.Find(ctx, model)
	var f *api.Fault
	if errors.As(err, &f) && f.Status == http.StatusNotFound {
		return short, nil
	}
	return model, err
}

// keepAlive reads how long a model stays ready: seconds, or a duration as Go writes it.
func keepAlive(text json.RawMessage) (*time.Duration, error) {
	if api.IsNull(text) {
		return nil, nil
	}
	var d time.Duration
	var seconds float64
	if json.Unmarshal(text, &seconds) == nil {
		if !(seconds > -1e9 && seconds < 1e9) {
			return nil, api.Invalid("keep_alive", "keep_alive is %s: want seconds, less than 10⁹", text)
		}
		d = time.Duration(seconds * float64(time.Second))
		return &d, nil
	}
	var words string
	if err := api.Decode("keep_alive", text, &words); err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(words)
	if err != nil {
		return nil, api.Invalid("keep_alive", "keep_alive is %q: want seconds, or a duration as 5m", words)
	}
	return &d, nil
}

// isStream reports whether a reply shall come in pieces, which it does unless it shall not.
func isStream(p *bool) bool { return p == nil || *p }
