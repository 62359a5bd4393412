package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"strings"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/spf13/cobra"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/lines"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/light"
	"github.com/tally-network/tally/node/statesync"
)

func (e *env) validator() *cobra.Command {
	v := newValidatorSettings()
	m := &member{e: e, settings: home.Settings{Role: home.Validator, Validator: &v}}
	var genesis string
	interval := home.SnapshotInterval
	v.SnapshotInterval = &interval
	cmd := &cobra.Command{
		Use: "validator", GroupID: "network", Args: cobra.NoArgs,
		Short: "Run a node of the chain that leads and audits",
		Long: `Runs a consensus node and the work of a validator: it offers to lead orders with
the providers registered under it, and audits those that others lead. A home
comes from tally devnet --create, or is made with --genesis and --peers; such a
node follows the chain. It gets a vote in consensus by tally tx seats join, a bond,
and computing power that counts for it: docs/validate.md shows the way.
A node says when it starts what others name it by: ID@HOST:PORT.

A new node reads all blocks of the chain from its peers. With --sync-from it begins at
the newest snapshot of the state that they have, and reads the blocks after it. The
named nodes tell the headers that prove the snapshot, from a block that you trust: less
than 16 hours old, given by --trusted-block or pinned in the home by tally trust pin.`,
		Example: `  tally devnet --create --dir net && tally validator --home net/validator-0
  tally validator --home ~/.tally-validator --genesis genesis.json --peers ID@203.0.113.7:26656
  tally validator --home ~/.tally-validator --genesis genesis.json --peers ID@203.0.113.7:26656 \
    --sync-from http://203.0.113.7:26657,http://198.51.100.9:26657 --trusted-block 120000:3F6A…`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !home.Exists(e.home) && (genesis == "" || len(v.Peers) == 0) {
				return fmt.Errorf("%s: %w: a new one needs --genesis and --peers", e.home, home.ErrNone)
			}
			if err := consensus.CheckPeers(v.Peers); err != nil {
				return fmt.Errorf("--peers: %w", err)
			}
			if err := m.sync.check(); err != nil {
				return err
			}
			if genesis != "" {
				if err := m.take(genesis); err != nil {
					return fmt.Errorf("--genesis: %w", err)
				}
			}
			return m.serve(cmd)
		},
	}
	f := cmd.Flags()
	m.flags(f)
	for _, name := range []string{"endpoints", "rpc", "grpc"} {
		_ = f.MarkHidden(name) // a validator joins by its own node
	}
	f.StringVar(&genesis, "genesis", "", "genesis file of the chain, for a new home")
	f.StringSliceVar(&v.Peers, "peers", nil, "consensus nodes to dial, as id@host:port, or to wait for, as id; of a new home, or in place of those of an old one")
	f.StringVar(&v.Signer, "signer", "", "where a signer that has the consensus key dials the node, as tcp://host:port or unix://path")
	f.StringSliceVar(&v.Origins, "origins", nil, "web origins whose pages may ask RPC and REST, as https://host, or * (default none)")
	f.Var(numbers.Within(&v.FeeBps, 0, wire.MaxFeeBps), "fee-bps", "fee on the providers' pay, in 1/10000")
	f.Var(numbers.Within(&v.MaxLeases, 1, math.MaxUint32), "max-leases", "orders to lead at the same time")
	f.StringVar(&v.OfferEnds, "offer-ends", "", "time from which to take no more orders, as 2026-12-31T18:00:00Z (default never)")
	f.Var(numbers.Within(&v.KeepBlocks, 0, home.MaxBlocks), "keep-blocks", "newest blocks that the node keeps, beside those in which evidence still counts (default all)")
	f.Var(numbers.Within(&v.KeepStates, 0, home.MaxBlocks), "keep-states", "newest states of the chain that the node can be asked for (default 1000)")
	f.Var(numbers.Within(&interval, 0, home.MaxBlocks), "snapshot-interval", "blocks between snapshots of the state, from which new nodes can begin; 0 for none")
	f.StringSliceVar(&m.sync.from, "sync-from", nil, "RPC of two nodes or more, as http://host:port: a node without blocks begins at the newest snapshot of its peers")
	f.StringVar(&m.sync.trusted, "trusted-block", "", "block that is trusted for --sync-from, as HEIGHT:HASH of its header (default the one that the home has pinned)")
	return cmd
}

// newValidatorSettings are those of a validator that says nothing else.
func newValidatorSettings() home.ValidatorSettings {
	return home.ValidatorSettings{FeeBps: 500, MaxLeases: 4, CommitTimeout: 200 * time.Millisecond, EmptyInterval: time.Second}
}

// syncing is by whom a new node begins at a snapshot.
type syncing struct {
	from    []string
	trusted string
}

func (s *syncing) check() error {
	if len(s.from) == 0 && s.trusted != "" {
		return errors.New("--trusted-block is for --sync-from: name nodes there, as http://host:port")
	}
	for _, at := range s.from {
		if u, err := url.Parse(at); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
			return fmt.Errorf("--sync-from: %.80q is not http://host:port", at)
		}
	}
	if _, _, err := statesync.ParseTrustedBlock(s.trusted); s.trusted != "" && err != nil {
		return fmt.Errorf("--trusted-block: %w", err)
	}
	return nil
}

// tell tells people what the node waits for, also in words of strangers.
func (m *member) tell(format string, args ...any) {
	fmt.Fprintln(m.e.progress(), lines.Printable(fmt.Sprintf(format, args...)))
}

// begin returns by whom the home's node begins at a snapshot, if it is to.
func (m *member) begin(h *home.Home) *statesync.Source {
	if len(m.sync.from) == 0 {
		return nil
	}
	return &statesync.Source{
		Servers: m.sync.from,
		Tell:    m.tell,
		Trusted: func() (int64, []byte, error) {
			if m.sync.trusted != "" {
				return statesync.ParseTrustedBlock(m.sync.trusted)
			}
			t, err := light.Pinned(h.Dir, h.Settings.Chain)
			if err == nil {
				err = t.CheckAge(time.Now())
			} else if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("no block of %s is pinned in the home", h.Settings.Chain)
			}
			if err != nil {
				return 0, nil, fmt.Errorf("%w: name a block that you trust by --trusted-block HEIGHT:HASH, as somebody whom you believe reads them from their node, at /commit of its RPC; or pin theirs by tally trust pin --file BLOCK.json --home %s", err, h.Dir)
			}
			return t.Height, t.Header[:], nil
		},
	}
}

// take makes a new validator's home with the genesis of its chain. A home that has one
// keeps its own.
func (m *member) take(genesis string) error {
	text, err := bounded.ReadFile(genesis, consensus.MaxGenesis)
	if err != nil {
		return err
	}
	doc, err := cmttypes.GenesisDocFromJSON(text)
	if err != nil {
		return err
	}
	if home.HasGenesis(m.e.home) {
		if own, err := home.Genesis(m.e.home); err != nil || !bytes.Equal(own, text) {
			return errors.Join(fmt.Errorf("%s has another genesis already, and keeps it: name another --home", m.e.home), err)
		}
		return nil
	}
	if home.Exists(m.e.home) { // a founder's
		s, err := home.LoadSettings(m.e.home)
		if err != nil || s.Chain != doc.ChainID {
			return errors.Join(fmt.Errorf("it is of chain %q, and the home %s of %q", doc.ChainID, m.e.home, s.Chain), err)
		}
	}
	m.settings.Chain = doc.ChainID
	if err := os.MkdirAll(m.e.home, 0o700); err != nil {
		return err
	}
	return home.SetGenesis(m.e.home, text)
}
