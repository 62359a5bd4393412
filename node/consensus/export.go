package consensus

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
)

// Export returns the genesis with which a chain of some id goes on from the state that the node in a directory has after a block;
// 0: its newest. The node must not run. A planned upgrade is not in it, nor is what goes over several blocks: a draw of seats, a
// clearing. Accounts, orders, leases and disputes are.
func Export(dir string, height int64, chainID string) (doc *cmttypes.GenesisDoc, err error) {
	c := Config{Dir: dir, Upgrades: app.Upgrades}
	conf := c.comet()
	if _, err := os.Stat(filepath.Join(conf.DBDir(), "application.db")); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s has no state: start its node once", dir)
	}
	genesis, err := loadGenesis(conf.GenesisFile(), nil)
	if err != nil {
		return nil, err
	}
	db, err := dbm.NewGoLevelDB("application", conf.DBDir(), nil)
	if err != nil {
		return nil, fmt.Errorf("open the application's database (is another process using it?): %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	a, err := c.openState(log.NewNopLogger(), genesis.ChainID, db)
	if err != nil {
		return nil, err
	}
	newest := a.LastBlockHeight()
	height = cmp.Or(height, newest)
	if height < 1 || height > newest {
		return nil, fmt.Errorf("block %d: the node has the states of blocks up to %d", height, newest)
	}
	ms, err := a.CommitMultiStore().CacheMultiStoreWithVersion(height)
	if err != nil {
		return nil, fmt.Errorf("the state of block %d is not kept: name a later one of up to %d (%w)", height, newest, err)
	}
	info, err := app.CommitInfo(a.CommitMultiStore(), height)
	if err != nil {
		return nil, err
	}
	ctx := sdk.NewContext(ms, cmtproto.Header{ChainID: genesis.ChainID, Height: height, Time: info.Timestamp}, false, log.NewNopLogger())
	params := cmttypes.ConsensusParamsFromProto(a.GetConsensusParams(ctx))
	doc = &cmttypes.GenesisDoc{
		ChainID: cmp.Or(chainID, genesis.ChainID), GenesisTime: info.Timestamp, InitialHeight: height + 1, ConsensusParams: &params,
	}
	if doc.AppState, err = a.Export(ctx); err != nil {
		return nil, err
	}
	return doc, doc.ValidateAndComplete()
}
