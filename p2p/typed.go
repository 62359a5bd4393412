package p2p

import (
	"context"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Codec turns values into bytes and untrusted bytes into values.
type Codec[T any] struct {
	Encode func(T) []byte
	Decode func([]byte) (T, error)
}

// Typed is a Protocol whose requests are of type Q and responses of type A.
type Typed[Q, A any] struct {
	Protocol
	Request  Codec[Q]
	Response Codec[A]
}

// Handle makes f answer requests to h from now on. A request that cannot be
// decoded does not reach f.
func (t Typed[Q, A]) Handle(h *Host, f func(ctx context.Context, from peer.ID, request Q) (A, error)) {
	h.Handle(t.Protocol, func(ctx context.Context, from peer.ID, b []byte) ([]byte, error) {
		q, err := t.Request.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		a, err := f(ctx, from, q)
		if err != nil {
			return nil, err
		}
		return t.Response.Encode(a), nil
	})
}

// Call sends a request from h to a peer and returns its response.
func (t Typed[Q, A]) Call(ctx context.Context, h *Host, to peer.ID, request Q) (a A, err error) {
	b, err := h.Call(ctx, t.Protocol, to, t.Request.Encode(request))
	if err != nil {
		return a, err
	}
	if a, err = t.Response.Decode(b); err != nil {
		return a, fmt.Errorf("read the response of peer %s to %s: %w", to, t.ID, err)
	}
	return a, nil
}
