package desk

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Whoever has the home open may be of another version, something else, or suspended: people are told.
func TestDialStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		greet func(http.ResponseWriter, *http.Request)
		want  string
	}{
		"another version": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"version": %d}`, version+1) }, "speaks version 2, and this program 1: wait"},
		"no desk":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, "read its greeting"},
		"suspended":       {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "does not answer: let it go on, or end it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := listen(dir)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(c.greet)}
			go func() { _ = server.Serve(s) }()
			t.Cleanup(func() {
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				if err := s.remove(); err != nil {
					t.Error(err)
				}
			})
			_, err = dial(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "%!") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
