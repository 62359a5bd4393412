package statesync

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	cmtdb "github.com/cometbft/cometbft-db"
	cmtcfg "github.com/cometbft/cometbft/config"
	sm "github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/store"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/replace"
)

// What lies in a node's directory of data.
const (
	applicationDB = "application"
	snapshotDir   = "snapshots"
	chunkDir      = "snapshot-under-way" // chunks that are restored
	marker        = "restoring"          // there while a snapshot is restored
)

// Recover returns the height of a node's last block, or of the state that it has restored. A
// restoring that was not finished is undone first.
func Recover(conf *cmtcfg.Config) (height int64, err error) {
	dir := conf.DBDir()
	if _, err := os.Stat(filepath.Join(dir, marker)); err == nil {
		if err := discard(dir); err != nil {
			return 0, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	return height, withDatabases(conf, func(states, blocks cmtdb.DB) error {
		stored, known := store.NewBlockStore(blocks), sm.NewStore(states, sm.StoreOptions{})
		state, err := known.Load()
		if err != nil {
			return err
		}
		if height = max(state.LastBlockHeight, stored.Height()); stored.Height() > 0 || height == 0 {
			return nil
		}
		// CometBFT forgets at each start that it may have a state without a block.
		return known.SetOfflineStateSyncHeight(height)
	})
}

// Bootstrap gives the CometBFT of a node that has no block a state, with the commit of the last block. more, which may
// be nil, adds to its databases of states and blocks. All of it is on the disk when it returns.
func Bootstrap(conf *cmtcfg.Config, state sm.State, commit *cmttypes.Commit, more func(states, blocks cmtdb.DB) error) error {
	return withDatabases(conf, func(states, blocks cmtdb.DB) error {
		known := sm.NewStore(states, sm.StoreOptions{})
		err := errors.Join(store.NewBlockStore(blocks).SaveSeenCommit(state.LastBlockHeight, commit), known.SetOfflineStateSyncHeight(state.LastBlockHeight))
		if err == nil && more != nil {
			err = more(states, blocks)
		}
		if err != nil {
			return err
		}
		flush := blocks.NewBatch()
		return errors.Join(flush.WriteSync(), flush.Close(), known.Bootstrap(state))
	})
}

// withDatabases opens CometBFT's databases of states and blocks, which must be nobody else's meanwhile.
func withDatabases(conf *cmtcfg.Config, do func(states, blocks cmtdb.DB) error) (err error) {
	var dbs [2]cmtdb.DB
	for i, name := range []string{"state", "blockstore"} {
		if dbs[i], err = cmtcfg.DefaultDBProvider(&cmtcfg.DBContext{ID: name, Config: conf}); err != nil {
			return fmt.Errorf("open database %s (is another process using it?): %w", name, err)
		}
		defer func() { err = errors.Join(err, dbs[i].Close()) }()
	}
	return do(dbs[0], dbs[1])
}

// mark says that what is in the directory is of no use from now on, and removes it.
func mark(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, marker), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), replace.Flush(dir)); err != nil {
		return err
	}
	return wipe(dir)
}

// discard makes a node one that has nothing but its keys.
func discard(dir string) error {
	if err := wipe(dir); err != nil {
		return err // the marker stays
	}
	return unmark(dir)
}

// wipe removes databases and snapshots. What the validator signed last lies beside them, and stays.
func wipe(dir string) error {
	all, err := filepath.Glob(filepath.Join(dir, "*.db"))
	for _, name := range append(all, filepath.Join(dir, "cs.wal"), filepath.Join(dir, snapshotDir), filepath.Join(dir, chunkDir)) {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return errors.Join(err, replace.Flush(dir))
}

// unmark says that what is in the directory counts.
func unmark(dir string) error {
	return errors.Join(os.RemoveAll(filepath.Join(dir, chunkDir)), replace.Flush(dir), os.Remove(filepath.Join(dir, marker)), replace.Flush(dir))
}
