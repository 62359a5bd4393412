package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/lines"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
	"github.com/tally-network/tally/node/seat"
)

// member is a verb that runs one role from its home.
type member struct {
	e        *env
	settings home.Settings // of a new home, and what flags change in an old one

	endpoints string
	also      []string
	stake     money
	changed   bool                                   // flags say something else than tally.yaml
	only      func(context.Context, *role.Env) error // done in place of what the home's roles do; nil: those
	sync      syncing
}

// peer adds the flags of everybody who is a peer on the network.
func (m *member) peer(f *pflag.FlagSet) {
	f.StringVar(&m.endpoints, "endpoints", "", "endpoints.json of a devnet to join")
	nodeFlags(f, &m.settings.Node, "join by")
	f.StringSliceVar(&m.settings.Listen, "listen", nil, "multiaddrs to listen at, as /ip4/0.0.0.0/tcp/4001 (default a free port of 127.0.0.1)")
	f.StringSliceVar(&m.settings.Announce, "announce", nil, "multiaddrs at which others reach this machine, as /ip4/203.0.113.7/tcp/4001")
	f.Var(numbers.Within(&m.settings.Threads, 0, home.MaxThreads), "threads", "threads that compute (default one per processor)")
	f.Var(numbers.Within(&m.settings.MemoryGB, 0, home.MaxMemoryGB), "memory-gb", "memory that one program may take, in GB (default 4)")
	f.Var(numbers.Within(&m.settings.StoreGB, 0, home.MaxStoreGB), "store-gb", "disk space for blobs in GB (default 10)")
}

// flags adds those of a registered role.
func (m *member) flags(f *pflag.FlagSet) {
	m.peer(f)
	f.StringVar(&m.settings.Metrics, "metrics", "", "host:port of Prometheus metrics")
	f.StringVar((*string)(&m.settings.Checkpoints), "checkpoints", "", "what stays here of the checkpoints of accepted units: keep (all), thin (every fourth) or derive (the last)")
	f.Var(numbers.Within(&m.settings.KeepEnded, 0, home.MaxEnded), "keep-ended", "for how long files and checkpoints of an order stay here after its end (default 15m)")
	f.StringSliceVar(&m.also, "also", nil, "further roles of the same account and stake: provider, challenger; --also= for none (default as the home says)")
	f.Var(&m.stake, "stake", "money to bond when registering (default the least that the chain takes)")
	f.Lookup("stake").DefValue = ""
}

// open opens the home, after making it if it is missing, with the flags that
// were given; keep writes those down. It tells the recovery phrase of a new account on
// a terminal only.
func (m *member) open(cmd *cobra.Command) (*home.Home, error) {
	dir, s := m.e.home, m.settings
	s.Stake, s.Also = uint64(m.stake), m.further()
	if !home.Exists(dir) {
		if err := m.join(cmd.Context(), &s); err != nil {
			return nil, err
		}
		phrase, err := home.Create(dir, s)
		if err != nil {
			return nil, err
		}
		if phrase != "" && terminal(m.e.err) {
			fmt.Fprintf(m.e.err, "A new account. Write down its recovery phrase; it is shown only now:\n\n  %s\n\n", phrase)
		}
	}
	h, err := home.Open(dir)
	if err != nil {
		return nil, err
	}
	if h.Settings.Role != s.Role {
		err := fmt.Errorf("%s is the home of a %s, not of a %s: name another --home", dir, h.Settings.Role, s.Role)
		if h.Settings.Role != home.Consumer {
			err = fmt.Errorf("%w, or run it as a %s with --also %s", err, h.Settings.Role, s.Role)
		}
		return nil, errors.Join(err, h.Close())
	}
	if err := m.change(cmd.Flags(), &h.Settings); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// join finds out which chain the node is of.
func (m *member) join(ctx context.Context, s *home.Settings) error {
	if m.endpoints != "" {
		var err error
		s.Chain, s.Node, err = nodeOf(m.endpoints)
		return err
	}
	if s.Chain != "" {
		return nil
	}
	if s.Node.RPC == "" || s.Node.GRPC == "" {
		return fmt.Errorf("%s is no home yet, and there is no node to join by", m.e.home)
	}
	rpc, err := client.NewRPC(s.Node.RPC)
	if err != nil {
		return fmt.Errorf("--rpc %s: %w", s.Node.RPC, err)
	}
	status, err := rpc.Status(ctx)
	if err != nil {
		return fmt.Errorf("ask %s for its chain: %w", s.Node.RPC, err)
	}
	s.Chain = status.NodeInfo.Network
	return nil
}

// nodeOf returns the chain and a node of a running devnet.
func nodeOf(endpoints string) (chain string, at home.Node, err error) {
	e, err := devnet.ReadEndpoints(endpoints)
	if err != nil {
		return "", at, fmt.Errorf("read --endpoints (does the devnet run?): %w", err)
	}
	return e.Chain, home.Node{RPC: e.Nodes[0].RPC, GRPC: e.Nodes[0].GRPC}, nil
}

// change lets flags that were given override the settings of the home.
func (m *member) change(f *pflag.FlagSet, now *home.Settings) error {
	if m.endpoints != "" {
		chain, at, err := nodeOf(m.endpoints)
		if err == nil && chain != now.Chain {
			err = fmt.Errorf("--endpoints is of chain %q, and %s of %q: name another --home", chain, m.e.home, now.Chain)
		}
		if err != nil {
			return err
		}
		m.changed, now.Node = m.changed || now.Node != at, at
	}
	for name, set := range m.changes(now) {
		if f.Changed(name) {
			set()
			m.changed = true
		}
	}
	return now.Check()
}

// changes are what flags change in settings, by name.
func (m *member) changes(now *home.Settings) map[string]func() {
	s := &m.settings
	return map[string]func(){
		"rpc":               func() { now.Node.RPC = s.Node.RPC },
		"grpc":              func() { now.Node.GRPC = s.Node.GRPC },
		"listen":            func() { now.Listen = s.Listen },
		"announce":          func() { now.Announce = s.Announce },
		"metrics":           func() { now.Metrics = s.Metrics },
		"threads":           func() { now.Threads = s.Threads },
		"store-gb":          func() { now.StoreGB = s.StoreGB },
		"checkpoints":       func() { now.Checkpoints = s.Checkpoints },
		"keep-ended":        func() { now.KeepEnded = s.KeepEnded },
		"stake":             func() { now.Stake = uint64(m.stake) },
		"also":              func() { now.SetAlso(m.further()) },
		"memory-gb":         func() { now.MemoryGB = s.MemoryGB },
		"region":            func() { now.Provider.Region = s.Provider.Region },
		"tag":               func() { now.Provider.Tags = s.Provider.Tags },
		"privacy":           func() { now.Provider.Privacy = s.Provider.Privacy },
		"price":             func() { now.Provider.UnitPrice = s.Provider.UnitPrice },
		"byte-price":        func() { now.Provider.BytePrice = s.Provider.BytePrice },
		"sell":              func() { now.Provider.Sell = s.Provider.Sell },
		"probe":             func() { now.Provider.Probe = s.Provider.Probe },
		"validator":         func() { now.Provider.Validator = s.Provider.Validator },
		"keep-blocks":       func() { now.Validator.KeepBlocks = s.Validator.KeepBlocks },
		"keep-states":       func() { now.Validator.KeepStates = s.Validator.KeepStates },
		"snapshot-interval": func() { now.Validator.SnapshotInterval = s.Validator.SnapshotInterval },
		"fee-bps":           func() { now.Validator.FeeBps = s.Validator.FeeBps },
		"peers":             func() { now.Validator.Peers = s.Validator.Peers },
		"signer":            func() { now.Validator.Signer = s.Validator.Signer },
		"origins":           func() { now.Validator.Origins = s.Validator.Origins },
		"offer-ends":        func() { now.Validator.OfferEnds = s.Validator.OfferEnds },
		"max-leases":        func() { now.Validator.MaxLeases = s.Validator.MaxLeases },
	}
}

// further returns the roles that --also names.
func (m *member) further() (out []home.Role) {
	for _, r := range m.also {
		out = append(out, home.Role(r))
	}
	return out
}

// keep writes flags that were given into tally.yaml, once they have worked.
func (m *member) keep(h *home.Home) error {
	if !m.changed {
		return nil
	}
	return h.Settings.Save(h.Dir)
}

// connect opens what the role works with, and says so if that has to wait for the network.
func (m *member) connect(ctx context.Context, h *home.Home, o home.Options) (*role.Env, error) {
	defer m.waiting(h.Settings.Node)()
	return h.Env(ctx, o)
}

// waiting says that the network is waited for, unless it is stopped before.
func (m *member) waiting(at home.Node) (stop func() bool) {
	return time.AfterFunc(quiet, func() {
		fmt.Fprintf(m.e.err, "waiting for the network at %s\n", at.RPC)
	}).Stop
}

// quiet is how long the network may be away before somebody who waits is told.
const quiet = 3 * time.Second

// standing is what a role tells once it works.
type standing struct {
	Name    string   `json:"name"`
	Role    string   `json:"role"`
	Chain   string   `json:"chain"`
	Address string   `json:"address"`
	Home    string   `json:"home"`
	Peer    []string `json:"peer"`
	Stake   uint64   `json:"stake_utally"`
	Least   uint64   `json:"least_stake_utally"`     // below which it gets no new work
	Jailed  string   `json:"jailed_until,omitempty"` // it gets no new work before; "forever" if it is excluded
	RPC     string   `json:"rpc,omitempty"`
	GRPC    string   `json:"grpc,omitempty"`
	REST    string   `json:"rest,omitempty"`
	P2P     string   `json:"p2p,omitempty"` // by which other nodes name it in --peers
	Metrics string   `json:"metrics,omitempty"`
	Warning string   `json:"warning,omitempty"` // of a consensus key that is not the chain's

	consensusKey []byte // of the own node
}

// untilFailed returns a context that also ends with the first failure, and what then makes that the error.
func untilFailed(ctx context.Context, failed <-chan error) (context.Context, func(error) error) {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-failed:
			stop(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func(err error) error {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		stop(nil)
		return err
	}
}

// run runs the home's role until ctx is done.
func (m *member) run(ctx context.Context, h *home.Home) (err error) {
	defer func() { err = errors.Join(err, h.Close()) }()
	log, err := m.e.logger(m.e.err)
	if err != nil {
		return err
	}
	now := standing{
		Name: h.Settings.Name, Role: rolesOf(&h.Settings), Chain: h.Settings.Chain, Address: h.Address, Home: h.Dir,
	}
	var more []prometheus.Gatherer
	end := func(err error) error { return err }
	defer func() { err = end(err) }()
	if h.Settings.Role == home.Validator {
		h.StateSync, h.Tell = m.begin(h), m.tell
		if h.Settings.Validator.Signer != "" { // a start that forgot it would vote with a key of the home
			if err := m.keep(h); err != nil {
				return err
			}
		}
		n, err := h.StartNode(ctx, log)
		if err != nil {
			return err
		}
		ctx, end = untilFailed(ctx, n.Failed())
		if now.consensusKey, err = n.ConsensusKey(); err != nil {
			return err
		}
		at := n.Addrs()
		now.RPC, now.GRPC, now.REST, now.P2P = "http://"+at.RPC, at.GRPC, "http://"+at.REST, at.P2P
		more = append(more, n.Metrics())
		fmt.Fprintf(m.e.progress(), "node of %s listens: RPC %s, REST %s, other nodes at %s; waiting for a block\n", now.Chain, now.RPC, now.REST, now.P2P)
	}
	r, err := m.connect(ctx, h, home.Options{Log: log, Observe: lines.To(m.e.progress()).Event})
	if err != nil {
		return err
	}
	if now.Metrics, err = h.ServeMetrics(more...); err != nil {
		return err
	}
	now.Peer = r.Host.Addrs()
	if hidden(&h.Settings) {
		fmt.Fprintln(m.e.progress(), hiddenPeer)
	}
	if err := m.register(ctx, h, r, log); err != nil {
		return err
	}
	if err := m.keep(h); err != nil {
		return err
	}
	if err := now.bonded(ctx, h, r); err != nil {
		return err
	}
	if err := m.e.show(now, now.tell); err != nil {
		return err
	}
	if m.only != nil {
		return runner.RunOnly(ctx, h, r, m.only)
	}
	if h.Settings.Is(home.Provider) {
		go m.tellIdle(ctx, r, log)
	}
	return runner.Run(ctx, h, r)
}

// bonded enters what the chain has of the peer.
func (s *standing) bonded(ctx context.Context, h *home.Home, r *role.Env) error {
	p, err := runner.Registered(ctx, r)
	if err != nil || p == nil {
		return err
	}
	if s.consensusKey != nil {
		if s.Warning, err = seat.OtherKey(ctx, r.Chain.Conn, h.Address, s.consensusKey); err != nil {
			return err
		}
	}
	least, err := runner.LeastStake(ctx, h, r)
	s.Stake, s.Least = p.Stake, least
	switch {
	case p.JailedUntil == wire.Forever:
		s.Jailed = "forever"
	case p.JailedUntil > r.Chain.Head().Time:
		s.Jailed = wire.Moment(p.JailedUntil)
	}
	return err
}

func (s *standing) tell(w io.Writer) {
	jailed := ""
	if s.Jailed == "forever" {
		jailed = ", excluded for a fraud of it or its owner: it gets nothing new any more"
	} else if s.Jailed != "" {
		jailed = fmt.Sprintf(", jailed until %s: it gets nothing new before", s.Jailed)
	}
	fmt.Fprintf(w, "%s %s works on %s as %s with a stake of %s%s; Ctrl-C stops it\n", s.Role, s.Name, s.Chain, s.Address, consume.Amount(s.Stake), jailed)
	if s.Warning != "" {
		fmt.Fprintf(w, "WARNING: %s\n", s.Warning)
	}
	switch {
	case s.Stake < s.Least:
		fmt.Fprintf(w, "It gets no new work: the least stake is %s; tally tx provider deposit adds to it\n", consume.Amount(s.Least))
	case s.Stake == s.Least && s.Least > 0:
		fmt.Fprintln(w, "That is the least stake: to lose or withdraw any of it ends new work, so have some more (tally tx provider deposit)")
	}
}

// rolesOf names the roles of a home.
func rolesOf(s *home.Settings) string {
	var out []string
	for _, r := range s.Roles() {
		out = append(out, string(r))
	}
	return strings.Join(out, " and ")
}

// hiddenPeer warns a role that others know under an address of their own machines.
const hiddenPeer = "WARNING: other machines cannot reach this one at 127.0.0.1, and its node is elsewhere: --listen /ip4/0.0.0.0/tcp/4001 --announce /ip4/ADDRESS/tcp/4001"

// hidden reports whether a role announces only addresses of this machine, though its node
// is on another, or listens for others.
func hidden(s *home.Settings) bool {
	local := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "localhost" || ip != nil && ip.IsLoopback()
	}
	at := ""
	if u, err := url.Parse(s.Node.RPC); err == nil {
		at = u.Hostname()
	}
	if s.Validator != nil {
		at, _, _ = net.SplitHostPort(s.Validator.P2P)
	}
	return !local(at) && !slices.ContainsFunc(s.Addrs(), func(text string) bool {
		a, err := ma.NewMultiaddr(text)
		return err != nil || !manet.IsIPLoopback(a)
	})
}

// tellIdle says why a provider has no work, whenever that is for another reason than before.
func (m *member) tellIdle(ctx context.Context, r *role.Env, log *slog.Logger) {
	const every = 10 * time.Second
	for told := ""; ; {
		why, err := runner.Idle(ctx, r)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Debug("cannot tell why there is no work", "error", err)
		} else if why != told {
			if told = why; why != "" {
				lines.To(m.e.progress()).Event(events.Event{Role: r.Name, Kind: "idle", Unit: -1, Text: why})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// register waits for the money of the stake, telling whom to send it to, and
// registers.
func (m *member) register(ctx context.Context, h *home.Home, r *role.Env, log *slog.Logger) error {
	p, err := runner.Registered(ctx, r)
	if err != nil {
		return err
	}
	if p == nil {
		needed, what, err := runner.FirstNeeds(ctx, h, r)
		if err != nil {
			return err
		}
		w := m.e.progress()
		err = runner.AwaitFunds(ctx, r, needed, func(have uint64) {
			fmt.Fprintf(w, "waiting for money: %s has %s, and %s are needed for %s\n", h.Address, consume.Amount(have), consume.Amount(needed), what)
			fmt.Fprintf(w, "  tally tx bank send FROM %s %dutally\n", h.Address, needed-have)
		})
		if err != nil {
			return err
		}
	}
	return runner.Register(ctx, h, r)
}

// serve is what the verb of a role does.
func (m *member) serve(cmd *cobra.Command) error {
	h, err := m.open(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := m.run(ctx, h); ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // Ctrl-C is how a role ends
}
