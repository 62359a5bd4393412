// Package consensus runs one CometBFT node and the chain's application inside
// this process.
//
// Invariants: everything of a node is in one directory: keys, genesis and databases. A
// node that was killed at any moment starts again from there. Nothing is
// global, so several nodes live in one process, each with its own ports and
// metrics. Servers: CometBFT RPC, gRPC and REST.
//
// Block times are those at which validators voted for the block before. After
// a silence of the chain the next block's time is therefore as old as the
// silence was long; Config.EmptyInterval bounds that.
//
// Call [Start]; [Node.Stop] ends it.
//
// Source: CometBFT, which this package configures.
package consensus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	cmtnode "github.com/cometbft/cometbft/node"
	cmtp2p "github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/proxy"
	"github.com/cometbft/cometbft/rpc/client/local"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/prometheus/client_golang/prometheus"

	"cosmossdk.io/log/v2"
	sdkslog "cosmossdk.io/log/v2/slog"

	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/server"
	serverlog "github.com/cosmos/cosmos-sdk/server/log"
	pruningtypes "github.com/cosmos/cosmos-sdk/store/v2/pruning/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/node/statesync"
)

const (
	keepStates = 1_000 // newest ones, where the settings do not say
	pruneEvery = 100   // blocks

	// cachedNodes is how many nodes of each of some 25 trees stay in memory, some 400 bytes each. IAVL keeps 100,000 keys besides.
	// With the SDK's 500,000 a devnet of four validators took 2.3 GB after 12 minutes of tally devnet --life, and grew; it takes
	// 1.5 GB with these.
	cachedNodes = 20_000
)

// Node is a running node.
type Node struct {
	app      *turns
	comet    *cmtnode.Node
	client   *local.Local
	queries  queries
	addrs    Addrs
	registry *prometheus.Registry
	failed   chan error     // of one place: why consensus has ended by itself
	closers  []func() error // in the order of opening
}

// Addrs are the places where a node listens, as host:port; P2P as id@host:port.
type Addrs struct{ P2P, RPC, GRPC, REST string }

// Start starts a node and returns when its servers listen. ctx bounds the
// start alone.
func Start(ctx context.Context, c Config) (_ *Node, err error) {
	n := &Node{registry: prometheus.NewRegistry(), failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start node in %s: %w", c.Dir, err), n.Stop())
		}
	}()
	if err := c.complete(); err != nil {
		return nil, err
	}
	if err := CheckPeers(c.Peers); err != nil {
		return nil, err
	}
	conf := c.comet()
	for _, dir := range []string{filepath.Dir(conf.NodeKeyFile()), conf.DBDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := discardUnborn(conf.DBDir()); err != nil {
		return nil, err
	}
	genesis, err := loadGenesis(conf.GenesisFile(), c.Genesis)
	if err != nil {
		return nil, err
	}
	if err := c.checkPause(genesis); err != nil {
		return nil, err
	}
	if err := c.awaitGenesis(ctx, genesis.GenesisTime); err != nil {
		return nil, err
	}
	logger := sdkslog.NewCustomLogger(c.Logger.With("node", c.Name))
	if err := c.beginState(ctx, conf, genesis, logger); err != nil {
		return nil, err
	}
	if err := n.openApp(&c, logger, genesis.ChainID, conf.DBDir()); err != nil {
		return nil, err
	}
	n.app.ProveWith(c.Provers...)
	n.app.other = n.makeWay
	if err := n.openComet(ctx, &c, logger, genesis); err != nil {
		return nil, err
	}
	n.keepPeers(c.Peers, c.Logger)
	if err := n.serve(c, genesis.ChainID, logger); err != nil {
		return nil, err
	}
	return n, nil
}

// awaitGenesis waits until the chain begins. CometBFT would too, and could not be stopped meanwhile.
func (c *Config) awaitGenesis(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	c.Tell("the chain begins at %s, in %v: this node waits", at.Format(time.RFC3339), wait.Round(time.Second))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

func (n *Node) openApp(c *Config, logger log.Logger, chainID, dir string) error {
	db, err := dbm.NewGoLevelDB("application", dir, nil)
	if err != nil {
		return fmt.Errorf("open the application's database (is another process using it?): %w", err)
	}
	if c.SnapshotInterval > 0 {
		statesync.AllowPruning(db, c.pruning())
	}
	a, err := c.openState(logger, chainID, db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	n.app = newTurns(a)
	n.closers = append(n.closers, n.app.Close)
	if n.app.snapshots, err = statesync.Open(dir, c.SnapshotInterval, a.CommitMultiStore(), logger); err != nil {
		return err
	}
	n.closers = append(n.closers, n.app.snapshots.Close)
	return nil
}

// openState opens the application at its last block.
func (c *Config) openState(logger log.Logger, chainID string, db dbm.DB) (*app.App, error) {
	return app.NewWith(c.Upgrades, logger, db, chainID,
		baseapp.SetMinGasPrices("0"+coin.Denom),
		baseapp.SetPruning(c.pruning()),
		baseapp.SetMinRetainBlocks(c.KeepBlocks),
		baseapp.SetIAVLCacheSize(cachedNodes),
	)
}

func (c *Config) pruning() pruningtypes.PruningOptions {
	return pruningtypes.NewCustomPruningOptions(cmp.Or(c.KeepStates, keepStates), pruneEvery)
}

// openComet brings the application to the last block and starts consensus.
func (n *Node) openComet(ctx context.Context, c *Config, logger log.Logger, genesis *cmttypes.GenesisDoc) error {
	conf := c.comet()
	key, err := loadNodeKey(conf)
	if err != nil {
		return err
	}
	validator, err := n.privValidator(ctx, c, genesis.ChainID, key, serverlog.CometLoggerWrapper{Logger: logger})
	if err != nil {
		return err
	}
	dbs := &databases{override: c.overrides.store}
	n.closers = append(n.closers, dbs.Close)
	n.comet, err = cmtnode.NewNodeWithContext(ctx, conf, override(validator, c.overrides.signer), key,
		proxy.NewLocalClientCreator(override(server.NewCometABCIWrapper(n.app), c.overrides.app)),
		func() (*cmttypes.GenesisDoc, error) { return genesis, nil },
		dbs.open,
		cmtnode.DefaultMetricsProvider(conf.Instrumentation), // none: see metrics
		failureLogger{serverlog.CometLoggerWrapper{Logger: logger}, n.failed},
		cmtnode.CustomReactors(map[string]cmtp2p.Reactor{"PLACES": newPlaces()}),
	)
	if err != nil {
		return err
	}
	if err := boundMessages(n.comet.Switch(), n.app.snapshots); err != nil {
		return err
	}
	n.client = local.New(n.comet)
	env, err := n.comet.ConfigureRPC()
	if err != nil {
		return err
	}
	boundSearches(env, dbs.index)
	env.Config.MaxSubscriptionClients = maxConns // those of strangers are websockets, which are counted
	n.queries = queries{n.client, n.app, env}
	if err := n.registry.Register(metrics{n}); err != nil {
		return err
	}
	if err := n.comet.Start(); err != nil {
		return err
	}
	n.closers = append(n.closers, func() error {
		return errors.Join(n.comet.Stop(), n.comet.ProxyApp().Stop())
	})
	n.addrs.P2P = string(key.ID()) + "@" + trimScheme(conf.P2P.ListenAddress)
	return nil
}

// makeWay ends the node for another version of this software. While blocks of others are fetched, CometBFT ends the process if
// one cannot be applied; so that goroutine ends here.
func (n *Node) makeWay(why error) {
	select {
	case n.failed <- why:
	default:
	}
	if env := n.queries.env; env != nil && env.ConsensusReactor.WaitSync() {
		runtime.Goexit()
	}
}

// keepPeers keeps the peers from now until the node stops.
func (n *Node) keepPeers(peers []string, log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		keepPeers(ctx, n.comet.Switch(), peers, log)
	}()
	n.closers = append(n.closers, func() error { cancel(); <-done; return nil })
}

// Stop stops the node. Its state is on disk.
func (n *Node) Stop() error {
	var errs []error
	for _, closeIt := range slices.Backward(n.closers) {
		errs = append(errs, closeIt())
	}
	n.closers = nil
	return errors.Join(errs...)
}

// Addrs returns where the node listens.
func (n *Node) Addrs() Addrs { return n.addrs }

// Failed receives why consensus has ended by itself, as on a full disk. Whoever runs the node then stops it: it makes and
// follows no more blocks, and goes on where it was once it is started again.
func (n *Node) Failed() <-chan error { return n.failed }

// Client returns CometBFT's RPC without the network between.
func (n *Node) Client() *local.Local { return n.client }

// Encoding returns the encoding of the chain's transactions.
func (n *Node) Encoding() app.Encoding { return n.app.Encoding }

// ConsensusKey returns the public key with which the node votes.
func (n *Node) ConsensusKey() ([]byte, error) {
	key, err := n.comet.PrivValidator().GetPubKey()
	if err != nil {
		return nil, err
	}
	return key.Bytes(), nil
}

// Height returns the height of the last block.
func (n *Node) Height() int64 { return n.comet.BlockStore().Height() }

// Peers returns how many nodes are connected to this one.
func (n *Node) Peers() int { return n.comet.Switch().Peers().Size() }

// Snapshots returns the heights of the states that the node gives to new ones, the newest first.
func (n *Node) Snapshots() ([]int64, error) {
	r, err := n.app.snapshots.List()
	if err != nil {
		return nil, err
	}
	var heights []int64
	for _, s := range r.Snapshots {
		heights = append(heights, int64(s.Height))
	}
	return heights, nil
}

// Metrics returns the node's own metrics.
func (n *Node) Metrics() *prometheus.Registry { return n.registry }
