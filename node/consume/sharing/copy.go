package sharing

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// atOnce bounds the blocks that are asked for at the same time.
const atOnce = 4

// Copy fetches the file into to. Of the first have bytes it keeps whole blocks that the CID confirms. report is told how many
// bytes are there.
func (n *URI) Copy(ctx context.Context, h *p2p.Host, to *os.File, have int64, report func(done int64)) error {
	var sources []p2p.Source
	for _, p := range n.Peers {
		var addrs []string
		for _, a := range p.Addrs {
			addrs = append(addrs, a.String())
		}
		if err := h.SetAddrs(p.ID, addrs); err != nil {
			return err
		}
		sources = append(sources, h.Source(p.ID))
	}
	index, err := get(ctx, sources, n.Ref.CID)
	if err != nil {
		return err
	}
	l, err := n.Ref.BlockList(index)
	if err != nil {
		return err
	}
	first, err := confirmed(to, have, l)
	if err != nil {
		return err
	}
	for from := first; from < len(l.Blocks); from += atOnce {
		of := l.Blocks[from:min(from+atOnce, len(l.Blocks))]
		blocks := make([][]byte, len(of))
		g, ctx := errgroup.WithContext(ctx)
		for i, c := range of {
			g.Go(func() (err error) {
				blocks[i], err = get(ctx, sources, c)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		at := int64(from) * store.BlockSize
		for _, b := range blocks {
			if want := min(store.BlockSize, n.Ref.Size-at); int64(len(b)) != want {
				return fmt.Errorf("the block at byte %d has %d bytes, where the name says %d", at, len(b), want)
			}
			if _, err := to.WriteAt(b, at); err != nil {
				return err
			}
			at += int64(len(b))
			report(min(at, n.Ref.Size))
		}
	}
	return nil
}

// confirmed returns how many whole blocks of a file's first bytes are those of the list.
func confirmed(f *os.File, have int64, l store.BlockList) (n int, err error) {
	block := make([]byte, store.BlockSize)
	for ; int64(n+1)*store.BlockSize <= min(have, l.Ref.Size); n++ {
		if _, err := f.ReadAt(block, int64(n)*store.BlockSize); err != nil {
			return n, err
		}
		if store.RefOf(block).CID != l.Blocks[n] {
			break
		}
	}
	return n, nil
}

// get asks one source after another for a block.
func get(ctx context.Context, sources []p2p.Source, c cid.Cid) ([]byte, error) {
	var failed error
	for _, s := range sources {
		b, err := s.Block(ctx, c)
		if err == nil && store.RefOf(b).CID == c {
			return b, nil
		}
		if err == nil {
			err = errors.New("it gave other bytes")
		}
		failed = errors.Join(failed, fmt.Errorf("peer %s: %w", s.Peer().ShortString(), err))
	}
	return nil, fmt.Errorf("is tally data share still running there? %w", failed)
}
