package consensus

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxDepth bounds values of JSON that lie in one another. The gateway copies what an Any
// holds at each level.
const maxDepth = 64

// shallow refuses bodies whose values lie deeper in one another than any request needs.
func shallow(next http.Handler) http.Handler {
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
		if depthOf(data) > maxDepth {
			http.Error(w, fmt.Sprintf("more than %d values in one another: no request needs so many", maxDepth), http.StatusBadRequest)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(data))
		next.ServeHTTP(w, req)
	})
}

// depthOf returns how deep values lie in one another, in what may be JSON.
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
