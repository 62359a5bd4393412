package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// Streaming is a stream protocol of one request and many messages in answer, each sent as soon as it is there. A message is a response
// as a [Protocol] has them; the answer ends with the stream. Whoever asked closes its side to say that it wants no more.
type Streaming struct {
	ID         protocol.ID
	MaxRequest int           // bytes
	MaxMessage int           // bytes of each message
	Silence    time.Duration // between two messages, and before the first; a handler with nothing to say sends an empty one
	Timeout    time.Duration // of all
	PerPeer    int           // answers that a caller has from one peer at a time
	Answers    int           // answers under way here, to all
}

func (p Streaming) check() error {
	if p.ID == "" || p.MaxRequest < 0 || p.MaxMessage < 0 || p.Silence <= 0 || p.Timeout <= 0 || p.PerPeer <= 0 || p.Answers <= 0 {
		return fmt.Errorf("protocol %q lacks a limit: %+v", p.ID, p)
	}
	return nil
}

// Answer is where a handler's messages go.
type Answer struct {
	// Enough is closed once whoever asked wants no more: the handler may say what is left, and return.
	Enough <-chan struct{}

	host   *Host
	limit  int
	stream network.Stream
	ctx    context.Context
}

// Send sends a message. It waits while the peer does not read, a few seconds at most. One goroutine calls it at a time.
func (a *Answer) Send(message []byte) error {
	if len(message) > a.limit {
		return fmt.Errorf("message of %d bytes, the limit is %d", len(message), a.limit)
	}
	if err := a.stream.SetWriteDeadline(a.host.by(a.ctx, len(message))); err != nil {
		return err
	}
	return writeResponse(a.stream, statusOK, message)
}

// StreamHandler answers a request by messages. ctx ends with the protocol's timeout, with the host, and when the peer is gone. The words of an error
// travel to the peer, so they must hold nothing private.
type StreamHandler func(ctx context.Context, from peer.ID, request []byte, a *Answer) error

// Handle makes f answer requests to h from now on. It panics if p lacks a limit.
func (p Streaming) Handle(h *Host, f StreamHandler) {
	if err := p.check(); err != nil {
		panic(err)
	}
	places := make(chan struct{}, p.Answers)
	h.host.SetStreamHandler(p.ID, func(s network.Stream) {
		if !h.start() {
			s.Reset()
			return
		}
		defer h.running.Done()
		done := h.metrics.begin(p.ID, sideIn)
		result, err := p.answer(h, f, s, places)
		if err != nil {
			s.Reset()
			h.log.Debug("answer broke off", "protocol", p.ID, "peer", s.Conn().RemotePeer(), "error", err)
		} else {
			s.Close()
		}
		done(result)
	})
}

// answer gives one answer. An error means that the peer does not hear how it ends.
func (p Streaming) answer(h *Host, f StreamHandler, s network.Stream, places chan struct{}) (outcome, error) {
	ctx, cancel := context.WithTimeout(h.ctx, p.Timeout)
	defer cancel()
	from := s.Conn().RemotePeer()
	if err := s.SetDeadline(h.by(ctx, 0)); err != nil {
		return outcomeBroken, err
	}
	leave, ok := h.in.tryEnter(lane{p.ID, from}, 2*p.PerPeer)
	if !ok {
		return outcomeBusy, writeResponse(s, statusBusy, nil)
	}
	defer leave()
	if err := reserveOn(s, p.MaxMessage); err != nil {
		return outcomeBusy, writeResponse(s, statusBusy, nil)
	}
	request, err := readFrame(s, p.MaxRequest, func(n int) error {
		return errors.Join(reserveOn(s, n), s.SetReadDeadline(h.by(ctx, n)))
	})
	if err != nil {
		return outcomeBroken, fmt.Errorf("read request: %w", err)
	}
	select { // only now: a request that is never sent takes nobody's place
	case places <- struct{}{}:
		defer func() { <-places }()
	default:
		return outcomeBusy, writeResponse(s, statusBusy, nil)
	}
	if err := s.SetReadDeadline(time.Time{}); err != nil { // ctx ends it
		return outcomeBroken, err
	}
	enough, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := io.ReadFull(s, make([]byte, 1)); errors.Is(err, io.EOF) {
			close(enough)
		} else { // it was reset, or says what nobody asked for
			cancel()
		}
	}()
	err = f(ctx, from, request, &Answer{Enough: enough, host: h, limit: p.MaxMessage, stream: s, ctx: ctx})
	defer func() {
		s.CloseRead()
		<-gone
	}()
	if ctx.Err() != nil && h.ctx.Err() == nil && err != nil {
		return outcomeBroken, err
	}
	if err := s.SetWriteDeadline(h.by(ctx, 0)); err != nil {
		return outcomeBroken, err
	}
	return refuse(s, err)
}

// refuse tells a peer an error of a handler, if there is one.
func refuse(s network.Stream, err error) (outcome, error) {
	switch {
	case err == nil:
		return outcomeOK, nil
	case errors.Is(err, ErrRefused):
		return outcomeRefused, writeResponse(s, statusRefused, nil)
	case errors.Is(err, ErrBusy):
		return outcomeBusy, writeResponse(s, statusBusy, nil)
	}
	words := strings.ToValidUTF8(err.Error(), "?")
	return outcomeFailed, writeResponse(s, statusFailed, []byte(words[:min(len(words), maxWords)]))
}

// Replies are the messages of a peer in answer to a request. Close must be called.
type Replies struct {
	host     *Host
	protocol Streaming
	stream   network.Stream
	ctx      context.Context
	end      []func()
	ended    outcome
}

// Call sends a request from h to a peer, and returns its answer, which comes message by message until ctx ends.
func (p Streaming) Call(ctx context.Context, h *Host, to peer.ID, request []byte) (_ *Replies, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if len(request) > p.MaxRequest {
		return nil, fmt.Errorf("request of %d bytes, the limit is %d", len(request), p.MaxRequest)
	}
	r := &Replies{host: h, protocol: p, ended: outcomeBroken}
	done := h.metrics.begin(p.ID, sideOut)
	r.end = append(r.end, func() { done(r.ended) })
	defer func() {
		if err != nil {
			r.Close()
			err = fmt.Errorf("call %s on peer %s: %w", p.ID, to, err)
		}
	}()
	leave, err := h.out.enter(ctx, lane{p.ID, to}, p.PerPeer)
	if err != nil {
		return nil, err
	}
	r.end = append(r.end, leave)
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	r.ctx = ctx
	r.end = append(r.end, cancel)
	if r.stream, err = h.host.NewStream(ctx, to, p.ID); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { r.stream.Reset() })
	r.end = append(r.end, func() { stop() }, func() { r.stream.Reset() }) // which does nothing to a stream that is over
	if err := reserveOn(r.stream, p.MaxMessage); err != nil {
		return nil, err
	}
	if err := r.stream.SetWriteDeadline(h.by(ctx, len(request))); err != nil {
		return nil, err
	}
	// A busy peer answers before it has read the request, so a failed write need not be the end.
	_ = writeRequest(r.stream, request)
	return r, nil
}

// Next waits for the next message. The error is io.EOF after the last; an answer that breaks off has another.
func (r *Replies) Next() ([]byte, error) {
	if err := r.stream.SetReadDeadline(time.Now().Add(r.protocol.Silence)); err != nil {
		return nil, err
	}
	s, body, err := readResponse(r.stream, r.protocol.MaxMessage, func(n int) error { return r.stream.SetReadDeadline(r.host.by(r.ctx, n)) })
	switch {
	case errors.Is(err, io.EOF):
		r.ended = outcomeOK
		return nil, io.EOF
	case err != nil && r.ctx.Err() != nil:
		return nil, context.Cause(r.ctx)
	case err != nil:
		return nil, err
	}
	switch s {
	case statusOK:
		return body, nil
	case statusRefused:
		r.ended = outcomeRefused
		return nil, ErrRefused
	case statusBusy:
		r.ended = outcomeBusy
		return nil, ErrBusy
	}
	r.ended = outcomeFailed
	return nil, fmt.Errorf("%w %q", ErrSaid, body)
}

// Enough tells the peer that no more is wanted. What it still says comes from Next.
func (r *Replies) Enough() error { return r.stream.CloseWrite() }

// Close ends the answer. It may be called again.
func (r *Replies) Close() {
	for len(r.end) > 0 {
		last := len(r.end) - 1
		r.end[last]()
		r.end = r.end[:last]
	}
}
