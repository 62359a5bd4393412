package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

const gigabyte = 1_000_000_000

// Options are what a role is given beside its home.
type Options struct {
	Log     *slog.Logger       // nil: nothing is logged
	Observe func(events.Event) // may be nil
}

// Env opens what the role works with: it connects to the chain, waits for a
// block, and listens for peers, until ctx is done or the home is closed.
func (h *Home) Env(ctx context.Context, o Options) (_ *role.Env, err error) {
	s := h.Settings
	defer func() {
		if err != nil {
			err = fmt.Errorf("start %s: %w", s.Name, err)
		}
	}()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	log := o.Log.With("role", s.Name)
	parts := role.Parts{
		Name: s.Name, Dir: filepath.Join(h.Dir, notesDir), Seals: seals.In(h.Dir), Keys: role.Keys{Peer: h.Peer, VRF: h.VRF, Provers: h.provers()},
		Exec: s.Exec(), Threads: s.threads(), Checkpoints: s.Checkpoints, KeepEnded: s.KeepEnded, Log: log, Observe: o.Observe,
	}
	if parts.Store, err = store.Open(filepath.Join(h.Dir, storeDir), s.StoreGB*gigabyte); err != nil {
		return nil, err
	}
	if err := h.Metrics.Register(usage{parts.Store}); err != nil {
		return nil, err
	}
	parts.Host, err = p2p.New(p2p.Options{Key: h.Peer, Listen: s.Listen, Metrics: h.Metrics, Log: log})
	if err != nil {
		return nil, fmt.Errorf("%w (listen in %s says where)", err, filepath.Join(h.Dir, settingsFile))
	}
	h.closers = append(h.closers, parts.Host.Close)
	if parts.Chain, err = client.Dial(ctx, client.Endpoints{RPC: s.Node.RPC, GRPC: s.Node.GRPC}); err != nil {
		return nil, err
	}
	h.closers = append(h.closers, parts.Chain.Close)
	if parts.Chain.ChainID != s.Chain {
		return nil, fmt.Errorf("%s is a node of chain %q, but the settings say %q", s.Node.RPC, parts.Chain.ChainID, s.Chain)
	}
	if err := awaitState(ctx, parts.Chain); err != nil {
		return nil, err
	}
	parts.Account = parts.Chain.Account(h.account)
	parts.Account.GasFee = s.GasPrice
	return role.New(parts), nil
}

func (s *Settings) threads() int { return cmp.Or(s.Threads, runtime.GOMAXPROCS(0)) }

// Exec returns what computes here, within the memory that a program may take.
func (s *Settings) Exec() engine.Executor {
	return engine.Bounded(cpu.New(s.threads()), uint64(cmp.Or(s.MemoryGB, MemoryGB))*gigabyte)
}

// awaitState waits until the node answers queries: one that has just started
// again does not before its next block.
func awaitState(ctx context.Context, c *client.Client) error {
	for height := int64(0); ; {
		_, err := supplyv1.NewQueryClient(c.Conn).Supply(ctx, &supplyv1.QuerySupplyRequest{})
		if err == nil || !strings.Contains(err.Error(), sdkerrors.ErrInvalidHeight.Error()) {
			return err
		}
		b, err := c.Next(ctx, height)
		if err != nil {
			return err
		}
		height = b.Height
	}
}

// StartNode starts the consensus node of a validator. ctx bounds the start
// alone; the node runs until the home is closed.
func (h *Home) StartNode(ctx context.Context, log *slog.Logger) (*consensus.Node, error) {
	v := h.Settings.Validator
	if v == nil {
		return nil, fmt.Errorf("%s is the home of a %s: only a validator runs a node", h.Dir, h.Settings.Role)
	}
	genesis, err := h.genesis()
	if err != nil {
		return nil, err
	}
	c := consensus.Config{
		Dir: filepath.Join(h.Dir, chainDir), Genesis: genesis, Name: h.Settings.Name,
		Listen:  consensus.Addrs{P2P: v.P2P, RPC: v.RPC, GRPC: v.GRPC, REST: v.REST},
		Provers: h.provers(),
		Peers:   v.Peers, Signer: v.Signer, Origins: v.Origins, CommitTimeout: v.CommitTimeout, EmptyInterval: v.EmptyInterval,
		KeepBlocks: v.KeepBlocks, KeepStates: v.KeepStates, SnapshotInterval: SnapshotInterval, StateSync: h.StateSync, Tell: h.Tell,
	}
	if v.SnapshotInterval != nil {
		c.SnapshotInterval = *v.SnapshotInterval
	}
	stopping := &atomic.Bool{}
	if log != nil {
		c.Logger = slog.New(quiet{Handler: log.Handler(), stopping: stopping})
	}
	n, err := consensus.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	h.closers = append(h.closers, func() error { stopping.Store(true); return n.Stop() })
	return n, nil
}

// Identity returns how other nodes know the node of a validator, which need not
// run. The consensus key is missing if a signer has it.
func (h *Home) Identity() (id consensus.Identity, err error) {
	dir := filepath.Join(h.Dir, chainDir)
	if v := h.Settings.Validator; v != nil && v.Signer != "" {
		id.NodeID, err = consensus.LoadNodeID(dir)
		return id, err
	}
	return consensus.LoadIdentity(dir)
}

// SetGenesis gives a validator's home the genesis of its chain.
func SetGenesis(dir string, text []byte) error {
	return WriteFile(filepath.Join(dir, genesisFile), text, 0o600)
}

// HasGenesis reports whether a validator's home has the genesis of its chain. That of a founder has none at first.
func HasGenesis(dir string) bool { return exists(filepath.Join(dir, genesisFile)) }

// Genesis returns the genesis that a validator's home has.
func Genesis(dir string) ([]byte, error) {
	return bounded.ReadFile(filepath.Join(dir, genesisFile), consensus.MaxGenesis)
}

// Export returns the genesis with which a chain goes on from the state that a validator's node has after a block; 0: its newest.
// An empty chain is that of the home. The node must not run.
func (h *Home) Export(height int64, chain string) (*cmttypes.GenesisDoc, error) {
	if h.Settings.Validator == nil {
		return nil, fmt.Errorf("%s is the home of a %s: only a validator's node has the state", h.Dir, h.Settings.Role)
	}
	return consensus.Export(filepath.Join(h.Dir, chainDir), height, chain)
}

func (h *Home) genesis() (*cmttypes.GenesisDoc, error) {
	path := filepath.Join(h.Dir, genesisFile)
	text, err := Genesis(h.Dir)
	if err != nil {
		return nil, fmt.Errorf("a validator needs the genesis of its chain: %w", err)
	}
	doc, err := cmttypes.GenesisDocFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if doc.ChainID != h.Settings.Chain {
		return nil, fmt.Errorf("%s is of chain %q, but the settings say %q", path, doc.ChainID, h.Settings.Chain)
	}
	return doc, nil
}

// ServeMetrics serves the home's metrics, and those of more registries, where
// the settings say; it returns the address, empty if they say none.
func (h *Home) ServeMetrics(more ...prometheus.Gatherer) (addr string, err error) {
	if h.Settings.Metrics == "" {
		return "", nil
	}
	l, err := net.Listen("tcp", h.Settings.Metrics)
	if err != nil {
		return "", fmt.Errorf("serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(append(prometheus.Gatherers{h.Metrics}, more...), promhttp.HandlerOpts{}))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }()
	h.closers = append(h.closers, func() error {
		if err := s.Close(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return l.Addr().String(), nil
}

// usage reads how full a store is when it is asked.
type usage struct{ *store.Store }

var (
	storeBytes   = prometheus.NewDesc("tally_store_bytes", "Bytes in blobs on the disk.", nil, nil)
	storeQuota   = prometheus.NewDesc("tally_store_quota_bytes", "Limit of tally_store_bytes.", nil, nil)
	storeDamaged = prometheus.NewDesc("tally_store_damaged_blocks_total", "Blocks found damaged and removed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (usage) Describe(c chan<- *prometheus.Desc) {
	c <- storeBytes
	c <- storeQuota
	c <- storeDamaged
}

// Collect implements prometheus.Collector.
func (u usage) Collect(c chan<- prometheus.Metric) {
	now := u.Usage()
	c <- prometheus.MustNewConstMetric(storeBytes, prometheus.GaugeValue, float64(now.Bytes))
	c <- prometheus.MustNewConstMetric(storeQuota, prometheus.GaugeValue, float64(now.Quota))
	c <- prometheus.MustNewConstMetric(storeDamaged, prometheus.CounterValue, float64(now.Damaged))
}
