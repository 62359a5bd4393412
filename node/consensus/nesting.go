package consensus

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxNesting bounds how deep values of JSON are nested. The gateway copies what an Any holds
// at each level.
const maxNesting = 24

// limitNesting refuses bodies whose values are nested deeper than any request needs.
func limitNesting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == nil || req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		data, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		if err != nil {
			http.Error(w, err.Error(), unreadCode(err))
			return
		}
		if depthOf(data) > maxNesting {
			http.Error(w, fmt.Sprintf("JSON nested more than %d deep: send a flatter request", maxNesting), http.StatusBadRequest)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(data))
		next.ServeHTTP(w, req)
	})
}

// depthOf returns how deep values are nested, in what may be JSON.
func depthOf(data []byte) (most int) {
	depth, quoted, escaped := 0, false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}
