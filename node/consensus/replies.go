package consensus

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits on requests of strangers and the replies to them, in bytes, from the first
// byte of the one to the last of the other. A lease of 48 MiB is the largest reply. RPC
// and REST would send it as 64 MiB of base64, and refuse: only gRPC gives it.
const (
	maxHeld       = 256 << 20 // of all of them, at each server
	heldOfAddress = 64 << 20  // of one address
	heldOfRequest = 64 << 10  // counted for each, for what it takes beside its bytes
	heldOfStream  = 4 << 20   // counted for a stream or websocket, whose messages are not known before
	maxMade       = 4         // replies that are made at a time
	sendRate      = 1 << 20   // bytes a second at which replies are to be read
)

var errFull = errors.New("this node holds too much that others have not sent or read: read your replies, ask for less, ask later, ask by gRPC, or ask a node of your own")

// replyBudget bounds the replies to strangers that are not yet sent, with their requests.
// Who asks from this machine does not count.
type replyBudget struct {
	*quota                 // of bytes
	patience time.Duration // with who reads nothing
	made     chan struct{} // holds one for each reply that is being made
}

func newReplyBudget() *replyBudget {
	return &replyBudget{newQuota(maxHeld, heldOfAddress), writeTimeout, make(chan struct{}, maxMade)}
}

// reservation is what one request and its reply hold; nil: they do not count.
type reservation struct {
	budget *replyBudget
	host   string
	making bool // its reply is one of those that are being made

	mu    sync.Mutex
	bytes int
	over  bool
}

// reserve adds n bytes, or returns errFull.
func (h *reservation) reserve(n int) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || !h.budget.take(h.host, n) {
		return errFull
	}
	h.bytes += n
	return nil
}

// close ends the request.
func (h *reservation) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.budget.give(h.host, h.bytes)
}

// acquire waits until few enough replies are made for this one to be.
func (h *reservation) acquire(ctx context.Context) error {
	if h == nil {
		return nil
	}
	select {
	case h.budget.made <- struct{}{}:
		h.making = true
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// release lets another reply be made, and reports whether this one was.
func (h *reservation) release() bool {
	if h == nil || !h.making {
		return false
	}
	h.making = false
	<-h.budget.made
	return true
}

// deadline is when the reply must have been read.
func (h *reservation) deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.budget.patience + time.Duration(h.bytes)*time.Second/sendRate)
}

type reservationKey struct{}

// reservationOf returns what the request of ctx holds.
func reservationOf(ctx context.Context) *reservation {
	h, _ := ctx.Value(reservationKey{}).(*reservation)
	return h
}

// http counts the replies of a handler whole, and sends them when it has returned.
func (r *replyBudget) http(next http.Handler) http.Handler {
	return r.forStrangers(false, func(w http.ResponseWriter, req *http.Request) {
		h := reservationOf(req.Context())
		// Before it takes the place of others. Its limit is that of forStrangers, repeated where it is read.
		data, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		if err != nil {
			http.Error(w, err.Error(), unreadCode(err))
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(data))
		if err := h.acquire(req.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer h.release()
		out := &bufferedResponse{ResponseWriter: w, held: h, code: http.StatusOK}
		next.ServeHTTP(out, req)
		h.release()
		out.send()
	}, next)
}

// unreadCode is the status for a request that was not read to its end.
func unreadCode(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, errFull):
		return http.StatusServiceUnavailable
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// grpc lets a handler count its replies itself, by reservationOf.
func (r *replyBudget) grpc(next http.Handler) http.Handler {
	return r.forStrangers(true, func(w http.ResponseWriter, req *http.Request) {
		next.ServeHTTP(&deadlineWriter{ResponseWriter: w, held: reservationOf(req.Context())}, req)
	}, next)
}

// forStrangers counts requests of strangers, and leaves those of this machine alone.
// buffers is of countedBody.
func (r *replyBudget) forStrangers(buffers bool, strangers http.HandlerFunc, local http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host, here := hostOf(req.RemoteAddr)
		if here {
			local.ServeHTTP(w, req)
			return
		}
		h := &reservation{budget: r, host: host}
		defer h.close()
		if err := h.reserve(heldOfRequest); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		req = req.WithContext(context.WithValue(req.Context(), reservationKey{}, h))
		req.Body = &countedBody{http.MaxBytesReader(w, req.Body, maxBody), h, buffers}
		strangers(w, req)
	})
}

// countedBody counts what is read of a request.
type countedBody struct {
	io.ReadCloser
	held    *reservation
	buffers bool // count whole ones: gRPC keeps one for each piece that comes, however small
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		size := n
		if b.buffers {
			size = len(p)
		}
		if full := b.held.reserve(size); full != nil {
			return 0, full
		}
	}
	return n, err
}

// deadlineWriter cuts off who does not read a reply in time.
type deadlineWriter struct {
	http.ResponseWriter
	held    *reservation
	started bool
}

// Write implements http.ResponseWriter.
func (w *deadlineWriter) Write(p []byte) (int, error) {
	if !w.started {
		w.started = true
		if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.held.deadline()); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, without which gRPC does not serve.
func (w *deadlineWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// bufferedResponse is a reply before it is sent.
type bufferedResponse struct {
	http.ResponseWriter
	held     *reservation
	code     int
	parts    [][]byte // as they were written: one buffer would grow to twice of them
	err      error
	hijacked bool
}

// WriteHeader implements http.ResponseWriter.
func (d *bufferedResponse) WriteHeader(code int) { d.code = code }

// Write implements http.ResponseWriter.
func (d *bufferedResponse) Write(p []byte) (int, error) {
	if d.err == nil {
		d.err = d.held.reserve(len(p))
	}
	if d.err != nil {
		return 0, d.err
	}
	d.parts = append(d.parts, bytes.Clone(p))
	return len(p), nil
}

// Hijack implements http.Hijacker, for websockets.
func (d *bufferedResponse) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := d.held.reserve(heldOfStream); err != nil {
		return nil, nil, err
	}
	d.held.release()
	d.hijacked = true
	return http.NewResponseController(d.ResponseWriter).Hijack()
}

func (d *bufferedResponse) send() {
	if d.hijacked {
		return
	}
	w := &deadlineWriter{ResponseWriter: d.ResponseWriter, held: d.held}
	if d.err != nil {
		d.parts = nil
		http.Error(w, d.err.Error(), http.StatusServiceUnavailable)
		return
	}
	d.ResponseWriter.WriteHeader(d.code)
	for _, part := range d.parts {
		if _, err := w.Write(part); err != nil {
			return // who does not read is cut off
		}
	}
}
