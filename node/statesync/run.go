package statesync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	cmtcfg "github.com/cometbft/cometbft/config"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/p2p"
	cmtsync "github.com/cometbft/cometbft/proto/tendermint/statesync"
	sm "github.com/cometbft/cometbft/state"
	cmtstatesync "github.com/cometbft/cometbft/statesync"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/tally-network/tally/chain/app"
)

const (
	discovery    = 5 * time.Second // CometBFT's least, after which it chooses among snapshots
	stallTimeout = 5 * time.Minute // two of CometBFT's waits for a chunk, and what lies between
	tellEvery    = 2 * time.Second
	tellIdle     = 15 * time.Second
)

// Node is one that has no block yet.
type Node struct {
	Comet         *cmtcfg.Config
	Key           *p2p.NodeKey
	Genesis       *cmttypes.GenesisDoc
	Open          func(dbm.DB) (*app.App, error)     // opens the application
	KeepConnected func(context.Context, *p2p.Switch) // keeps the node connected to its peers until ctx ends
	Logger        cmtlog.Logger
}

// Run restores the newest snapshot that the node's peers offer. Whatever it returns, or wherever
// it is killed, the node can be started again.
func Run(ctx context.Context, n Node, from Source) error {
	if from.Tell == nil {
		from.Tell = func(string, ...any) {}
	}
	from.StallTimeout = cmp.Or(from.StallTimeout, stallTimeout)
	dir := n.Comet.DBDir()
	if err := mark(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heads, err := newStateProvider(ctx, n.Genesis, &from, n.Logger)
	if err == nil {
		defer heads.end()
		err = n.restore(ctx, heads, &from)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("begin at a snapshot: %w", err), discard(dir))
	}
	return unmark(dir)
}

// outcome is what CometBFT returns of a sync.
type outcome struct {
	state  sm.State
	commit *cmttypes.Commit
	err    error
}

func (n *Node) restore(ctx context.Context, heads *stateProvider, from *Source) (err error) {
	r := &restorer{dir: n.Comet.DBDir(), open: n.Open, tell: from.Tell}
	r.advance()
	defer func() { err = errors.Join(err, r.close()) }()
	// CometBFT ignores TempDir: a copy of each chunk lies in the system's folder for temporary files, and stays there after a kill.
	conf := *n.Comet.StateSync
	conf.MaxSnapshotChunks = maxChunks
	if err := r.empty(); err != nil {
		return err
	}
	reactor := newOffers(cmtstatesync.NewReactor(conf, r, r, cmtstatesync.NopMetrics()))
	reactor.SetLogger(n.Logger.With("module", "statesync"))
	sw, stop, err := n.connect(reactor)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	keeping, cancel := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() { defer close(kept); n.KeepConnected(keeping, sw) }()
	defer func() { cancel(); <-kept }()

	done := make(chan outcome, 1)
	go func() {
		state, commit, err := reactor.Sync(heads, discovery)
		done <- outcome{state, commit, err}
	}()
	o, err := n.await(ctx, done, sw, r, from)
	if err != nil {
		heads.end()
		giveUp(reactor.Reactor)
		return err
	}
	if o.err != nil {
		return fmt.Errorf("%w: start the node again, or let it read all blocks", o.err)
	}
	if err := errors.Join(r.finish(&o.state), r.rank(ctx, &o.state)); err != nil {
		return err
	}
	from.Tell("restored the state of block %d", o.state.LastBlockHeight)
	above, err := heads.after(ctx, o.state.LastBlockHeight)
	if err != nil {
		return err
	}
	return Bootstrap(n.Comet, o.state, o.commit, func(states, blocks cmtdb.DB) error {
		b := backfill{headers: heads, state: o.state, above: above, tell: from.Tell, blocks: blocks, states: states}
		return b.run(ctx)
	})
}

// await waits for the outcome while something happens.
func (n *Node) await(ctx context.Context, done <-chan outcome, sw *p2p.Switch, r *restorer, from *Source) (outcome, error) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for told := time.Now(); ; {
		select {
		case o := <-done:
			return o, nil
		case <-ctx.Done():
			return outcome{}, ctx.Err()
		case <-tick.C:
		}
		idle := r.idle()
		if idle > from.StallTimeout {
			return outcome{}, fmt.Errorf("for %v none of %d peers has given a snapshot that could be restored: name peers that take them (snapshot_interval), or let the node read all blocks",
				from.StallTimeout, sw.Peers().Size())
		}
		if idle > tellIdle && time.Since(told) > tellIdle {
			told = time.Now()
			from.Tell("waiting for a snapshot of %d peers", sw.Peers().Size())
		}
	}
}

// connect has the node listen, and speak about snapshots alone.
func (n *Node) connect(reactor p2p.Reactor) (*p2p.Switch, func() error, error) {
	conf := n.Comet.P2P
	listen := strings.TrimPrefix(conf.ListenAddress, "tcp://")
	info := p2p.DefaultNodeInfo{
		ProtocolVersion: p2p.NewProtocolVersion(version.P2PProtocol, version.BlockProtocol, 0),
		DefaultNodeID:   n.Key.ID(), Network: n.Genesis.ChainID, Version: version.TMCoreSemVer,
		Channels: []byte{cmtstatesync.SnapshotChannel, cmtstatesync.ChunkChannel},
		Moniker:  n.Comet.Moniker, ListenAddr: conf.ListenAddress,
		Other: p2p.DefaultNodeInfoOther{TxIndex: "off"},
	}
	if err := info.Validate(); err != nil {
		return nil, nil, err
	}
	at, err := p2p.NewNetAddressString(p2p.IDAddressString(n.Key.ID(), listen))
	if err != nil {
		return nil, nil, err
	}
	named := strings.FieldsFunc(conf.UnconditionalPeerIDs, func(r rune) bool { return r == ',' })
	transport := p2p.NewMultiplexTransport(info, *n.Key, p2p.MConnConfig(conf))
	p2p.MultiplexTransportMaxIncomingConnections(conf.MaxNumInboundPeers + len(named))(transport)
	// Of strangers nobody is believed, and each could offer what takes minutes to find wrong.
	sw := p2p.NewSwitch(conf, transport, p2p.SwitchPeerFilters(func(_ p2p.IPeerSet, peer p2p.Peer) error {
		if !slices.Contains(named, string(peer.ID())) {
			return fmt.Errorf("%s is not among the named peers", peer.ID())
		}
		return nil
	}))
	sw.SetLogger(n.Logger.With("module", "p2p"))
	sw.AddReactor("STATESYNC", reactor)
	sw.SetNodeInfo(info)
	sw.SetNodeKey(n.Key)
	if err := sw.AddUnconditionalPeerIDs(named); err != nil {
		return nil, nil, err
	}
	if err := transport.Listen(*at); err != nil {
		return nil, nil, fmt.Errorf("listen at %s: %w", listen, err)
	}
	if err := sw.Start(); err != nil {
		return nil, nil, errors.Join(err, transport.Close())
	}
	return sw, func() error { return errors.Join(sw.Stop(), transport.Close()) }, nil
}

// giveUp ends CometBFT's search for a snapshot. It has no other end than to find one, so it finds one,
// and headers, whose context has ended, ends it.
func giveUp(reactor *cmtstatesync.Reactor) {
	reactor.Receive(p2p.Envelope{
		Src: nobody{}, ChannelID: cmtstatesync.SnapshotChannel,
		Message: &cmtsync.SnapshotsResponse{Height: math.MaxInt32, Chunks: 1, Hash: []byte{0}},
	})
}

// nobody is a peer that can only be named.
type nobody struct{ p2p.Peer }

// ID implements p2p.Peer.
func (nobody) ID() p2p.ID { return "" }
