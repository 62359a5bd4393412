package gateway

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"

	"github.com/tally-network/tally/gateway/api"
)

// level says how loudly a fault is logged: a client's mistakes are its own.
func level(f *api.Fault) slog.Level {
	if f.Status >= 500 && f.Status != http.StatusServiceUnavailable {
		return slog.LevelError
	}
	return slog.LevelDebug
}

// guard keeps web pages of strangers away. A browser on this machine would carry their requests to loopback, either openly, with an
// Origin, or by a name that is made to lead here, which then stands in Host.
func (s *Server) guard(local bool) http.Handler {
	shared := cors.New(cors.Options{
		AllowOriginFunc: s.isFriend, AllowedMethods: []string{"GET", "HEAD", "POST"}, AllowedHeaders: []string{"*"},
		ExposedHeaders: []string{"X-Request-Id", "Request-Id", "Retry-After"}, AllowPrivateNetwork: true,
	}).Handler(s.mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch origin := r.Header.Get("Origin"); {
		case local && !isLocalName(r.Host):
			s.failOf(r)(w, &api.Fault{Status: http.StatusForbidden, Code: "forbidden_host", Message: "the Host of the request is not of this machine: call the gateway as localhost or 127.0.0.1"})
		case origin != "" && !s.isFriend(origin):
			s.failOf(r)(w, &api.Fault{Status: http.StatusForbidden, Code: "forbidden_origin", Message: "the Origin of the request is not of this machine: allow it in the gateway's configuration"})
		default:
			shared.ServeHTTP(w, r)
		}
	})
}

// isFriend reports whether pages of an origin may call.
func (s *Server) isFriend(origin string) bool {
	if slices.Contains(s.config.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLocalName(u.Host)
}

// isLocalName reports whether a host, with or without a port, names this machine and can name no other.
func isLocalName(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip := net.ParseIP(strings.Trim(name, "[]")); ip != nil {
		return ip.IsLoopback()
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
