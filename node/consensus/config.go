package consensus

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtcfg "github.com/cometbft/cometbft/config"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/statesync"
)

// gossipPause is how long a node rests when it has nothing for a peer. CometBFT's
// 100 ms delays every block by several rests; shorter ones cost no CPU that shows.
const gossipPause = 20 * time.Millisecond

// Config describes a node.
type Config struct {
	Dir     string               // holds all of the node; is made if absent
	Genesis *cmttypes.GenesisDoc // of the chain; nil: the one in Dir
	Name    string               // tells nodes apart in logs; "node" if empty

	// Listen says where to listen, as host:port; empty: a free port of
	// 127.0.0.1. P2P is host:port here too.
	Listen Addrs
	// Peers are let in however many strangers hold places at this node. Those given
	// as id@host:port are dialled, and again whenever they are lost; those given as
	// id alone are waited for. Of two nodes one dials the other.
	Peers []string
	// Provers are the keys with which a validator proves the beacon's values: its own, and one that
	// will count. Without the one that counts, it proposes no transactions.
	Provers []ed25519.PrivateKey

	// Signer is where a signer that has the consensus key dials this node, by CometBFT's protocol: tcp://host:port or
	// unix://path; empty: the key lies in Dir.
	Signer string
	// Upgrades are those of the version that runs; nil: of this one. Who rehearses an upgrade sets them.
	Upgrades []app.Upgrade

	// CommitTimeout is the pause after a block; 500 ms if zero.
	CommitTimeout time.Duration
	// EmptyInterval is the longest time without a block, at most half of what the
	// chain lets a pause count; zero: an idle chain makes none, and its clocks go
	// on only as far as blocks that somebody's transactions make let them.
	EmptyInterval time.Duration
	// KeepBlocks are the newest blocks that stay, beside those in which evidence still counts; 0: all.
	// KeepStates are the newest states that can be asked for; 0: 1000.
	KeepBlocks, KeepStates uint64
	// SnapshotInterval is how many blocks lie between snapshots of the state, from which new nodes can begin; 0: none is taken.
	SnapshotInterval uint64
	// StateSync has a node that has no block begin at a snapshot of its peers; nil: at the genesis.
	StateSync *statesync.Source
	Tell      func(format string, args ...any) // what a start waits for, for people; nil: nobody
	// Origins are the web origins that may call RPC and REST, "*" for all; empty:
	// none.
	Origins []string
	Logger  *slog.Logger // nil: no logs

	overrides overrides
}

// overrides are what tests put in place of parts of a node, to see what others bear; nil: the node's own.
type overrides struct {
	signer func(cmttypes.PrivValidator) cmttypes.PrivValidator
	app    func(abci.Application) abci.Application
	store  func(cmtdb.DB) cmtdb.DB
}

// override returns a part as f has it.
func override[T any](part T, f func(T) T) T {
	if f == nil {
		return part
	}
	return f(part)
}

// complete fills in what is empty.
func (c *Config) complete() error {
	if c.Dir == "" {
		return errors.New("name a data directory")
	}
	if c.Name == "" {
		c.Name = "node"
	}
	if c.CommitTimeout == 0 {
		c.CommitTimeout = 500 * time.Millisecond
	}
	if c.Upgrades == nil {
		c.Upgrades = app.Upgrades
	}
	if c.Tell == nil {
		c.Tell = func(string, ...any) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for _, a := range []*string{&c.Listen.RPC, &c.Listen.GRPC, &c.Listen.REST} {
		if *a == "" {
			*a = "127.0.0.1:0"
		}
	}
	if _, port, err := net.SplitHostPort(c.Listen.P2P); c.Listen.P2P == "" || err == nil && port == "0" {
		if c.Listen.P2P, err = FreeAddr(); err != nil {
			return err
		}
	}
	return nil
}

// FreeAddr returns an address of 127.0.0.1 where nobody listens now. It serves
// to tell nodes of one another's addresses before they start.
func FreeAddr() (string, error) {
	var p Ports
	addr, err := p.Take("")
	return addr, errors.Join(err, p.Close())
}

// Ports are addresses of this machine of which no two are the same: it listens
// on each until Close, after which their owners should not be long.
type Ports struct{ held []net.Listener }

// Take returns the wanted address, or another of 127.0.0.1 if that is empty or
// taken. The new port is below those that systems give to outgoing connections,
// so that none of them takes it meanwhile.
func (p *Ports) Take(wanted string) (string, error) {
	const first, last, tries = 10_000, 32_767, 100
	var err error
	for range tries {
		if wanted == "" {
			wanted = fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1))
		}
		var l net.Listener
		if l, err = net.Listen("tcp", wanted); err == nil {
			p.held = append(p.held, l)
			return l.Addr().String(), nil
		}
		wanted = ""
	}
	return "", fmt.Errorf("find a free port: %w", err)
}

// Close gives the addresses to those who will listen there.
func (p *Ports) Close() error {
	var err error
	for _, l := range p.held {
		err = errors.Join(err, l.Close())
	}
	p.held = nil
	return err
}

// comet returns CometBFT's configuration of the node. Its RPC server is ours,
// so that it can listen on a free port.
func (c *Config) comet() *cmtcfg.Config {
	conf := cmtcfg.DefaultConfig().SetRoot(c.Dir)
	conf.Moniker = c.Name
	conf.DBBackend = "goleveldb"
	conf.RPC.ListenAddress = ""
	conf.P2P.ListenAddress = "tcp://" + c.Listen.P2P
	conf.P2P.PexReactor = false // the named peers are the network: see keepPeers
	conf.P2P.UnconditionalPeerIDs = strings.Join(peerIDs(c.Peers), ",")
	conf.P2P.AllowDuplicateIP = true
	conf.P2P.AddrBookStrict = false
	conf.Mempool.MaxTxBytes = app.MaxTx
	conf.Mempool.Size, conf.Mempool.MaxTxsBytes = app.PoolTxs, app.PoolBytes
	conf.Consensus.TimeoutCommit = c.CommitTimeout
	conf.Consensus.PeerGossipSleepDuration = gossipPause
	conf.Consensus.CreateEmptyBlocks = c.EmptyInterval > 0
	conf.Consensus.CreateEmptyBlocksInterval = c.EmptyInterval
	return conf
}

// checkPause returns an error if an idle chain would lose time: the pauses between
// its empty blocks must count whole.
func (c *Config) checkPause(genesis *cmttypes.GenesisDoc) error {
	var state struct {
		Block struct {
			Params struct {
				MaxGapMs int64 `json:"max_gap_ms,string"`
			} `json:"params"`
		} `json:"block"`
	}
	if err := json.Unmarshal(genesis.AppState, &state); err != nil {
		return fmt.Errorf("read genesis: %w", err)
	}
	counts := time.Duration(state.Block.Params.MaxGapMs) * time.Millisecond
	if counts > 0 && c.EmptyInterval > counts/2 {
		return fmt.Errorf("an empty block every %s: the chain counts pauses of %s at most, so make it %s or less", c.EmptyInterval, counts, counts/2)
	}
	return nil
}

// MaxGenesis bounds a genesis file in bytes.
const MaxGenesis = 64 << 20

// loadGenesis returns the genesis in a file. A given one is written there first,
// or must be the one that is there.
func loadGenesis(file string, given *cmttypes.GenesisDoc) (*cmttypes.GenesisDoc, error) {
	text, err := bounded.ReadFile(file, MaxGenesis)
	switch {
	case errors.Is(err, os.ErrNotExist) && given == nil:
		return nil, fmt.Errorf("%s is missing: give the genesis of the chain", file)
	case errors.Is(err, os.ErrNotExist):
		if text, err = cmtjson.MarshalIndent(given, "", "  "); err != nil {
			return nil, fmt.Errorf("write genesis: %w", err)
		}
		if err := writeFile(file, text); err != nil {
			return nil, fmt.Errorf("write genesis: %w", err)
		}
	case err != nil:
		return nil, err
	}
	doc, err := cmttypes.GenesisDocFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read genesis %s: %w", file, err)
	}
	if given != nil {
		// Their JSON is what both were made from.
		a, errA := cmtjson.Marshal(given)
		b, errB := cmtjson.Marshal(doc)
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		if !bytes.Equal(a, b) {
			return nil, fmt.Errorf("%s is the genesis of another chain: use another directory", file)
		}
	}
	return doc, nil
}

// writeFile replaces a file whole, or not at all.
func writeFile(name string, data []byte) error {
	tmp := name + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

func trimScheme(addr string) string { return strings.TrimPrefix(addr, "tcp://") }
