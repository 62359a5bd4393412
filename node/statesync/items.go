package statesync

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	protoio "github.com/cosmos/gogoproto/io"
	"github.com/cosmos/gogoproto/proto"

	snapshottypes "github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"
)

// maxPending bounds the subtrees that wait for their parents. They are fewer than a tree is high,
// and a tree of 2^64 leaves is 93 high.
const maxPending = 128

// items reads a snapshot, in which each tree comes as its nodes, children before parents. It
// refuses what no honest node gives. IAVL would panic over some of it, and keep any number of
// leaves in memory. Keys of inner nodes stand in no hash: with wrong ones a tree has the right
// hash, and finds nothing.
type items struct {
	protoio.Reader
	onItem func() error // is called for each item, and may end it
	height int64        // of the state
	left   int64        // bytes that may still come

	begun   bool      // a tree
	pending []subtree // that wait for their parents
	last    []byte    // key of the last leaf
	ended   bool      // nothing follows
}

// subtree is what its parent must agree with.
type subtree struct {
	least  []byte // of its keys
	height int32
}

// ReadMsg implements protoio.Reader.
func (r *items) ReadMsg(m proto.Message) error {
	if err := r.onItem(); err != nil {
		return err
	}
	if err := r.Reader.ReadMsg(m); err != nil {
		r.ended = errors.Is(err, io.EOF)
		return err
	}
	item, ok := m.(*snapshottypes.SnapshotItem)
	if !ok {
		return fmt.Errorf("a snapshot holds a %T", m)
	}
	if r.left -= int64(item.Size()); r.left < 0 {
		return errors.New("the snapshot expands to more than is believed")
	}
	switch i := item.Item.(type) {
	case *snapshottypes.SnapshotItem_Store:
		if len(r.pending) > 1 {
			return errors.New("a tree of the snapshot has several roots")
		}
		r.begun, r.pending, r.last = true, nil, nil
		return nil
	case *snapshottypes.SnapshotItem_IAVL:
		if !r.begun || i.IAVL == nil {
			return errors.New("the snapshot has a node of no tree")
		}
		return r.node(i.IAVL)
	}
	return fmt.Errorf("the snapshot holds a %T: it is of another kind of chain, or of a newer version", item.Item)
}

// node checks a node against its children.
func (r *items) node(n *snapshottypes.SnapshotIAVLItem) error {
	if n.Version < 1 || n.Version > r.height {
		return fmt.Errorf("the snapshot has a node of version %d", n.Version)
	}
	if n.Height == 0 {
		if len(n.Key) == 0 || r.last != nil && bytes.Compare(n.Key, r.last) <= 0 {
			return errors.New("keys of the snapshot are out of order")
		}
		if r.last = n.Key; len(r.pending) == maxPending {
			return errors.New("a tree of the snapshot has leaves without parents")
		}
		r.pending = append(r.pending, subtree{n.Key, 0})
		return nil
	}
	k := len(r.pending) - 2
	if k < 0 {
		return errors.New("a node of the snapshot has not two children")
	}
	a, b := r.pending[k], r.pending[k+1]
	if n.Height != 1+max(a.height, b.height) || len(n.Value) > 0 || !bytes.Equal(n.Key, b.least) {
		return errors.New("a node of the snapshot does not fit its children")
	}
	r.pending = append(r.pending[:k], subtree{a.least, n.Height})
	return nil
}
