package p2p

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	maxBlock = 1 << 20 // of the store
	maxCID   = 64
)

// blob asks for a CID and gets the block it names. The bytes come unverified.
var blob = Typed[cid.Cid, []byte]{
	Protocol: Protocol{
		ID:          "/tally/blob/1.0.0",
		MaxRequest:  maxCID,
		MaxResponse: maxBlock,
		Timeout:     time.Minute,
		Prompt:      15 * time.Second,
		PerPeer:     8,
	},
	Request:  Codec[cid.Cid]{cid.Cid.Bytes, cid.Cast},
	Response: Codec[[]byte]{asIs, func(b []byte) ([]byte, error) { return b, nil }},
}

func asIs(b []byte) []byte { return b }

// errNoBlock is what a peer learns when a block cannot be read, whatever the
// cause.
var errNoBlock = errors.New("block is not here")

// Allow reports whether a peer may have a block. It is asked for each block, by
// several goroutines at once.
type Allow func(to peer.ID, c cid.Cid) bool

// ServeBlocks answers requests for blocks. A nil allow refuses all.
func (h *Host) ServeBlocks(from Blocks, allow Allow) {
	blob.Handle(h, func(ctx context.Context, to peer.ID, c cid.Cid) ([]byte, error) {
		// Refused before looking, so a stranger cannot learn what is here.
		if allow == nil || !allow(to, c) {
			return nil, ErrRefused
		}
		b, err := from.Block(ctx, c)
		if err != nil {
			h.log.Debug("cannot serve block", "cid", c, "peer", to, "error", err)
			return nil, errNoBlock
		}
		return b, nil
	})
}

// Source is a peer as a source of blocks. It fits store.Source.
type Source struct {
	h    *Host
	peer peer.ID
}

// Source returns the peer id as a source of blocks.
func (h *Host) Source(id peer.ID) Source { return Source{h, id} }

// Peer returns who the source is.
func (s Source) Peer() peer.ID { return s.peer }

// Block asks the peer for a block of at most 1 MiB. The bytes are unverified.
func (s Source) Block(ctx context.Context, c cid.Cid) ([]byte, error) {
	b, err := blob.Call(ctx, s.h, s.peer, c)
	if err != nil {
		return nil, fmt.Errorf("get block: %w", err)
	}
	return b, nil
}
