package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tally-network/tally/gateway/anthropic"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/ollama"
	"github.com/tally-network/tally/gateway/openai"
	"github.com/tally-network/tally/gateway/reply"
)

// Config is what a gateway is made of. Zero values have defaults.
type Config struct {
	Models   reply.Models
	Keys     *Keys         // nil: any key is accepted, on loopback
	Parallel int           // replies that are admitted at once; models compute fewer together
	Waiting  int           // requests that wait for one of them to end
	Patience time.Duration // how long they do
	Body     int64         // bytes of a request, at most
	Origins  []string      // of web pages that may call the gateway, beside those of this machine
	Log      *slog.Logger
}

// Defaults, which are for one machine that computes for one household.
const (
	defaultParallel = 256 // more streams than a machine computes in one batch
	defaultWaiting  = 1024
	defaultPatience = time.Minute
	defaultBody     = 4 << 20 // bytes: a prompt of about a million tokens

	maxHead      = 64 << 10 // bytes of headers
	headTime     = 10 * time.Second
	idleTime     = 2 * time.Minute
	shutdownTime = 10 * time.Second // for replies that are under way when the gateway stops
	keysInterval = 10 * time.Second // between writings of what keys have spent
)

// Server answers requests of all APIs.
type Server struct {
	config  Config
	mux     *http.ServeMux
	apis    []api.API
	queue   *queue
	metrics *metrics
}

// New returns a server.
func New(c Config) *Server {
	c.Parallel, c.Waiting = cmp.Or(c.Parallel, defaultParallel), cmp.Or(c.Waiting, defaultWaiting)
	c.Patience, c.Body = cmp.Or(c.Patience, defaultPatience), cmp.Or(c.Body, defaultBody)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, mux: http.NewServeMux(), queue: newQueue(c.Parallel, c.Waiting, c.Patience)}
	s.metrics = newMetrics(s.queue, c.Models)
	replies := &reply.Service{Models: c.Models}
	s.apis = []api.API{openai.New(replies), anthropic.New(replies), ollama.New(replies), s.own()}
	s.route()
	return s
}

// own is what a gateway says of itself.
func (s *Server) own() api.API {
	return api.API{Name: "gateway", Fail: openai.Fail, Routes: []api.Route{
		{Method: "GET", Path: "/health", Summary: "Whether the gateway answers", Free: true, Serve: s.health},
		{Method: "GET", Path: "/metrics", Summary: "Metrics, for Prometheus", Serve: s.metrics.serve},
		{Method: "GET", Path: "/openapi.json", Summary: "This description", Free: true, Serve: s.describe},
	}}
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	models, err := s.config.Models.List(r.Context())
	if err != nil {
		s.config.Log.Error("models cannot be listed", "error", err)
		return &api.Fault{Status: http.StatusServiceUnavailable, Code: "unhealthy", Message: "models cannot be listed; the gateway's log says why", Retry: time.Second}
	}
	return api.Write(w, http.StatusOK, map[string]any{"status": "ok", "models": len(models), "running": s.queue.running.Load(), "waiting": s.queue.waiting.Load()})
}

// Serve answers until the context ends, and then lets replies that are under way end for a while.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	local := isLoopback(l.Addr())
	if !local && s.config.Keys.Empty() {
		return errors.Join(errors.New("gateway: "+l.Addr().String()+" can be reached by others, who need keys: configure keys, or listen on 127.0.0.1"), l.Close())
	}
	work, abort := context.WithCancel(context.WithoutCancel(ctx)) // of requests, which may outlive ctx for a while
	defer abort()
	server := &http.Server{
		Handler: s.guard(local), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
		ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return work },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	ticker := time.NewTicker(keysInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(err, s.config.Keys.Save())
		case <-ticker.C:
			if err := s.config.Keys.Save(); err != nil {
				s.config.Log.Error("what keys have spent cannot be kept", "error", err)
			}
		case <-ctx.Done():
			err := shutdown(server, abort)
			<-ended
			return errors.Join(err, s.config.Keys.Save())
		}
	}
}

// shutdown waits for replies that are under way, and then ends them.
func shutdown(server *http.Server, abort func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		abort()
		err = server.Close()
	}
	return err
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
