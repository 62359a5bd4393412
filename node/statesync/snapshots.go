package statesync

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtsync "github.com/cometbft/cometbft/proto/tendermint/statesync"
	dbm "github.com/cosmos/cosmos-db"
	protoio "github.com/cosmos/gogoproto/io"
	"github.com/cosmos/gogoproto/proto"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/store/v2/pruning"
	pruningtypes "github.com/cosmos/cosmos-sdk/store/v2/pruning/types"
	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	snapshottypes "github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
)

// kept is how many of the newest snapshots stay: one may be half read when the next is taken.
const kept = 2

// Snapshots are those that a node takes of its application's state. A nil one takes and has none.
type Snapshots struct {
	manager  *snapshots.Manager
	interval uint64
	log      log.Logger
	stopping atomic.Bool
	taking   sync.WaitGroup
}

// AllowPruning lets an application's states be pruned beside snapshots, before it is opened. The SDK
// prunes nothing above a snapshot that is missing, and those before now are: other intervals may
// have applied, or the state was restored.
func AllowPruning(db dbm.DB, o pruningtypes.PruningOptions) {
	m := pruning.NewManager(db, log.NewNopLogger())
	m.SetOptions(o)
	m.HandleSnapshotHeight(rootmulti.GetLatestVersion(db))
}

// Open opens the snapshots in a node's directory of data. One is taken after each interval of
// blocks; at 0 none is, and those that are there are removed.
func Open(dir string, interval uint64, of storetypes.CommitMultiStore, logger log.Logger) (*Snapshots, error) {
	if dir = filepath.Join(dir, snapshotDir); interval == 0 {
		return nil, os.RemoveAll(dir)
	}
	announcer, ok := of.(snapshottypes.SnapshotAnnouncer)
	if !ok {
		return nil, fmt.Errorf("the store %T cannot keep a state while a snapshot of it is taken", of)
	}
	store, closeIt, err := openStore(dir)
	if err != nil {
		return nil, err
	}
	if err := discardHalf(store, dir); err != nil {
		return nil, errors.Join(err, closeIt())
	}
	s := &Snapshots{interval: interval, log: logger}
	of.SetSnapshotInterval(interval)
	s.manager = snapshots.NewManager(store, snapshottypes.NewSnapshotOptions(interval, kept), stoppableStore{of, announcer, &s.stopping}, nil, logger)
	return s, nil
}

// openStore opens the snapshots in a folder.
func openStore(dir string) (*snapshots.Store, func() error, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	db, err := dbm.NewGoLevelDB("metadata", dir, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("open the snapshots (is another process using them?): %w", err)
	}
	store, err := snapshots.NewStore(db, dir)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, db.Close, nil
}

// discardHalf removes what is left of snapshots that were not finished.
func discardHalf(store *snapshots.Store, dir string) error {
	all, err := store.List()
	if err != nil {
		return err
	}
	whole := map[string]bool{}
	for _, s := range all {
		whole[strconv.FormatUint(s.Height, 10)] = true
	}
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if _, not := strconv.ParseUint(f.Name(), 10, 64); not == nil && !whole[f.Name()] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
		}
	}
	return err
}

// Take begins a snapshot of the newest state if one is due.
func (s *Snapshots) Take(height int64) {
	if s == nil || height <= 0 || uint64(height)%s.interval != 0 || s.stopping.Load() {
		return
	}
	s.taking.Go(func() {
		_, err := s.manager.Create(uint64(height))
		if err == nil {
			_, err = s.manager.Prune(kept)
		}
		switch {
		case s.stopping.Load():
		case err != nil:
			s.log.Error("no snapshot of the state", "height", height, "error", err)
		default:
			s.log.Info("snapshot of the state", "height", height)
		}
	})
}

// List implements abci.Application's ListSnapshots.
func (s *Snapshots) List() (*abci.ResponseListSnapshots, error) {
	r := &abci.ResponseListSnapshots{}
	if s == nil {
		return r, nil
	}
	all, err := s.manager.List()
	if err != nil {
		return nil, err
	}
	for _, each := range all {
		x, err := each.ToABCI()
		if err != nil {
			return nil, err
		}
		r.Snapshots = append(r.Snapshots, &x)
	}
	return r, nil
}

// Load implements abci.Application's LoadSnapshotChunk.
func (s *Snapshots) Load(req *abci.RequestLoadSnapshotChunk) (*abci.ResponseLoadSnapshotChunk, error) {
	r := &abci.ResponseLoadSnapshotChunk{}
	if s == nil {
		return r, nil
	}
	var err error
	r.Chunk, err = s.manager.LoadChunk(req.Height, req.Format, req.Chunk)
	return r, err
}

// has reports whether there is a chunk.
func (s *Snapshots) has(m *cmtsync.ChunkRequest) bool {
	if s == nil {
		return false
	}
	all, err := s.manager.List()
	return err == nil && slices.ContainsFunc(all, func(x *snapshottypes.Snapshot) bool {
		return x.Height == m.Height && x.Format == m.Format && m.Index < x.Chunks
	})
}

// Retain returns the first block that must stay when a block was made, of those from which
// others would stay. A node that restores the older snapshot needs all blocks after it.
func (s *Snapshots) Retain(height, from int64) int64 {
	if s == nil || from == 0 {
		return from
	}
	if s.interval > uint64(height)/kept {
		return 0
	}
	return min(from, height-int64(s.interval)*kept)
}

// Close gives up a snapshot under way.
func (s *Snapshots) Close() error {
	if s == nil {
		return nil
	}
	s.stopping.Store(true)
	s.taking.Wait()
	return s.manager.Close()
}

// stoppableStore is the application's store as snapshots are taken of it, until the node stops.
type stoppableStore struct {
	snapshottypes.Snapshotter
	snapshottypes.SnapshotAnnouncer
	stopping *atomic.Bool
}

// Snapshot implements snapshottypes.Snapshotter.
func (s stoppableStore) Snapshot(height uint64, w protoio.Writer) error {
	return s.Snapshotter.Snapshot(height, stoppableWriter{w, s.stopping})
}

// stoppableWriter is a writer that ends when the node stops.
type stoppableWriter struct {
	protoio.Writer
	stopping *atomic.Bool
}

var errStopping = errors.New("the node stops")

// WriteMsg implements protoio.Writer.
func (w stoppableWriter) WriteMsg(m proto.Message) error {
	if w.stopping.Load() {
		return errStopping
	}
	return w.Writer.WriteMsg(m)
}
