package p2p

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

var (
	// ErrRefused says that the peer may not have what it asks for. A handler
	// returns it, and Call returns it at the other end.
	ErrRefused = errors.New("refused")
	// ErrBusy says that the peer runs as many exchanges with us as it allows.
	ErrBusy = errors.New("peer is busy")
	// ErrSaid is wrapped by what a peer says went wrong.
	ErrSaid = errors.New("it says")
)

// Protocol is a stream protocol of one request and one response.
type Protocol struct {
	ID          protocol.ID
	MaxRequest  int           // bytes
	MaxResponse int           // bytes
	Timeout     time.Duration // of an exchange, from opening the stream to the last byte
	Prompt      time.Duration // until the response begins, where nothing is computed for it; 0: Timeout
	PerPeer     int           // exchanges that a caller runs with one peer at a time

	timed bool // its exchanges tell how fast a peer is
}

// Handler answers a request. ctx ends with the protocol's timeout or the host.
// The words of an error travel to the peer, so they must hold nothing private.
type Handler func(ctx context.Context, from peer.ID, request []byte) (response []byte, err error)

// check refuses a protocol that lacks a limit: every exchange would hang.
func (p Protocol) check() error {
	if p.ID == "" || p.MaxRequest < 0 || p.MaxResponse < 0 || p.Timeout <= 0 || p.PerPeer <= 0 {
		return fmt.Errorf("protocol %q lacks a limit: %+v", p.ID, p)
	}
	return nil
}

// Handle makes f answer the protocol's requests from now on. It panics if p
// lacks a limit.
func (h *Host) Handle(p Protocol, f Handler) {
	if err := p.check(); err != nil {
		panic(err)
	}
	h.host.SetStreamHandler(p.ID, func(s network.Stream) {
		if !h.start() {
			s.Reset()
			return
		}
		defer h.running.Done()
		done := h.metrics.begin(p.ID, sideIn)
		result, err := h.answer(p, f, s)
		if err != nil {
			s.Reset()
			h.log.Debug("exchange broke off", "protocol", p.ID, "peer", s.Conn().RemotePeer(), "error", err)
		} else {
			s.Close()
		}
		done(result)
	})
}

// answer serves one exchange. An error means that the peer gets no response.
func (h *Host) answer(p Protocol, f Handler, s network.Stream) (outcome, error) {
	ctx, cancel := context.WithTimeout(h.ctx, p.Timeout)
	defer cancel()
	if err := s.SetDeadline(h.by(ctx, 0)); err != nil {
		return outcomeBroken, err
	}
	from := s.Conn().RemotePeer()
	// A caller sees the response before our side has left the lane, so the
	// places here are more than PerPeer.
	leave, ok := h.in.tryEnter(lane{p.ID, from}, 2*p.PerPeer)
	if !ok {
		return outcomeBusy, writeResponse(s, statusBusy, nil)
	}
	defer leave()
	request, err := readFrame(s, p.MaxRequest, func(n int) error {
		return errors.Join(reserveOn(s, n), s.SetReadDeadline(h.by(ctx, n)))
	})
	if err != nil {
		return outcomeBroken, fmt.Errorf("read request: %w", err)
	}
	done, err := h.turns[h.door.classOf(from)].take(ctx, from)
	if err != nil {
		return outcomeBroken, fmt.Errorf("wait for a turn: %w", err)
	}
	defer done()
	response, err := f(ctx, from, request)
	if err == nil && len(response) > p.MaxResponse {
		return outcomeBroken, fmt.Errorf("response of %d bytes, the limit is %d", len(response), p.MaxResponse)
	}
	if err == nil {
		err = reserveOn(s, len(response))
	}
	if err := s.SetWriteDeadline(h.by(ctx, len(response))); err != nil {
		return outcomeBroken, err
	}
	if err != nil {
		return refuse(s, err)
	}
	if err := writeResponse(s, statusOK, response); err != nil {
		return outcomeBroken, fmt.Errorf("write response: %w", err)
	}
	return outcomeOK, nil
}

// reserveOn counts message bytes against the stream's share of memory. The
// resource manager takes them back when the stream ends.
func reserveOn(s network.Stream, n int) error {
	return s.Scope().ReserveMemory(n, network.ReservationPriorityMedium)
}

const (
	patience = 5 * time.Second // for the first bytes of a message, and on top of what its size takes
	slowest  = 16 << 10        // bytes a second that a peer must send, or take
)

// by returns the deadline for n bytes of a message: no later than ctx ends.
func (h *Host) by(ctx context.Context, n int) time.Time {
	at := time.Now().Add(h.patience + time.Duration(n)*time.Second/time.Duration(h.slowest))
	if end, ok := ctx.Deadline(); ok && end.Before(at) {
		return end
	}
	return at
}

// Call sends a request to a peer and returns its response, dialling the peer
// by the addresses that SetAddrs gave if there is no connection.
func (h *Host) Call(ctx context.Context, p Protocol, to peer.ID, request []byte) ([]byte, error) {
	done := h.metrics.begin(p.ID, sideOut)
	response, result, err := h.call(ctx, p, to, request)
	done(result)
	if err != nil {
		return nil, fmt.Errorf("call %s on peer %s: %w", p.ID, to, err)
	}
	return response, nil
}

func (h *Host) call(ctx context.Context, p Protocol, to peer.ID, request []byte) ([]byte, outcome, error) {
	if err := p.check(); err != nil {
		return nil, outcomeBroken, err
	}
	if len(request) > p.MaxRequest {
		return nil, outcomeBroken, fmt.Errorf("request of %d bytes, the limit is %d", len(request), p.MaxRequest)
	}
	leave, err := h.out.enter(ctx, lane{p.ID, to}, p.PerPeer)
	if err != nil {
		return nil, outcomeBroken, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	s, err := h.host.NewStream(ctx, to, p.ID)
	if err != nil {
		return nil, outcomeBroken, err
	}
	defer context.AfterFunc(ctx, func() { s.Reset() })()

	if p.Prompt > 0 {
		if err := s.SetReadDeadline(time.Now().Add(p.Prompt)); err != nil {
			s.Reset()
			return nil, outcomeBroken, err
		}
	}
	first, took := time.Time{}, 0
	if p.timed && h.door.classOf(to) >= registered {
		end := h.links.begin(to, time.Now())
		defer func() { end(first, time.Now(), took) }()
	}
	// A busy peer answers before it has read the request, so a failed write
	// need not be the end.
	sent := errors.Join(writeRequest(s, request), s.CloseWrite())
	st, body, err := readResponse(s, p.MaxResponse, func(n int) error {
		first = time.Now()
		return errors.Join(reserveOn(s, n), s.SetReadDeadline(h.by(ctx, n)))
	})
	if err != nil {
		s.Reset()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, outcomeBroken, errors.Join(err, sent)
	}
	s.Close()
	took = len(body)
	switch st {
	case statusOK:
		return body, outcomeOK, nil
	case statusRefused:
		return nil, outcomeRefused, ErrRefused
	case statusBusy:
		return nil, outcomeBusy, ErrBusy
	default:
		return nil, outcomeFailed, fmt.Errorf("%w %q", ErrSaid, body)
	}
}
