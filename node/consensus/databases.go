package consensus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cmtdb "github.com/cometbft/cometbft-db"
	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/syndtr/goleveldb/leveldb"
)

// databases are those that CometBFT opened. It does not close all of them, and
// an open one keeps the directory locked.
type databases struct {
	all   []cmtdb.DB
	index cmtdb.DB // of transactions and blocks, by events

	override func(cmtdb.DB) cmtdb.DB
}

func (d *databases) open(ctx *cmtcfg.DBContext) (cmtdb.DB, error) {
	db, err := cmtcfg.DefaultDBProvider(ctx)
	if err != nil {
		return nil, fmt.Errorf("open database %s (is another process using it?): %w", ctx.ID, err)
	}
	d.all = append(d.all, db)
	db = override(db, d.override)
	if ctx.ID == "tx_index" {
		d.index = calm{db}
	}
	return calm{db}, nil
}

// discardUnborn removes what is left of databases that a kill kept from being
// made: a manifest whose entry point is missing or has not got its name yet.
// Otherwise they would be taken for damaged ones.
func discardUnborn(dir string) error {
	dbs, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil {
		return err
	}
	for _, db := range dbs {
		files, err := os.ReadDir(db)
		if err != nil {
			return err
		}
		unborn := true
		for _, f := range files {
			pending := strings.HasPrefix(f.Name(), "CURRENT.") && f.Name() != "CURRENT.bak"
			unborn = unborn && (pending || strings.HasPrefix(f.Name(), "MANIFEST-") || slices.Contains([]string{"LOCK", "LOG", "LOG.old"}, f.Name()))
		}
		if unborn {
			if err := os.RemoveAll(db); err != nil {
				return err
			}
		}
	}
	return nil
}

// calm is a database in which nothing is found once it is closed. CometBFT's
// gossip does not end with its node: it may still sleep, and then read, and
// would panic on an error.
type calm struct{ cmtdb.DB }

// Get implements cmtdb.DB.
func (d calm) Get(key []byte) ([]byte, error) {
	v, err := d.DB.Get(key)
	if errors.Is(err, leveldb.ErrClosed) {
		return nil, nil
	}
	return v, err
}

// Close closes what is still open.
func (d *databases) Close() error {
	var errs []error
	for _, db := range d.all {
		if err := db.Close(); !errors.Is(err, leveldb.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
