package sharing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Shared are files whose blocks are handed out.
type Shared struct {
	files  []*os.File
	blocks map[cid.Cid]extent
	uris   []URI
}

// extent is where a block lies: in a file, or in memory if that is nil.
type extent struct {
	file  *os.File
	at    int64
	size  int
	index []byte
}

// Share reads files and has a host hand out their blocks to everybody. It returns what they are called. Close them at the end.
// progress is told how many bytes of which file are read; it may be nil.
func Share(ctx context.Context, h *p2p.Host, files []string, progress func(name string, done, total int64)) (_ *Shared, err error) {
	s := &Shared{blocks: map[cid.Cid]extent{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	me, err := h.AddrInfo()
	if err != nil {
		return nil, err
	}
	me.Addrs = me.Addrs[:min(len(me.Addrs), 2)] // the first IP in order of text, by TCP and QUIC
	for _, name := range files {
		if err := s.add(ctx, name, me, progress); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	h.ServeBlocks(s, func(_ peer.ID, _ canon.Hash, c cid.Cid) bool { _, ok := s.blocks[c]; return ok })
	return s, nil
}

func (s *Shared) add(ctx context.Context, name string, me peer.AddrInfo, progress func(string, int64, int64)) error {
	f, size, err := bounded.Open(name)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	l, err := store.ListBlocks(fetch.Counting(fetch.Reader(ctx, io.NewSectionReader(f, 0, size)), 0, func(done int64) {
		if progress != nil {
			progress(filepath.Base(name), done, size)
		}
	}))
	if err != nil {
		return err
	}
	if l.Ref.Size != size {
		return fmt.Errorf("it had %d bytes, and has %d now", size, l.Ref.Size)
	}
	for i, c := range l.Blocks {
		at := int64(i) * store.BlockSize
		s.blocks[c] = extent{file: f, at: at, size: int(min(store.BlockSize, size-at))}
	}
	if l.Index != nil {
		s.blocks[l.Ref.CID] = extent{index: l.Index}
	}
	s.uris = append(s.uris, URI{l.Ref, filepath.Base(name), []peer.AddrInfo{me}})
	return nil
}

// URIs returns what the files are called, in their order.
func (s *Shared) URIs() []URI { return s.uris }

// Block implements p2p.Blocks.
func (s *Shared) Block(_ context.Context, c cid.Cid) ([]byte, error) {
	p, ok := s.blocks[c]
	switch {
	case !ok:
		return nil, store.ErrMissing
	case p.file == nil:
		return p.index, nil
	}
	b := make([]byte, p.size)
	if _, err := p.file.ReadAt(b, p.at); err != nil {
		return nil, err
	}
	if store.RefOf(b).CID != c {
		return nil, fmt.Errorf("%s has changed", p.file.Name())
	}
	return b, nil
}

// Close closes the files, once the host answers no more.
func (s *Shared) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
