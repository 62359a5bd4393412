package desk

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// local is the desk of the process that has the home open.
type local struct {
	ctx    context.Context
	stop   context.CancelFunc
	home   *home.Home
	socket *socket
	server *http.Server

	ready chan struct{} // closed once env or err is set
	env   *role.Env
	err   error
	slots chan struct{} // one for each delivery that is under way: it is held in memory
	ended chan struct{}
}

// deliveries is how many orders' results are fetched at a time.
const deliveries = 2

// serve keeps a desk of a home until d ends.
func (d *Desk) serve(h *home.Home) (*local, error) {
	s, err := listen(h.Dir)
	if err != nil {
		return nil, err
	}
	l := &local{home: h, socket: s, ready: make(chan struct{}), ended: make(chan struct{}), slots: make(chan struct{}, deliveries)}
	l.ctx, l.stop = context.WithCancel(d.ctx)
	l.server = &http.Server{
		Handler: l.handler(), ReadHeaderTimeout: patience, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return l.ctx },
	}
	go func() { _ = l.server.Serve(s) }()
	go func() {
		defer close(l.ended)
		// It waits for the network, and others may ask meanwhile.
		l.env, l.err = h.Env(l.ctx, home.Options{Log: d.o.Log})
		close(l.ready)
		if l.err == nil {
			_ = consume.Serve(l.ctx, l.env)
		}
	}()
	return l, nil
}

// connected waits until the home is connected to chain and peers.
func (l *local) connected(ctx context.Context) (*role.Env, error) {
	select {
	case <-l.ready:
		return l.env, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *local) gone() <-chan struct{} { return nil } // before this process

func (l *local) close() error {
	l.stop()
	_ = l.server.Close() // the listener, too: who asks now looks for the next
	err := l.socket.remove()
	<-l.ended
	return errors.Join(err, l.home.Close())
}

func (l *local) buyer(ctx context.Context) (consume.Buyer, error) {
	env, err := l.connected(ctx)
	if err != nil {
		return consume.Buyer{}, err
	}
	return consume.BuyerOf(env), nil
}

func (l *local) keep(ctx context.Context, o *job.Order, body io.Reader) error {
	_, err := l.store(ctx, o, body)
	return err
}

// store keeps the files of an order of this home.
func (l *local) store(ctx context.Context, o *job.Order, body io.Reader) (*role.Env, error) {
	env, err := l.connected(ctx)
	if err != nil {
		return nil, err
	}
	if o.Consumer != env.Account.Address || o.Chain != env.Chain.ChainID {
		return nil, fmt.Errorf("the order is of %s on chain %s, and the home of %s on chain %s", o.Consumer, o.Chain, env.Account.Address, env.Chain.ChainID)
	}
	return env, consume.Keep(env, o, body)
}

func (l *local) post(ctx context.Context, o *job.Order, body io.Reader) error {
	env, err := l.store(ctx, o, body)
	if err != nil {
		return err
	}
	_, err = consume.Post(ctx, env, o)
	if refusal := (*errorsmod.Error)(nil); !errors.As(err, &refusal) {
		return err
	}
	known := func() bool {
		_, unknown := consume.Look(ctx, env, o.ID())
		return unknown == nil
	}
	if known() {
		return nil // it is there from an earlier try
	}
	if !errors.Is(err, market.ErrPosted) {
		return errors.Join(err, env.Store.Unpin(blobs.Pin(o.ID())))
	}
	// Another posts the very same order, and no block has it yet. Its files are needed in any case.
	for range bookedWithin {
		b, late := env.Chain.Next(ctx, env.Chain.Head().Height)
		if late != nil {
			return errors.Join(err, late)
		}
		if known() {
			env.Log.Info("was posted already", "order", o.ID(), "height", b.Height)
			return nil
		}
	}
	return err
}

// bookedWithin is how many blocks may pass until one has an order that another has posted.
const bookedWithin = 5

func (l *local) deliver(ctx context.Context, r DeliveryRequest) (out Delivery, err error) {
	env, err := l.connected(ctx)
	if err != nil {
		return out, err
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	// Who asks may have seen the end at another node, which is ahead of ours.
	p, err := consume.Follow(ctx, env, r.Order, func(consume.Progress) bool { return false })
	switch {
	case err != nil:
	case p.Lease.Order.Problem.Kind == job.Batch:
		out.Results, err = consume.DeliverResults(ctx, env, p.Lease, r.Dir, r.Format, nil)
	default:
		out.Model, err = consume.Deliver(ctx, env, p.Lease, r.Dir, nil)
	}
	return out, err
}

// What requests may take, in bytes.
const (
	maxHeader  = 1 << 14
	maxRequest = 1 << 16 // of JSON
	maxOrder   = 1 << 18
)

// greeting is what a desk tells whoever comes. The reply ends with the desk.
type greeting struct {
	Version int `json:"version"`
	PID     int `json:"pid"`
}

// What a desk can be asked for.
const (
	stayPath     = "/stay"     // who it is; the reply lasts as long as the desk
	buyerPath    = "/buyer"    // who posts
	orderPath    = "/order"    // keep an order's files, and post it
	filesPath    = "/files"    // keep them alone
	deliveryPath = "/delivery" // write what an order gave
)

// version changes with what is asked for and answered.
const version = 1

func (l *local) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+stayPath, func(w http.ResponseWriter, r *http.Request) {
		if json.NewEncoder(w).Encode(greeting{version, os.Getpid()}) == nil && http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	})
	m.HandleFunc("GET "+buyerPath, answer(func(r *http.Request) (any, error) { return l.buyer(r.Context()) }))
	take := func(do func(context.Context, *job.Order, io.Reader) error) http.HandlerFunc {
		return answer(func(r *http.Request) (any, error) {
			o, err := readOrder(r.Body)
			if err != nil {
				return nil, err
			}
			return struct{}{}, do(r.Context(), o, r.Body)
		})
	}
	m.HandleFunc("POST "+orderPath, take(l.post))
	m.HandleFunc("POST "+filesPath, take(l.keep))
	m.HandleFunc("POST "+deliveryPath, answer(func(r *http.Request) (any, error) {
		var q DeliveryRequest
		if err := json.NewDecoder(io.LimitReader(r.Body, maxRequest)).Decode(&q); err != nil {
			return nil, fmt.Errorf("read what is to be delivered: %w", err)
		}
		if !filepath.IsAbs(q.Dir) {
			return nil, fmt.Errorf("deliver to %q: it is no absolute path", q.Dir)
		}
		return l.deliver(r.Context(), q)
	}))
	return m
}

// readOrder reads an order that stands before its files: its size, and its canonical bytes.
func readOrder(r io.Reader) (*job.Order, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("read an order: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxOrder {
		return nil, fmt.Errorf("read an order: it has %d bytes, at most %d are taken", n, maxOrder)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("read an order: %w", err)
	}
	o := &job.Order{}
	if err := canon.Unmarshal(b, o); err != nil {
		return nil, fmt.Errorf("read an order: %w", err)
	}
	return o, o.Check()
}

// fault is an error between processes.
type fault struct {
	Text      string `json:"text"`
	Codespace string `json:"codespace,omitempty"` // of an error of the chain's own
	Code      uint32 `json:"code,omitempty"`
}

// answer writes what do returns, as JSON.
func answer(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := do(r)
		_, _ = io.Copy(io.Discard, r.Body) // who is still sending would not hear the answer
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the desk ends: what was asked for is asked for again
		}
		if err != nil {
			f := fault{Text: err.Error()}
			if refusal := (*errorsmod.Error)(nil); errors.As(err, &refusal) {
				f.Codespace, f.Code = refusal.Codespace(), refusal.ABCICode()
			}
			w.WriteHeader(http.StatusUnprocessableEntity)
			value = f
		}
		_ = json.NewEncoder(w).Encode(value)
	}
}
