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
// byte of the one to the last of the other. A lease of 48 MiB is the largest reply.
const (
	maxHeld       = 256 << 20 // of all of them, at each server
	heldOfAddress = 64 << 20  // of one address
	heldOfRequest = 64 << 10  // counted for each, for what it takes beside its bytes
	heldOfStream  = 4 << 20   // counted for a stream or websocket, whose messages are not known before
	maxMade       = 4         // replies that are made at a time
	sendRate      = 1 << 20   // bytes a second at which replies are to be read
)

var errFull = errors.New("this node holds too much that others have not sent or read: read your replies, ask for less, ask later, or ask a node of your own")

// replies are those to strangers that are not yet sent, with their requests. Who asks
// from this machine does not count.
type replies struct {
	max, maxOfAddress int
	patience          time.Duration // with who reads nothing
	made              chan struct{} // holds one for each reply that is being made

	mu  sync.Mutex
	of  map[string]int // by address
	all int
}

func newReplies() *replies {
	return &replies{
		max: maxHeld, maxOfAddress: heldOfAddress, patience: writeTimeout,
		made: make(chan struct{}, maxMade), of: map[string]int{},
	}
}

// held is what one request and its reply hold; nil: they do not count.
type held struct {
	replies *replies
	host    string
	bytes   int
	over    bool
	making  bool // its reply is one of those that are being made
}

// take adds n bytes, or returns errFull.
func (h *held) take(n int) error {
	if h == nil {
		return nil
	}
	r := h.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.over || n > r.max-r.all || n > r.maxOfAddress-r.of[h.host] {
		return errFull
	}
	h.bytes += n
	r.all += n
	r.of[h.host] += n
	return nil
}

// release ends the request.
func (h *held) release() {
	r := h.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	h.over = true
	r.all -= h.bytes
	if r.of[h.host] -= h.bytes; r.of[h.host] == 0 {
		delete(r.of, h.host)
	}
}

// begin waits until few enough replies are made for this one to be.
func (h *held) begin(ctx context.Context) error {
	if h == nil {
		return nil
	}
	select {
	case h.replies.made <- struct{}{}:
		h.making = true
		return nil
	case <-ctx.Done():
		return errBusy
	}
}

// end lets another reply be made, and reports whether this one was.
func (h *held) end() bool {
	if h == nil || !h.making {
		return false
	}
	h.making = false
	<-h.replies.made
	return true
}

// deadline is when the reply must have been read.
func (h *held) deadline() time.Time {
	r := h.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.patience + time.Duration(h.bytes)*time.Second/sendRate)
}

type heldKey struct{}

// heldOf returns what the request of ctx holds.
func heldOf(ctx context.Context) *held {
	h, _ := ctx.Value(heldKey{}).(*held)
	return h
}

// http counts the replies of a handler whole, and sends them when it has returned.
func (r *replies) http(next http.Handler) http.Handler {
	return r.counted(func(w http.ResponseWriter, req *http.Request) {
		h := heldOf(req.Context())
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1)) // before it takes the place of others
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		if err := h.begin(req.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer h.end()
		out := &draft{ResponseWriter: w, held: h, code: http.StatusOK}
		next.ServeHTTP(out, req)
		h.end()
		out.send()
	}, next)
}

// grpc lets a handler count its replies itself, by heldOf.
func (r *replies) grpc(next http.Handler) http.Handler {
	return r.counted(func(w http.ResponseWriter, req *http.Request) {
		next.ServeHTTP(&inTime{ResponseWriter: w, held: heldOf(req.Context())}, req)
	}, next)
}

func (r *replies) counted(strangers http.HandlerFunc, local http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host, here := hostOf(req.RemoteAddr)
		if here {
			local.ServeHTTP(w, req)
			return
		}
		h := &held{replies: r, host: host}
		defer h.release()
		if err := h.take(heldOfRequest); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		req = req.WithContext(context.WithValue(req.Context(), heldKey{}, h))
		req.Body = &body{http.MaxBytesReader(w, req.Body, maxBody), h}
		strangers(w, req)
	})
}

// body counts what is read of a request: whole buffers, for gRPC keeps one for each
// piece that comes, however small.
type body struct {
	io.ReadCloser
	held *held
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if full := b.held.take(len(p)); full != nil {
			return 0, full
		}
	}
	return n, err
}

// inTime cuts off who does not read a reply in time.
type inTime struct {
	http.ResponseWriter
	held    *held
	started bool
}

// Write implements http.ResponseWriter.
func (w *inTime) Write(p []byte) (int, error) {
	if !w.started {
		w.started = true
		if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.held.deadline()); err != nil {
			return 0, err
		}
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, without which gRPC does not serve.
func (w *inTime) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// draft is a reply before it is sent.
type draft struct {
	http.ResponseWriter
	held     *held
	code     int
	body     bytes.Buffer
	err      error
	hijacked bool
}

// WriteHeader implements http.ResponseWriter.
func (d *draft) WriteHeader(code int) { d.code = code }

// Write implements http.ResponseWriter.
func (d *draft) Write(p []byte) (int, error) {
	if d.err == nil {
		d.err = d.held.take(len(p))
	}
	if d.err != nil {
		return 0, d.err
	}
	return d.body.Write(p)
}

// Hijack implements http.Hijacker, for websockets.
func (d *draft) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := d.held.take(heldOfStream); err != nil {
		return nil, nil, err
	}
	d.held.end()
	d.hijacked = true
	return http.NewResponseController(d.ResponseWriter).Hijack()
}

func (d *draft) send() {
	if d.hijacked {
		return
	}
	w := &inTime{ResponseWriter: d.ResponseWriter, held: d.held}
	if d.err != nil {
		d.body = bytes.Buffer{}
		http.Error(w, d.err.Error(), http.StatusServiceUnavailable)
		return
	}
	d.ResponseWriter.WriteHeader(d.code)
	_, _ = w.Write(d.body.Bytes()) // who does not read is cut off
}
