package devnet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	cmtjson "github.com/cometbft/cometbft/libs/json"

	"github.com/tally-network/tally/chain/app"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/home"
)

const (
	configFile  = "devnet.json"
	genesisFile = "genesis.json"
	// change is what every peer has beside its stake, in utally.
	change = 100 * tally
	// epoch is how long rewards are counted before they are paid, in ms.
	epoch = 10_000
)

// Create makes the homes of a network and its genesis, without starting
// anything. What is there already stays.
func Create(c Config) error {
	n, err := open(c)
	if err != nil {
		return err
	}
	return n.close()
}

// open locks the directory and opens all homes, after making what is missing.
func open(c Config) (n *Network, err error) {
	n = &Network{config: c}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("devnet in %s: %w", c.Dir, err), n.close())
		}
	}()
	if c.Dir == "" {
		return n, errors.New("name a directory")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return n, err
	}
	if n.lock, err = home.Acquire(c.Dir); err != nil {
		return n, err
	}
	if err := n.config.settle(); err != nil {
		return n, err
	}
	if err := n.openHomes(); err != nil {
		return n, err
	}
	if err := n.wire(); err != nil {
		return n, err
	}
	if err := n.genesis(); err != nil {
		return n, err
	}
	if n.config.LeaveConsumer {
		n.members = slices.DeleteFunc(n.members, func(m *Member) bool { return m == n.Consumer })
		return n, n.Consumer.Home.Close()
	}
	return n, nil
}

func (n *Network) openHomes() error {
	c := &n.config
	common := home.Settings{Chain: c.Chain, Threads: c.Threads}
	if c.Metrics {
		common.Metrics = "127.0.0.1:0"
	}
	for i := range c.Validators {
		s := common
		s.Role, s.Stake = home.Validator, c.Stake
		s.Validator = &home.ValidatorSettings{
			FeeBps: c.FeeBps, MaxLeases: c.MaxLeases, CommitTimeout: c.CommitTimeout, EmptyInterval: c.EmptyInterval,
		}
		if err := n.openHome(&n.Validators, s, i); err != nil {
			return err
		}
	}
	common.Stake = c.Bond
	for i := range c.Providers {
		s := common
		s.Role, s.Node = home.Provider, n.node(i)
		s.Provider = &home.ProviderSettings{
			UnitPrice: c.UnitPrices[i%len(c.UnitPrices)], BytePrice: c.BytePrice,
			Validator: n.Validators[i%c.Spread].Home.Address,
		}
		if err := n.openHome(&n.Providers, s, i); err != nil {
			return err
		}
	}
	for i := range c.Challengers {
		s := common
		s.Role, s.Node = home.Challenger, n.node(i)
		if err := n.openHome(&n.Challengers, s, i); err != nil {
			return err
		}
	}
	s := common
	s.Role, s.Name, s.Node, s.Stake = home.Consumer, string(home.Consumer), n.node(0), 0
	var consumer []*Member
	err := n.openHome(&consumer, s, 0)
	if err == nil {
		n.Consumer = consumer[0]
	}
	return err
}

func (n *Network) openHome(to *[]*Member, s home.Settings, i int) error {
	s.Name = cmp.Or(s.Name, fmt.Sprintf("%s-%d", s.Role, i))
	dir := filepath.Join(n.config.Dir, s.Name)
	if _, err := home.Create(dir, s); err != nil {
		return err
	}
	h, err := home.Open(dir)
	if busy := (*home.BusyError)(nil); errors.As(err, &busy) && s.Role == home.Consumer && n.config.LeaveConsumer {
		h, err = home.Peek(dir) // it may wait there for this network
	}
	if err != nil {
		return err
	}
	m := &Member{Home: h}
	*to = append(*to, m)
	n.members = append(n.members, m)
	return nil
}

// node is the one through which role i sees the chain: each has one of its own,
// while there are enough.
func (n *Network) node(i int) home.Node {
	return n.Validators[i%len(n.Validators)].Home.Settings.Node
}

// wire gives every home ports that are free now, and tells the others. They
// stay the same unless another has taken one.
func (n *Network) wire() (err error) {
	var ports consensus.Ports
	defer func() { err = errors.Join(err, ports.Close()) }()
	var peers []string
	for i, m := range n.Validators {
		v := m.Home.Settings.Validator
		for _, addr := range []*string{&v.P2P, &v.RPC, &v.GRPC, &v.REST} {
			if *addr, err = ports.Take(*addr); err != nil {
				return err
			}
		}
		m.Home.Settings.Node = home.Node{RPC: "http://" + v.RPC, GRPC: v.GRPC}
		id, err := m.Home.Identity()
		if err != nil {
			return err
		}
		v.Peers = nil
		for j, earlier := range n.Validators[:i] {
			if linked(i - j) {
				v.Peers = append(v.Peers, peers[j])
				p := &earlier.Home.Settings.Validator.Peers
				*p = append(*p, id.NodeID)
			}
		}
		peers = append(peers, id.NodeID+"@"+v.P2P)
	}
	for i, m := range slices.Concat(n.Providers, n.Challengers, []*Member{n.Consumer}) {
		at := n.node(i)
		if !m.Home.Held() && m.Home.Settings.Node != at {
			return fmt.Errorf("the process that uses %s asks %s, where another program listens now: stop that process first", m.Home.Dir, m.Home.Settings.Node.RPC)
		}
		m.Home.Settings.Node = at
	}
	for _, m := range n.members {
		if !m.Home.Held() {
			continue
		}
		if err := listen(&ports, m.Home); err != nil {
			return err
		}
	}
	return nil
}

// linked reports whether validators so far apart in the order of their names are connected. Up to five all are. Of
// more, each has its neighbours and those two, four, eight … further, for every link costs both ends: 20 at rest
// take 40 % of a core, and 65 % if all are connected.
func linked(apart int) bool { return apart <= 3 || apart&(apart-1) == 0 }

// genesis writes the genesis of the chain once, and gives it to the validators.
func (n *Network) genesis() error {
	file := filepath.Join(n.config.Dir, genesisFile)
	text, err := bounded.ReadFile(file, consensus.MaxGenesis)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = n.describe(); err == nil {
			err = home.WriteFile(file, text, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	for _, m := range n.Validators {
		if err := home.SetGenesis(m.Home.Dir, text); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) describe() ([]byte, error) {
	c := &n.config
	g := app.Genesis{
		ChainID: c.Chain, Time: time.Now(), Params: c.Registry, Work: c.Work, Dispute: c.Dispute,
		Policy: c.Policy, Auction: c.Auction, Epoch: c.Consensus.EpochBlocks, Seats: app.Seats{Params: c.Consensus.Seats},
		Reserve: c.Reserve, Rewards: app.Rewards{EpochMs: epoch},
		Accounts: []app.Account{{Address: n.Consumer.Home.Address, Balance: c.Funds}},
	}
	for _, m := range n.Validators {
		id, err := m.Home.Identity()
		if err != nil {
			return nil, err
		}
		h := m.Home
		g.Accounts = append(g.Accounts, app.Account{Address: h.Address, Balance: change})
		g.Validators = append(g.Validators, app.Validator{Account: h.Address, ConsensusKey: id.ConsensusKey, Votes: int64(max(c.Consensus.Seats.Seats/uint64(c.Validators), 1)), Bond: c.Consensus.Bond})
		g.Keys = append(g.Keys, beaconv1.Key{Account: h.Address, Key: h.VRFKey()})
		g.Peers = append(g.Peers, providerv1.Peer{
			Account: h.Address, Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: h.PeerKey(), VrfKey: h.VRFKey(),
			Listing: providerv1.Listing{Addrs: h.Settings.Listen}, Stake: c.Stake,
		})
	}
	// What providers compute counts for the validator under which they work.
	for _, m := range n.Providers {
		g.Seats.Delegations = append(g.Seats.Delegations, seatsv1.Delegation{Account: m.Home.Address, Member: m.Home.Settings.Provider.Validator})
	}
	// They register by themselves, as anybody would.
	for _, m := range slices.Concat(n.Providers, n.Challengers) {
		g.Accounts = append(g.Accounts, app.Account{Address: m.Home.Address, Balance: c.Bond + change})
	}
	doc, err := g.Doc()
	if err != nil {
		return nil, err
	}
	return cmtjson.MarshalIndent(doc, "", "  ")
}
