package home

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/probe"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/states"
)

// Role says what a home is for.
type Role string

// The roles.
const (
	Consumer   Role = "consumer"
	Provider   Role = "provider"
	Validator  Role = "validator"
	Challenger Role = "challenger"
)

// Roles returns all roles of a home, the one that it is for first.
func (s *Settings) Roles() []Role { return append([]Role{s.Role}, s.Also...) }

// Is reports whether a home has a role.
func (s *Settings) Is(r Role) bool { return slices.Contains(s.Roles(), r) }

// SetAlso changes the further roles of a home. A new provider has the prices of one that names none.
func (s *Settings) SetAlso(also []Role) {
	if s.Also = also; !s.Is(Provider) {
		s.Provider = nil
	}
	s.price()
}

// price gives a provider that names no prices the usual ones.
func (s *Settings) price() {
	if s.Is(Provider) && s.Provider == nil {
		s.Provider = &ProviderSettings{UnitPrice: UnitPrice, BytePrice: BytePrice}
	}
}

// Settings are what its owner decides about a role. The tags doc are the
// comments in the file.
type Settings struct {
	Role  Role   `yaml:"role" doc:"What this home is for: consumer, provider, validator or challenger."`
	Also  []Role `yaml:"also,omitempty" doc:"Further roles of its account, behind the same stake: provider, challenger."`
	Name  string `yaml:"name" doc:"What logs and pictures call this role."`
	Chain string `yaml:"chain" doc:"Id of the chain."`
	Node  Node   `yaml:"node" doc:"The node through which this role sees the chain. A validator uses its own."`

	Listen      []string      `yaml:"listen" doc:"Where this peer listens, as libp2p multiaddrs."`
	Announce    []string      `yaml:"announce" doc:"Where others reach it, registered on the chain; empty if that is where it listens."`
	Metrics     string        `yaml:"metrics" doc:"host:port of the Prometheus metrics, port 0 for any; empty for none."`
	Threads     int           `yaml:"threads" doc:"Threads that compute; 0 for one per processor."`
	StoreGB     int64         `yaml:"store_gb" doc:"Space for blobs on the disk, in GB."`
	Checkpoints states.Policy `yaml:"checkpoints" doc:"What stays here of the checkpoints of accepted units: keep (all), thin (every fourth) or derive (the last). What is gone is fetched or computed again when it is needed; validators keep all, for others may ask them."`
	KeepEnded   time.Duration `yaml:"keep_ended,omitempty" doc:"For how long the files and checkpoints of an order stay here after its end, as 15m; 0 for that. A consumer keeps its results in any case."`
	MemoryGB    int64         `yaml:"memory_gb" doc:"Memory that one program may take, in GB; 0 for 4. Orders that need more are declined."`
	Stake       uint64        `yaml:"stake" doc:"Bonded when the role registers, in utally (1 tally is 1000000 utally)."`
	GasPrice    uint64        `yaml:"gas_price" doc:"What its transactions pay, in utally per million gas; at least what the chain asks for. If a node names a price above 10000 and above gas_price, nothing is sent."`

	Provider  *ProviderSettings  `yaml:"provider,omitempty" doc:"What a provider sells."`
	Validator *ValidatorSettings `yaml:"validator,omitempty" doc:"What a validator runs and offers."`
}

// Addrs returns where others reach the peer.
func (s *Settings) Addrs() []string {
	if len(s.Announce) == 0 {
		return s.Listen
	}
	return s.Announce
}

// Node says where a node of the chain answers.
type Node struct {
	RPC  string `yaml:"rpc" doc:"CometBFT RPC, as http://host:port."`
	GRPC string `yaml:"grpc" doc:"gRPC, as host:port."`
}

// ProviderSettings are a provider's.
type ProviderSettings struct {
	UnitPrice uint64        `yaml:"unit_price" doc:"Price of computation, in utally per GFLOP."`
	BytePrice uint64        `yaml:"byte_price" doc:"Price of data moved, in utally per GB."`
	Region    string        `yaml:"region,omitempty" doc:"Country in which it computes, in two letters (ISO 3166-1), as DE. It is told to everybody, and proved by nobody, as tags and privacy are."`
	Tags      []string      `yaml:"tags,omitempty" doc:"Rules that it keeps, as gdpr: small letters, digits and dashes."`
	Privacy   string        `yaml:"privacy,omitempty" doc:"What it promises of files: public (nothing), discreet (to show them to nobody, and to delete them after the order) or enclosed (and to compute where its operator cannot read memory)."`
	Sell      []string      `yaml:"sell,omitempty" doc:"Capacity on sale at auctions, as C:5000@800: tier, GFLOP, and the least price of one in utally. It is on sale again once what was sold of it is computed."`
	Probe     time.Duration `yaml:"probe,omitempty" doc:"Have the chain measure how fast this machine is, each month, for at least so long, as 1m; 0 for never. Tiers above the lowest, and what may be sold in them, follow from that. It costs some fees and wages, and locks what it costs at the prices above until it is settled."`
	Validator string        `yaml:"validator" doc:"Address of the validator to work under; empty for the one that is advised to who begins (tally cluster), by link, fee and number of providers."`
}

// ValidatorSettings are a validator's.
type ValidatorSettings struct {
	FeeBps           uint32        `yaml:"fee_bps" doc:"Fee on the providers' pay, in 1/10000."`
	MaxLeases        uint32        `yaml:"max_leases" doc:"Orders that it leads at the same time."`
	OfferEnds        string        `yaml:"offer_ends,omitempty" doc:"Time from which it takes no more orders, as 2026-12-31T18:00:00Z; empty for no end."`
	P2P              string        `yaml:"p2p" doc:"host:port at which other consensus nodes reach this one."`
	RPC              string        `yaml:"rpc" doc:"host:port of CometBFT RPC."`
	GRPC             string        `yaml:"grpc" doc:"host:port of gRPC."`
	REST             string        `yaml:"rest" doc:"host:port of REST."`
	Peers            []string      `yaml:"peers" doc:"Consensus nodes that are let in however many strangers there are: to dial, as id@host:port, or to wait for, as id alone. Of two nodes one dials the other, and both should name each other."`
	Signer           string        `yaml:"signer,omitempty" doc:"Where a signer that has the consensus key dials the node, as tcp://host:port or unix://path; empty if the key lies in this home."`
	Origins          []string      `yaml:"origins" doc:"Web origins whose pages may ask RPC and REST, as https://host; * for all, empty for none."`
	CommitTimeout    time.Duration `yaml:"commit_timeout" doc:"Pause after a block. The same for all validators."`
	EmptyInterval    time.Duration `yaml:"empty_interval" doc:"Longest time without a block. The same for all validators."`
	KeepBlocks       uint64        `yaml:"keep_blocks,omitempty" doc:"Newest blocks that its node keeps, and those in which evidence still counts; 0 for all."`
	KeepStates       uint64        `yaml:"keep_states,omitempty" doc:"Newest states of the chain that its node can be asked for; 0 for 1000."`
	SnapshotInterval *uint64       `yaml:"snapshot_interval,omitempty" doc:"Blocks between snapshots of the state, at which new nodes can begin; 0 for none. The last two are kept, with the blocks after them."`
}

// The prices of a provider that names none: in utally per GFLOP, and per GB.
const (
	UnitPrice = 1_000
	BytePrice = 100
)

// MemoryGB is what one program may take of a role whose settings do not say, in GB.
const MemoryGB = 4

// SnapshotInterval is how many blocks lie between snapshots of a node whose settings do not say.
const SnapshotInterval uint64 = 1000

// Limits on settings.
const (
	MaxThreads  = 1024
	MaxStoreGB  = 1 << 20
	MaxMemoryGB = 1 << 14
	MaxEnded    = 365 * 24 * time.Hour // for which ended orders are kept
	MaxBlocks   = 1 << 40              // that a node keeps, and states
	LeastProbe  = probe.LeastMs * time.Millisecond
	MostProbe   = 10 * LeastProbe
)

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// complete fills in what new settings leave empty. Addresses become free ports
// of this machine, which the home keeps.
func (s *Settings) complete(dir string) (err error) {
	var ports consensus.Ports
	defer func() { err = errors.Join(err, ports.Close()) }()
	if s.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		if s.Name = filepath.Base(abs); !namePattern.MatchString(s.Name) {
			s.Name = string(s.Role)
		}
	}
	if s.StoreGB == 0 {
		s.StoreGB = 10
	}
	s.Checkpoints = cmp.Or(s.Checkpoints, states.KeepAll)
	if len(s.Listen) == 0 {
		addr, err := ports.Take("")
		if err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(addr)
		s.Listen = []string{"/ip4/127.0.0.1/tcp/" + port}
	}
	s.price()
	if s.Role == Validator {
		if s.Validator == nil {
			s.Validator = &ValidatorSettings{MaxLeases: 1}
		}
		v := s.Validator
		for _, a := range []*string{&v.P2P, &v.RPC, &v.GRPC, &v.REST} {
			if *a != "" {
				continue
			}
			if *a, err = ports.Take(""); err != nil {
				return err
			}
		}
		s.Node = Node{"http://" + v.RPC, v.GRPC}
	}
	return s.Check()
}

// Check returns an error that names every setting that cannot be.
func (s *Settings) Check() error {
	var f faults
	s.checkNames(&f)
	s.checkAddresses(&f)
	s.checkLimits(&f)
	switch {
	case (s.Provider != nil) != s.Is(Provider):
		f.add("provider", "a provider has these settings, and nobody else")
	case s.Provider != nil:
		s.Provider.check(&f)
	}
	switch {
	case (s.Validator != nil) != (s.Role == Validator):
		f.add("validator", "a validator has these settings, and nobody else")
	case s.Validator != nil:
		s.Validator.check(&f)
	}
	return errors.Join(f...)
}

// faults are what is wrong with settings, each with its key.
type faults []error

func (f *faults) add(key, format string, a ...any) {
	*f = append(*f, fmt.Errorf("%s: "+format, append([]any{key}, a...)...))
}

func (f *faults) hostPort(key, text string) {
	if _, _, err := net.SplitHostPort(text); err != nil {
		f.add(key, "%q is not host:port", text)
	}
}

func (f *faults) between(key string, n, lo, hi int64) {
	if n < lo || n > hi {
		f.add(key, "%d is not between %d and %d", n, lo, hi)
	}
}

func (s *Settings) checkNames(f *faults) {
	if !slices.Contains([]Role{Consumer, Provider, Validator, Challenger}, s.Role) {
		f.add("role", "%q is none of consumer, provider, validator, challenger", s.Role)
	}
	for i, r := range s.Also {
		if s.Role == Consumer || r != Provider && r != Challenger || slices.Contains(s.Roles()[:1+i], r) {
			f.add("also", "%q: a peer may be a provider or a challenger too, each once, and a consumer is nothing else", r)
		}
	}
	if !namePattern.MatchString(s.Name) {
		f.add("name", "%.80q must be 1 to 64 letters, digits, dots or dashes", s.Name)
	}
	if s.Chain == "" || len(s.Chain) > 50 {
		f.add("chain", "give the chain's id, at most 50 characters")
	}
}

func (s *Settings) checkAddresses(f *faults) {
	if u, err := url.Parse(s.Node.RPC); err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		f.add("node.rpc", "%q is not http://host:port", s.Node.RPC)
	}
	f.hostPort("node.grpc", s.Node.GRPC)
	if len(s.Listen) == 0 || len(s.Listen) > wire.MaxAddrs || len(s.Announce) > wire.MaxAddrs {
		f.add("listen", "give 1 to %d multiaddrs", wire.MaxAddrs)
	}
	for _, x := range []struct {
		key  string
		said []string
	}{{"listen", s.Listen}, {"announce", s.Announce}} {
		for _, text := range x.said {
			a, err := ma.NewMultiaddr(text)
			if err != nil {
				f.add(x.key, "%.80q is no multiaddr such as /ip4/203.0.113.7/tcp/4001: %v", text, err)
			} else if manet.IsIPUnspecified(a) && len(s.Announce) == 0 {
				f.add("announce", "%s stands for all of this machine's addresses: say at which of them others reach it, as /ip4/203.0.113.7/tcp/4001", text)
			}
		}
	}
	if s.Metrics != "" {
		f.hostPort("metrics", s.Metrics)
	}
}

func (s *Settings) checkLimits(f *faults) {
	f.between("threads", int64(s.Threads), 0, MaxThreads)
	f.between("store_gb", s.StoreGB, 1, MaxStoreGB)
	if s.KeepEnded < 0 || s.KeepEnded > MaxEnded {
		f.add("keep_ended", "%s is not between 0 and %s", s.KeepEnded, MaxEnded)
	}
	f.between("memory_gb", s.MemoryGB, 0, MaxMemoryGB)
	if p := s.Provider; p != nil && p.Probe != 0 && (p.Probe < LeastProbe || p.Probe > MostProbe) {
		f.add("provider.probe", "%s is not between %s and %s, or 0 for never", p.Probe, LeastProbe, MostProbe)
	}
	if !slices.Contains(states.Policies, cmp.Or(s.Checkpoints, states.KeepAll)) {
		f.add("checkpoints", "%.80q is none of %v", s.Checkpoints, states.Policies)
	} else if s.Role == Validator && cmp.Or(s.Checkpoints, states.KeepAll) != states.KeepAll {
		f.add("checkpoints", "a validator keeps all, for it may be drawn as a custodian")
	}
}

func (p *ProviderSettings) check(f *faults) {
	if p.UnitPrice > wire.MaxPrice || p.BytePrice > wire.MaxPrice {
		f.add("provider", "a price is at most %d", uint64(wire.MaxPrice))
	}
	if _, err := p.Declared(0); err != nil {
		f.add("provider", "%v", err)
	}
	if _, err := p.Lots(); err != nil {
		f.add("provider.sell", "%v", err)
	}
	if _, err := address.Parse(p.Validator); p.Validator != "" && err != nil {
		f.add("provider.validator", "%v", err)
	}
}

// Ends returns the protocol time in ms at which its offer ends; 0 if it does not.
func (v *ValidatorSettings) Ends() (int64, error) {
	if v.OfferEnds == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, v.OfferEnds)
	if err != nil || at.UnixMilli() <= 0 {
		return 0, fmt.Errorf("%q is no time: write it as 2026-12-31T18:00:00Z", v.OfferEnds)
	}
	return at.UnixMilli(), nil
}

// Lots returns what is on sale at auctions.
func (p *ProviderSettings) Lots() ([]auctionv1.Lot, error) {
	if p == nil {
		return nil, nil
	}
	lots, err := wire.ParseLots(p.Sell)
	for _, l := range lots {
		if l.Ask == 0 {
			return nil, fmt.Errorf("%s names no price: give the least; where bids are sealed it stays secret until all are revealed", wire.LotText(l))
		}
	}
	return lots, err
}

// Declared returns what a provider says of itself, for programs that may take so many GB.
func (p *ProviderSettings) Declared(memoryGB int64) (match.Declared, error) {
	d := match.Declared{Region: p.Region, Tags: slices.Compact(slices.Sorted(slices.Values(p.Tags))), Memory: uint64(cmp.Or(memoryGB, MemoryGB)) * gigabyte}
	var err error
	if p.Privacy != "" {
		d.Privacy, err = match.ParsePrivacy(p.Privacy)
	}
	return d, cmp.Or(err, d.Check())
}

func (v *ValidatorSettings) check(f *faults) {
	if v.Signer != "" {
		if err := consensus.CheckSigner(v.Signer); err != nil {
			f.add("validator.signer", "%v", err)
		}
	}
	if v.FeeBps > wire.MaxFeeBps {
		f.add("validator.fee_bps", "%d is above %d", v.FeeBps, wire.MaxFeeBps)
	}
	if v.MaxLeases == 0 {
		f.add("validator.max_leases", "give at least 1")
	}
	if _, err := v.Ends(); err != nil {
		f.add("validator.offer_ends", "%v", err)
	}
	f.hostPort("validator.p2p", v.P2P)
	f.hostPort("validator.rpc", v.RPC)
	f.hostPort("validator.grpc", v.GRPC)
	f.hostPort("validator.rest", v.REST)
	if v.KeepBlocks > MaxBlocks || v.KeepStates > MaxBlocks {
		f.add("validator", "keep_blocks and keep_states are at most %d", MaxBlocks)
	}
	if v.SnapshotInterval != nil && *v.SnapshotInterval > MaxBlocks {
		f.add("validator.snapshot_interval", "%d is above %d", *v.SnapshotInterval, MaxBlocks)
	}
	if v.KeepStates == 1 {
		f.add("validator", "keep_states is 1, and a node needs 2 at least: write 2, or 0 for the default")
	}
	if v.CommitTimeout < 0 || v.EmptyInterval < 0 {
		f.add("validator", "a time is negative")
	}
}
