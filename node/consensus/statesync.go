package consensus

import (
	"context"

	cmtcfg "github.com/cometbft/cometbft/config"
	cmtp2p "github.com/cometbft/cometbft/p2p"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	serverlog "github.com/cosmos/cosmos-sdk/server/log"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/node/statesync"
)

// beginState gives a node that has no block the state of a snapshot, if it is to have one.
func (c *Config) beginState(ctx context.Context, conf *cmtcfg.Config, genesis *cmttypes.GenesisDoc, logger log.Logger) error {
	height, err := statesync.Recover(conf)
	if err != nil || c.StateSync == nil {
		return err
	}
	if height > 0 {
		if c.StateSync.Tell != nil {
			c.StateSync.Tell("the node has the state of block %d and goes on from there, without a snapshot", height)
		}
		return nil
	}
	key, err := loadNodeKey(conf)
	if err != nil {
		return err
	}
	return statesync.Run(ctx, statesync.Node{
		Comet: conf, Key: key, Genesis: genesis, Logger: serverlog.CometLoggerWrapper{Logger: logger},
		Open:          func(db dbm.DB) (*app.App, error) { return c.openState(logger, genesis.ChainID, db) },
		KeepConnected: func(ctx context.Context, sw *cmtp2p.Switch) { keepPeers(ctx, sw, c.Peers, c.Logger) },
	}, *c.StateSync)
}
