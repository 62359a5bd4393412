package consensus

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
)

// oneByOne makes the replies to a batch of JSON-RPC one after another, and counts each
// before the next is made. CometBFT makes all, then encodes them together.
func oneByOne(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		if err != nil {
			http.Error(w, err.Error(), unreadCode(err))
			return
		}
		var calls []json.RawMessage
		if json.Unmarshal(data, new([]rpctypes.RPCRequest)) != nil || json.Unmarshal(data, &calls) != nil || len(calls) < 2 {
			req.Body = io.NopCloser(bytes.NewReader(data))
			next.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := &batchReply{w: w}
		for _, call := range calls {
			if out.err != nil || req.Context().Err() != nil {
				return
			}
			one := req.Clone(req.Context())
			one.Body = io.NopCloser(bytes.NewReader(call))
			next.ServeHTTP(&partReply{batchReply: out, header: http.Header{}}, one)
		}
		if out.answered { // all may be notifications, which nobody answers
			out.write("]")
		}
	})
}

// batchReply is the list of the replies to a batch.
type batchReply struct {
	w        http.ResponseWriter
	answered bool // a call, so that the list is begun
	err      error
}

func (b *batchReply) write(s string) {
	if b.err == nil {
		_, b.err = io.WriteString(b.w, s)
	}
}

// partReply is one of them, however many times it is written to.
type partReply struct {
	*batchReply
	header http.Header
	begun  bool
}

// Header implements http.ResponseWriter: headers are those of the batch.
func (p *partReply) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter: so is the status.
func (p *partReply) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (p *partReply) Write(b []byte) (int, error) {
	if !p.begun {
		before := "["
		if p.answered {
			before = ","
		}
		p.write(before)
		p.begun, p.answered = true, true
	}
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
	return len(b), p.err
}
