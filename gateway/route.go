package gateway

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
)

// endpoint is what answers at a path.
type endpoint struct {
	path     string
	fail     func(http.ResponseWriter, *api.Fault)
	byMethod map[string]*api.Route
}

// route puts the routes of all APIs into the mux.
func (s *Server) route() {
	for i := range s.apis {
		a := &s.apis[i]
		byPath := map[string]*endpoint{}
		for j := range a.Routes {
			r := &a.Routes[j]
			e := byPath[r.Path]
			if e == nil {
				e = &endpoint{path: r.Path, fail: a.Fail, byMethod: map[string]*api.Route{}}
				byPath[r.Path] = e
				s.mux.HandleFunc(r.Path, func(w http.ResponseWriter, q *http.Request) { s.serve(e, w, q) })
			}
			e.byMethod[r.Method] = r
		}
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e := &endpoint{path: "other", fail: s.failOf(r)}
		s.serve(e, w, r)
	})
}

// failOf returns the shape of errors for a path that nobody answers at.
func (s *Server) failOf(r *http.Request) func(http.ResponseWriter, *api.Fault) {
	name := "openai"
	if strings.HasPrefix(r.URL.Path, "/api/") {
		name = "ollama"
	} else if r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages") {
		name = "anthropic"
	}
	return s.apis[slices.IndexFunc(s.apis, func(a api.API) bool { return a.Name == name })].Fail
}

// recorder knows what was sent.
type recorder struct {
	http.ResponseWriter
	status int // 0: nothing yet
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush, and set deadlines.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// serve answers a request at an endpoint.
func (s *Server) serve(e *endpoint, w http.ResponseWriter, r *http.Request) {
	began, id := time.Now(), "req_"+reply.NewID(20)
	w.Header().Set("X-Request-Id", id) // as OpenAI calls it
	w.Header().Set("Request-Id", id)   // as Anthropic does
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Time{})
	_ = c.SetReadDeadline(began.Add(api.BodyTime)) // also of a body that nobody asked for
	out := &recorder{ResponseWriter: w}
	defer func() {
		if p := recover(); p != nil {
			s.config.Log.Error("a request failed", "id", id, "path", e.path, "panic", p, "stack", string(debug.Stack()))
			if out.status != 0 {
				panic(http.ErrAbortHandler) // the client must not take what it has for the whole
			}
			e.fail(out, api.FaultOf(fmt.Errorf("%v", p)))
		}
		s.metrics.request(e.path, out.status, time.Since(began))
	}()
	err := s.answer(e, out, r.WithContext(api.WithID(r.Context(), id)))
	if err == nil {
		return
	}
	f := api.FaultOf(err)
	s.config.Log.Log(r.Context(), level(f), "a request failed", "id", id, "path", e.path, "status", f.Status, "error", err)
	if out.status == 0 {
		e.fail(out, f)
	}
}

// answer finds the route, and who asks.
func (s *Server) answer(e *endpoint, w http.ResponseWriter, r *http.Request) error {
	route := e.byMethod[r.Method]
	if route == nil {
		if len(e.byMethod) == 0 {
			return &api.Fault{Status: http.StatusNotFound, Code: "unknown_url", Message: fmt.Sprintf("nothing is at %s: /openapi.json has what there is", r.URL.Path)}
		}
		allowed := strings.Join(slices.Sorted(maps.Keys(e.byMethod)), ", ")
		w.Header().Set("Allow", allowed)
		return &api.Fault{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: fmt.Sprintf("%s is for %s", r.URL.Path, allowed)}
	}
	account := &account{server: s, began: time.Now()}
	if !route.Free {
		var err error
		if account.key, err = s.config.Keys.admit(secret(r.Header)); err != nil {
			return err
		}
		if k := account.key; route.Owner && k != nil && !k.Owner {
			return &api.Fault{Status: http.StatusForbidden, Code: "not_owner", Message: fmt.Sprintf("key %s is no owner's: give it owner: true among the gateway's keys", k.Name)}
		}
	}
	if route.Request != nil {
		b := s.queue.hold(http.MaxBytesReader(w, r.Body, s.config.Body))
		defer b.release()
		r.Body = b
	}
	return route.Serve(w, r.WithContext(reply.WithAccount(r.Context(), account)))
}

// secret returns the key of a request: OpenAI and ollama send it as a bearer's, Anthropic in a header of its own.
func secret(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	scheme, key, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// digest is what a file of keys has of a key.
func digest(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }
