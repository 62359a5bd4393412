package p2p

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
)

const (
	maxBlock = 1 << 20 // of the store
	maxCID   = 64
)

// want names a block, and the order for whose sake it is asked for.
type want struct {
	order canon.Hash
	block cid.Cid
}

// blob asks for a CID under an order, and gets the block it names. The bytes come
// unverified.
var blob = Typed[want, []byte]{
	Protocol: Protocol{
		ID:          "/tally/blob/1.0.0",
		MaxRequest:  canon.HashSize + maxCID,
		MaxResponse: maxBlock,
		Timeout:     time.Minute,
		Prompt:      15 * time.Second,
		PerPeer:     8,
		timed:       true,
	},
	Request:  Codec[want]{encodeWant, decodeWant},
	Response: Codec[[]byte]{asIs, func(b []byte) ([]byte, error) { return b, nil }},
}

func asIs(b []byte) []byte { return b }

func encodeWant(w want) []byte { return append(w.order[:], w.block.Bytes()...) }

func decodeWant(b []byte) (w want, err error) {
	if len(b) < len(w.order) {
		return w, fmt.Errorf("%d bytes are no order and CID", len(b))
	}
	n := copy(w.order[:], b)
	w.block, err = cid.Cast(b[n:])
	return w, err
}

// errNoBlock is what a peer learns when a block cannot be read, whatever the
// cause.
var errNoBlock = errors.New("block is not here")

// Allow reports whether a peer may have a block for the sake of an order: who may see one
// order's blocks gets no other's by it. It is asked for each block, by several goroutines
// at once.
type Allow func(to peer.ID, order canon.Hash, c cid.Cid) bool

// ServeBlocks answers requests for blocks. A nil allow refuses all.
func (h *Host) ServeBlocks(from Blocks, allow Allow) {
	blob.Handle(h, func(ctx context.Context, to peer.ID, w want) ([]byte, error) {
		// Refused before looking, so a stranger cannot learn what is here.
		if allow == nil || !allow(to, w.order, w.block) {
			return nil, ErrRefused
		}
		b, err := from.Block(ctx, w.block)
		if err != nil {
			h.log.Debug("cannot serve block", "cid", w.block, "peer", to, "error", err)
			return nil, errNoBlock
		}
		return b, nil
	})
}

// Source is a peer as a source of blocks. It fits store.Source.
type Source struct {
	h     *Host
	peer  peer.ID
	order canon.Hash
}

// Source returns the peer id as a source of blocks that are of no order.
func (h *Host) Source(id peer.ID) Source { return Source{h: h, peer: id} }

// For returns the peer as a source of an order's blocks.
func (s Source) For(order canon.Hash) Source {
	s.order = order
	return s
}

// Peer returns who the source is.
func (s Source) Peer() peer.ID { return s.peer }

// Block asks the peer for a block of at most 1 MiB. The bytes are unverified.
func (s Source) Block(ctx context.Context, c cid.Cid) ([]byte, error) {
	b, err := blob.Call(ctx, s.h, s.peer, want{s.order, c})
	if err != nil {
		return nil, fmt.Errorf("get block: %w", err)
	}
	return b, nil
}
