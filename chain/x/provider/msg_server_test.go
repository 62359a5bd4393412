package provider_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/provider"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const tally = 1_000_000

var (
	alice = chaintest.Named("alice")
	bob   = chaintest.Named("bob")
	lead  = chaintest.Named("lead")
	other = chaintest.Named("other lead")
)

func newChain(t *testing.T) *chaintest.Chain {
	return chaintest.New(t,
		chaintest.Fund(2_000*tally, alice.Name, bob.Name),
		chaintest.Validator(lead.Name, 1_000*tally),
		chaintest.Validator(other.Name, 1_000*tally),
	)
}

func get(t *testing.T, c *chaintest.Chain, a chaintest.Account) providerv1.Peer {
	t.Helper()
	p, err := c.Provider.Get(c.Ctx(), a.Address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var listing = providerv1.Listing{
	Addrs: []string{"/ip4/127.0.0.1/udp/4001/quic-v1"}, UnitPrice: 3, BytePrice: 2, Validator: lead.String(),
}

func TestRegister(t *testing.T) {
	c := newChain(t)
	b := c.Deliver(alice, alice.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))
	want := providerv1.Peer{
		Account: alice.String(), Roles: []providerv1.Role{providerv1.ROLE_PROVIDER}, PeerKey: alice.PeerKey(), VrfKey: alice.VRFKey(), Listing: listing, Stake: 150 * tally,
		AbleSince: module.Now(c.Ctx()),
	}
	if p := get(t, c, alice); p.String() != want.String() {
		t.Fatalf("stored %v", p)
	}
	if p, err := c.Provider.ByPeerKey(c.Ctx(), alice.PeerKey()); err != nil || p.Account != alice.String() {
		t.Fatalf("%v, %v", p, err)
	}
	if left := c.Balance(alice.Address); left != 1_850*tally {
		t.Fatalf("%d utally left", left)
	}
	want.AbleSince = 0 // as it was registered, before its stake came
	if e := chaintest.Events[*providerv1.EventRegistered](t, b); len(e) != 1 || e[0].Peer.String() != want.String() {
		t.Fatalf("events %v", e)
	}
	c.Deliver(bob, bob.Register(providerv1.ROLE_VALIDATOR, 1_000*tally, providerv1.Listing{}))
	if p := get(t, c, bob); !bytes.Equal(p.VrfKey, bob.VRFKey()) {
		t.Fatalf("stored %v", p)
	}
}

func TestRegisterRefuses(t *testing.T) {
	type message = providerv1.MsgRegister
	for name, x := range map[string]struct {
		bend  func(*message)
		want  *errorsmod.Error
		words string
	}{
		"signature of another chain": {func(m *message) {
			m.Signature = sign(alice, wire.Statement("other", alice.Address))
		}, provider.ErrSignature, "sign again"},
		"signature for another account": {func(m *message) {
			m.Signature = sign(alice, wire.Statement(chaintest.ChainID, bob.Address))
		}, provider.ErrSignature, ""},
		"signature by another key":    {func(m *message) { m.PeerKey = bob.PeerKey() }, provider.ErrSignature, ""},
		"no signature":                {func(m *message) { m.Signature = nil }, provider.ErrSignature, ""},
		"low stake":                   {func(m *message) { m.Stake-- }, provider.ErrMinStake, "99999999 utally offered, 100000000 needed"},
		"no money":                    {func(m *message) { m.Stake = 2_001 * tally }, sdkerrors.ErrInsufficientFunds, ""},
		"more than all money":         {func(m *message) { m.Stake = 1<<64 - 1 }, sdkerrors.ErrInsufficientFunds, ""},
		"no role":                     {func(m *message) { m.Roles = nil }, provider.ErrListing, "choose of provider"},
		"unknown role":                {func(m *message) { m.Roles = []providerv1.Role{1, 9} }, provider.ErrListing, "choose of provider"},
		"a role twice":                {func(m *message) { m.Roles = []providerv1.Role{1, 1} }, provider.ErrListing, "each once"},
		"roles out of order":          {func(m *message) { m.Roles = []providerv1.Role{3, 1} }, provider.ErrListing, "in this order"},
		"low stake of the other role": {func(m *message) { m.Roles = []providerv1.Role{1, 2} }, provider.ErrMinStake, "1000000000 needed"},
		"short key":                   {func(m *message) { m.PeerKey = m.PeerKey[:31] }, provider.ErrKey, "31 bytes"},
		"weak key":                    {func(m *message) { m.PeerKey = make([]byte, 32) }, provider.ErrKey, "small order"},
		"no vrf key":                  {func(m *message) { m.VrfKey = nil }, provider.ErrKey, "vrf_key"},
		"weak vrf key":                {func(m *message) { m.VrfKey = make([]byte, 32) }, provider.ErrKey, "small order"},
		"under nobody":                {func(m *message) { m.Listing.Validator = "" }, provider.ErrListing, "name the one"},
		"under a stranger":            {func(m *message) { m.Listing.Validator = bob.String() }, provider.ErrNotRegistered, bob.String()},
		"price":                       {func(m *message) { m.Listing.UnitPrice = wire.MaxPrice + 1 }, provider.ErrListing, "price"},
		"price of a challenger": {func(m *message) {
			m.Roles, m.Listing.Validator = []providerv1.Role{providerv1.ROLE_CHALLENGER}, ""
		}, provider.ErrListing, "unit_price"},
		"many addrs":  {func(m *message) { m.Listing.Addrs = make([]string, 9) }, provider.ErrListing, "9 addrs"},
		"long addr":   {func(m *message) { m.Listing.Addrs = []string{"/" + strings.Repeat("a", 256)} }, provider.ErrListing, "multiaddr"},
		"not an addr": {func(m *message) { m.Listing.Addrs = []string{"127.0.0.1:80"} }, provider.ErrListing, "multiaddr"},
		"odd addr":    {func(m *message) { m.Listing.Addrs = []string{"/dns4/é"} }, provider.ErrListing, "multiaddr"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t)
			m := alice.Register(providerv1.ROLE_PROVIDER, 100*tally, listing)
			m.Listing.Addrs = nil
			x.bend(m)
			if log := c.Refuse(x.want, alice, m); !strings.Contains(log, x.words) {
				t.Fatalf("%q does not say %q", log, x.words)
			}
			if left := c.Balance(alice.Address); left != 2_000*tally {
				t.Fatalf("a refused registration cost %d utally", 2_000*tally-left)
			}
		})
	}
}

func TestOneAccountOneKey(t *testing.T) {
	c := newChain(t)
	c.Deliver(alice, alice.Register(providerv1.ROLE_CHALLENGER, 100*tally, providerv1.Listing{}))
	c.Refuse(provider.ErrRegistered, alice, alice.Register(providerv1.ROLE_CHALLENGER, 100*tally, providerv1.Listing{}))
	stolen := bob
	stolen.Peer = alice.Peer
	c.Refuse(provider.ErrKeyTaken, bob, stolen.Register(providerv1.ROLE_CHALLENGER, 100*tally, providerv1.Listing{}))
}

// A message that names another account must carry that account's signature.
func TestOthersCannotAct(t *testing.T) {
	c := newChain(t)
	c.Deliver(alice, alice.Register(providerv1.ROLE_CHALLENGER, 100*tally, providerv1.Listing{}))
	for _, m := range []sdk.Msg{
		&providerv1.MsgWithdraw{Account: alice.String(), Amount: 1},
		&providerv1.MsgUpdate{Account: alice.String()},
	} {
		c.Refuse(sdkerrors.ErrInvalidPubKey, bob, m)
	}
}

var provides = []providerv1.Role{providerv1.ROLE_PROVIDER}

// An account takes on roles and gives them up, behind one stake, but gives up none while work is open.
func TestRolesOfOneAccount(t *testing.T) {
	c := newChain(t)
	c.Deliver(bob, bob.Register(providerv1.ROLE_VALIDATOR, 1_000*tally, providerv1.Listing{}))
	roles := func(l providerv1.Listing, roles ...providerv1.Role) *providerv1.MsgUpdate {
		return &providerv1.MsgUpdate{Account: bob.String(), Listing: l, Roles: roles}
	}
	under := providerv1.Listing{UnitPrice: 7, Validator: bob.String()}
	c.Refuse(provider.ErrListing, bob, roles(under, providerv1.ROLE_VALIDATOR)) // no provider
	c.Refuse(provider.ErrListing, bob, roles(under, providerv1.ROLE_PROVIDER))  // under itself, and no validator any more
	c.Deliver(bob, roles(under, providerv1.ROLE_PROVIDER, providerv1.ROLE_VALIDATOR, providerv1.ROLE_CHALLENGER))
	counts := func(validators, providers, challengers int) {
		t.Helper()
		judges, err := c.Provider.Validators(c.Ctx(), 99)
		if err != nil {
			t.Fatal(err)
		}
		team, err := c.Provider.Providers(c.Ctx(), bob.Address, nil, 99)
		if err != nil || len(team) != providers {
			t.Fatalf("%d provide under it, want %d: %v", len(team), providers, err)
		}
		if got := slices.ContainsFunc(judges, func(x providerv1.Candidate) bool { return x.Account == bob.String() }); got != (validators > 0) {
			t.Fatalf("it judges: %v", got)
		}
		watch, err := c.Provider.WithRole(c.Ctx(), providerv1.ROLE_CHALLENGER)
		if err != nil || len(watch) != challengers {
			t.Fatalf("%d challenge, want %d: %v", len(watch), challengers, err)
		}
		if err := c.Provider.Invariant(c.Ctx()); err != nil {
			t.Fatal(err)
		}
	}
	counts(1, 1, 1)
	ctx := c.Ctx()
	if err := c.Provider.Reserve(ctx, bob.Address, 5); err != nil {
		t.Fatal(err)
	}
	if err := c.Provider.Update(ctx, bob.Address, providerv1.Listing{}, []providerv1.Role{providerv1.ROLE_VALIDATOR}); !errors.Is(err, provider.ErrOpenWork) {
		t.Fatalf("roles were given up while work is open: %v", err)
	}
	c.Deliver(bob, roles(providerv1.Listing{}, providerv1.ROLE_VALIDATOR))
	counts(1, 0, 0)
	c.Deliver(bob, roles(providerv1.Listing{}, providerv1.ROLE_CHALLENGER))
	counts(0, 0, 1)
	c.Deliver(bob, &providerv1.MsgWithdraw{Account: bob.String(), Amount: 800 * tally})
	again := roles(providerv1.Listing{}, providerv1.ROLE_VALIDATOR, providerv1.ROLE_CHALLENGER)
	c.Refuse(provider.ErrMinStake, bob, again)
	again.Stake = 1_000 * tally // what is short comes out of the balance, once
	c.Deliver(bob, again)
	c.Deliver(bob, again)
	if p := get(t, c, bob); p.Stake != 1_000*tally {
		t.Fatalf("%d utally are staked", p.Stake)
	}
	counts(1, 0, 1)
}

func TestUpdate(t *testing.T) {
	c := newChain(t)
	c.Refuse(provider.ErrNotRegistered, alice, &providerv1.MsgUpdate{Account: alice.String(), Listing: listing, Roles: provides})
	c.Deliver(alice, alice.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))

	dearer := listing
	dearer.UnitPrice = 9
	b := c.Deliver(alice, &providerv1.MsgUpdate{Account: alice.String(), Listing: dearer, Roles: provides})
	if p := get(t, c, alice); p.Listing.UnitPrice != 9 || p.Stake != 150*tally {
		t.Fatalf("stored %v", p)
	}
	if e := chaintest.Events[*providerv1.EventUpdated](t, b); len(e) != 1 || e[0].Listing.UnitPrice != 9 {
		t.Fatalf("events %v", e)
	}

	moved := dearer
	moved.Validator = other.String()
	c.Deliver(alice, &providerv1.MsgUpdate{Account: alice.String(), Listing: moved, Roles: provides})
	for v, n := range map[*chaintest.Account]int{&lead: 0, &other: 1} {
		if ps, err := c.Provider.Providers(c.Ctx(), v.Address, nil, 9); err != nil || len(ps) != n {
			t.Fatalf("%s leads %v, %v", v.Name, ps, err)
		}
	}
	moved.Validator = alice.String()
	c.Refuse(provider.ErrListing, alice, &providerv1.MsgUpdate{Account: alice.String(), Listing: moved, Roles: provides})
}

// Who owns a peer is said by both, and unsaid likewise by its own account alone.
func TestDeclareOwner(t *testing.T) {
	c := newChain(t)
	declare := &providerv1.MsgDeclareOwner{Account: alice.String(), Owner: bob.String()}
	deliver := func(signers ...chaintest.Account) (*abci.ExecTxResult, chaintest.Block) {
		t.Helper()
		c.QueueOf(signers, declare)
		b := c.NextBlock(time.Second)
		return b.TxResults[len(b.TxResults)-1], b
	}
	if r, _ := deliver(alice, bob); r.Codespace != provider.ErrNotRegistered.Codespace() || r.Code != provider.ErrNotRegistered.ABCICode() {
		t.Fatalf("of no peer: %s", r.Log)
	}
	c.Deliver(alice, alice.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))
	if r, _ := deliver(alice); r.Code == 0 {
		t.Fatal("an owner was declared that has not signed")
	}
	r, b := deliver(alice, bob)
	if e := chaintest.Events[*providerv1.EventOwner](t, b); r.Code != 0 || len(e) != 1 || e[0].Owner != bob.String() {
		t.Fatalf("%s, events %v", r.Log, e)
	}
	if p := get(t, c, alice); p.Owner != bob.String() {
		t.Fatalf("stored %v", p)
	}
	if ps, err := c.Provider.Providers(c.Ctx(), lead.Address, nil, 9); err != nil || len(ps) != 1 || ps[0].Owner != bob.String() {
		t.Fatalf("candidates %v, %v", ps, err)
	}
	declare.Owner = alice.String()
	if r, _ := deliver(alice); r.Code != 0 || get(t, c, alice).Owner != "" {
		t.Fatalf("its own again: %s, %v", r.Log, get(t, c, alice))
	}
}

func TestDepositAndWithdraw(t *testing.T) {
	c := newChain(t)
	c.Refuse(provider.ErrNotRegistered, alice, &providerv1.MsgDeposit{Account: alice.String(), Amount: 1})
	c.Deliver(alice, alice.Register(providerv1.ROLE_CHALLENGER, 100*tally, providerv1.Listing{}))
	b := c.Deliver(alice, &providerv1.MsgDeposit{Account: alice.String(), Amount: 50 * tally})
	if e := chaintest.Events[*providerv1.EventStake](t, b); len(e) != 1 || e[0].Stake != 150*tally {
		t.Fatalf("events %v", e)
	}
	log := c.Refuse(provider.ErrFreeStake, alice, &providerv1.MsgWithdraw{Account: alice.String(), Amount: 150*tally + 1})
	if !strings.Contains(log, "150000000 utally free, 150000001") {
		t.Fatalf("%q says too little", log)
	}
	b = c.Deliver(alice, &providerv1.MsgWithdraw{Account: alice.String(), Amount: 30 * tally})
	if p := get(t, c, alice); p.Stake != 120*tally || p.Reserved != 0 {
		t.Fatalf("stored %v", p)
	}
	back := chaintest.Events[*providerv1.EventUnbonding](t, b)
	r, err := providerv1.NewQueryClient(c).Unbonding(t.Context(), &providerv1.QueryUnbondingRequest{Account: alice.String()})
	if err != nil || len(r.Unbonding) != 1 || len(back) != 1 || r.Unbonding[0] != (providerv1.Unbonding{Account: alice.String(), Until: back[0].Until, Amount: 30 * tally}) {
		t.Fatalf("%v, %v; %v is withdrawn", r, err, back)
	}
	c.Refuse(provider.ErrFreeStake, alice, &providerv1.MsgWithdraw{Account: alice.String(), Amount: 1<<64 - 1})
	c.Refuse(provider.ErrAmount, alice, &providerv1.MsgWithdraw{Account: alice.String()})
	c.Refuse(provider.ErrAmount, alice, &providerv1.MsgDeposit{Account: alice.String()})
	c.Refuse(sdkerrors.ErrInsufficientFunds, alice, &providerv1.MsgDeposit{Account: alice.String(), Amount: 2_000 * tally})
}

func TestActive(t *testing.T) {
	c := newChain(t)
	c.Deliver(alice, alice.Register(providerv1.ROLE_CHALLENGER, 100*tally, providerv1.Listing{}))
	active := func() bool {
		ok, err := c.Provider.Active(c.Ctx(), get(t, c, alice))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !active() {
		t.Fatal("a fresh peer is not active")
	}
	until := c.Now().Add(time.Minute)
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Jail(ctx, alice.Address, until.UnixMilli()) }); err != nil {
		t.Fatal(err)
	}
	// An earlier end does not shorten the sentence.
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Jail(ctx, alice.Address, 1) }); err != nil {
		t.Fatal(err)
	}
	if active() {
		t.Fatal("a jailed peer is active")
	}
	c.NextBlock(until.Sub(c.Now()))
	if !active() {
		t.Fatal("a peer is not active after its time")
	}
	c.Deliver(alice, &providerv1.MsgWithdraw{Account: alice.String(), Amount: 1})
	if active() {
		t.Fatal("a peer below the minimum stake is active")
	}
}
