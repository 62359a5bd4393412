package histories

import (
	"bytes"
	"math/rand/v2"
	"testing"

	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
)

// Killed lets a node make all blocks, and kills it now and then, and more often when the upgrade is near: between two blocks, when a
// block is executed and nothing of it is stored, and when a part of it is.
func (h *History) Killed(tb testing.TB) {
	tb.Helper()
	r := rand.New(rand.NewPCG(h.Seed, 0xdead))
	db := &mortal{DB: dbm.NewMemDB(), left: unlimited}
	n := h.begun(tb, db)
	n.Until(1) // a node without a block begins with the genesis again
	for n.height < h.Last() {
		for away := n.height + 1 - h.Upgrade; n.height < h.Last() && (r.IntN(4) == 0 || away*away <= 1 && r.IntN(3) > 0); {
			switch r.IntN(3) {
			case 1:
				n.execute()
			case 2:
				n.tear(db, r.IntN(30))
			}
			n.open()
		}
		n.Until(min(n.height+1, h.Last()))
	}
}

// tear kills the node after so many of the writes by which it stores the next block.
func (n *Node) tear(db *mortal, writes int) {
	n.tb.Helper()
	n.execute()
	db.left = writes
	_, err := n.Commit()
	db.left = unlimited
	if err != nil {
		n.tb.Fatalf("seed %d, height %d: %v", n.h.Seed, n.height+1, err)
	}
	if rootmulti.GetLatestVersion(db) == n.height { // the last write makes it count
		return
	}
	n.height++
	if got, want := n.LastCommitID().Hash, n.h.At(n.height).AppHash; !bytes.Equal(got, want) {
		n.tb.Fatalf("seed %d, height %d: the app hash is %X, and that of the history %X", n.h.Seed, n.height, got, want)
	}
}

// mortal is a database that loses all writes after some, as one does whose process is killed.
type mortal struct {
	dbm.DB
	left int // writes
}

const unlimited = -1

func (d *mortal) write(f func() error) error {
	switch d.left {
	case 0:
		return nil
	case unlimited:
		return f()
	}
	d.left--
	return f()
}

// Set implements dbm.DB.
func (d *mortal) Set(key, value []byte) error {
	return d.write(func() error { return d.DB.Set(key, value) })
}

// SetSync implements dbm.DB.
func (d *mortal) SetSync(key, value []byte) error {
	return d.write(func() error { return d.DB.SetSync(key, value) })
}

// Delete implements dbm.DB.
func (d *mortal) Delete(key []byte) error {
	return d.write(func() error { return d.DB.Delete(key) })
}

// DeleteSync implements dbm.DB.
func (d *mortal) DeleteSync(key []byte) error {
	return d.write(func() error { return d.DB.DeleteSync(key) })
}

// NewBatch implements dbm.DB.
func (d *mortal) NewBatch() dbm.Batch { return &batch{d.DB.NewBatch(), d} }

// NewBatchWithSize implements dbm.DB.
func (d *mortal) NewBatchWithSize(n int) dbm.Batch { return &batch{d.DB.NewBatchWithSize(n), d} }

type batch struct {
	dbm.Batch
	of *mortal
}

// Write implements dbm.Batch.
func (b *batch) Write() error { return b.of.write(b.Batch.Write) }

// WriteSync implements dbm.Batch.
func (b *batch) WriteSync() error { return b.of.write(b.Batch.WriteSync) }
