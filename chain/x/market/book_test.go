package market_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	dbm "github.com/cosmos/cosmos-db"
	gogogrpc "github.com/cosmos/gogoproto/grpc"
	"google.golang.org/grpc"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/runtime"
	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// The book as large as a machine takes it, against lists that are searched from one end to the other: make book plays
// a million events on a hundred thousand entries, as TALLY_BOOK=entries:events says.
func TestBookAgainstASlowOne(t *testing.T) {
	entries, events := 2_000, 12_000
	if text := os.Getenv("TALLY_BOOK"); text != "" {
		if _, err := fmt.Sscanf(text, "%d:%d", &entries, &events); err != nil {
			t.Fatalf("TALLY_BOOK=%s: want entries:events, %v", text, err)
		}
	}
	begun := time.Now()
	f := newFuzz(t, entries)
	for done := 0; done < events; f.block() {
		for range 250 {
			f.event()
			done++
		}
	}
	f.compare()
	t.Logf("%d events in %d blocks on %d open orders and %d offers in %v: %d matched, %d ended, %d refused",
		f.events, f.slow.height, f.opens(), len(f.slow.offers), time.Since(begun).Round(time.Millisecond), f.matched, f.closed, f.refused)
	if f.matched == 0 || f.closed == 0 || f.refused == 0 || f.opens() < entries/2 {
		t.Error("too little happened")
	}
}

const judges = 4

// fuzz plays random events on the market and on the slow one.
type fuzz struct {
	t       testing.TB
	chance  *rand.Rand
	target  int  // entries that the book should have
	few     bool // it had fewer when the block began
	ctx     sdk.Context
	keeper  *market.Keeper
	module  market.Module
	server  marketv1.MsgServer
	bank    *chaintest.Bank
	slow    *slow
	buyers  []chaintest.Account
	nonce   uint64
	events  int
	matched int
	closed  int
	refused int
}

func newFuzz(t testing.TB, entries int) *fuzz {
	key := storetypes.NewKVStoreKey("test")
	cms := rootmulti.NewStore(dbm.NewMemDB(), log.NewNopLogger())
	for _, k := range []*storetypes.KVStoreKey{key, module.BlockStore} { // no trees: the book is looked at, and not its hashes
		cms.MountStoreWithDB(k, storetypes.StoreTypeDB, dbm.NewMemDB())
	}
	if err := cms.LoadLatestVersion(); err != nil {
		t.Fatal(err)
	}
	f := &fuzz{t: t, chance: rand.New(rand.NewPCG(uint64(entries), 15)), target: entries, bank: chaintest.NewBank()}
	f.ctx = sdk.NewContext(cms, cmtproto.Header{ChainID: chaintest.ChainID, Height: 1, Time: time.UnixMilli(1_764_000_000_000)}, false, log.NewNopLogger())
	f.keeper = market.NewKeeper(codec.NewProtoCodec(codectypes.NewInterfaceRegistry()), runtime.NewKVStoreService(key), f.bank, burner{f.bank}, noTasks{})
	r := newRegistry(f.chance)
	f.slow = &slow{registry: r, led: map[string]int{}, balance: map[string]uint64{}, height: 1, now: f.ctx.BlockTime().UnixMilli()}
	f.module = market.NewModule(f.keeper, r, fuzzLeases{f.slow}, fuzzGames{}, noPowers{})
	f.module.RegisterServices(&taker{server: &f.server})
	if err := f.keeper.InitGenesis(f.ctx, market.DefaultGenesis()); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		a := chaintest.Named(fmt.Sprintf("buyer %d", i))
		f.buyers = append(f.buyers, a)
		f.bank.Give(a.Address, 1<<52)
		f.slow.balance[a.String()] = 1 << 52
	}
	for f.opens() < entries {
		for range 1_000 {
			f.postOrder()
		}
		f.nextBlock()
	}
	return f
}

func (f *fuzz) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("event %d, height %d: %v", f.events, f.slow.height, err)
	}
}

func (f *fuzz) opens() (n int) {
	for _, o := range f.slow.orders {
		if f.slow.open(o) {
			n++
		}
	}
	return n
}

// event plays one random event.
func (f *fuzz) event() {
	f.events++
	switch n := f.chance.IntN(100); {
	case n < 20 || f.few && n < 50:
		f.postOrder()
	case n < 60:
		f.cancel()
	case n < 80:
		f.postOffer()
	case n < 83:
		f.withdraw()
	case n < 86:
		f.jail()
	default:
		f.spend()
	}
}

// postOrder posts an order that a part of the offers meets, or none.
func (f *fuzz) postOrder() {
	r, buyer := f.chance, f.buyers[f.chance.IntN(len(f.buyers))]
	o := worktest.Order()
	o.Consumer, o.Contact.Key = buyer.String(), buyer.PeerKey()
	f.nonce++
	o.Nonce = f.nonce
	o.Problem.StepBytes = 0
	o.Conditions.MinProviders = 1 + r.IntN(2)
	o.Conditions.Expires = 1_000 * (60 + r.Int64N(6*3600))
	o.Conditions.MaxPrice = 100_000 + r.Uint64N(20_000) // of which nobody computes it
	switch r.IntN(8) {
	case 0:
		o.Conditions.MaxPrice = 150_000 + r.Uint64N(500_000)
	case 1:
		o.Conditions.MaxPrice, o.Conditions.Validator = 1_000_000, bech32Of(f.slow.registry.leads[r.IntN(len(f.slow.registry.leads))])
	case 2:
		o.Conditions.MaxPrice, o.Conditions.Needs.Regions = 150_000+r.Uint64N(500_000), []string{"DE"}
	}
	msg := &marketv1.MsgPostOrder{Consumer: o.Consumer, Order: wire.OrderToProto(&o), Signature: ed25519.Sign(buyer.Peer, wire.Statement(o.Chain, buyer.Address))}
	_, err := f.server.PostOrder(f.ctx, msg)
	f.must(err)
	deposit, err := job.DefaultParams.Deposit(o.Conditions.MaxPrice)
	f.must(err)
	f.slow.post(o, f.nonce, deposit)
	if r.IntN(100) == 0 {
		if _, err := f.server.PostOrder(f.ctx, msg); !errors.Is(err, market.ErrPosted) {
			f.t.Fatalf("an order was posted twice: %v", err)
		}
	}
}

// some returns an order of a status, nil if it happens to find none.
func (f *fuzz) some(status marketv1.Status) *slowOrder {
	for range 20 {
		if o := f.slow.orders[f.chance.IntN(len(f.slow.orders))]; o.status == status {
			return o
		}
	}
	return nil
}

func (f *fuzz) cancel() {
	o := f.some(marketv1.STATUS_OPEN)
	if f.chance.IntN(10) == 0 { // what is not open cannot be
		if o = f.slow.orders[f.chance.IntN(len(f.slow.orders))]; !f.slow.open(o) {
			_, err := f.server.CancelOrder(f.ctx, &marketv1.MsgCancelOrder{Consumer: o.Consumer, Order: o.id.String()})
			if !errors.Is(err, market.ErrNotOpen) {
				f.t.Fatalf("order %s was cancelled: %v", o.id, err)
			}
			return
		}
	}
	if o == nil {
		return
	}
	_, err := f.server.CancelOrder(f.ctx, &marketv1.MsgCancelOrder{Consumer: o.Consumer, Order: o.id.String()})
	f.must(err)
	f.slow.close(o, marketv1.STATUS_CANCELLED)
	f.closed++
}

// postOffer posts an offer, or replaces one: about 160 stand.
func (f *fuzz) postOffer() {
	s, r := f.slow, f.chance
	lead := bech32Of(s.registry.leads[r.IntN(len(s.registry.leads))])
	if len(s.offers) > 160 || len(s.offers) > 0 && r.IntN(2) == 0 {
		lead = s.offers[r.IntN(len(s.offers))].Validator
	}
	o := marketv1.Offer{Validator: lead, FeeBps: 100 * r.Uint32N(3), MaxLeases: 1 + 9*r.Uint32N(3)}
	if r.IntN(4) == 0 {
		o.Ends = s.now + 1_000*(1+r.Int64N(600))
	}
	_, err := f.server.PostOffer(f.ctx, &marketv1.MsgPostOffer{Validator: lead, FeeBps: o.FeeBps, MaxLeases: o.MaxLeases, Ends: o.Ends})
	f.must(err)
	s.put(o)
}

func (f *fuzz) withdraw() {
	s := f.slow
	if len(s.offers) == 0 {
		return
	}
	i := f.chance.IntN(len(s.offers))
	_, err := f.server.WithdrawOffer(f.ctx, &marketv1.MsgWithdrawOffer{Validator: s.offers[i].Validator})
	f.must(err)
	s.offers = slices.Delete(s.offers, i, i+1)
}

// jail keeps a lead or a provider of an offer from work for a while.
func (f *fuzz) jail() {
	s := f.slow
	if len(s.offers) == 0 {
		return
	}
	lead, until := s.offers[f.chance.IntN(len(s.offers))].Validator, s.now+1_000*f.chance.Int64N(120)
	if team := s.registry.providers[lead]; f.chance.IntN(2) == 0 {
		team[f.chance.IntN(len(team))].JailedUntil = until
	} else {
		x := s.registry.candidates[lead]
		x.JailedUntil = until
		s.registry.candidates[lead] = x
	}
}

// spend pays, burns or taxes out of the escrow of a lease, ends it or forgets it.
func (f *fuzz) spend() {
	s := f.slow
	o := f.some(marketv1.STATUS_LEASED)
	if o == nil {
		if o = f.some(marketv1.STATUS_SETTLED); o != nil && f.chance.IntN(2) == 0 {
			f.must(f.keeper.Forget(f.ctx, o.id))
			s.orders = slices.DeleteFunc(s.orders, func(x *slowOrder) bool { return x == o })
		}
		return
	}
	amount := f.chance.Uint64N(o.escrow + 1)
	switch f.chance.IntN(8) {
	case 0:
		f.must(f.keeper.Pay(f.ctx, o.id, o.lead, amount))
		s.balance[o.lead] += amount
	case 1:
		f.must(f.keeper.Burn(f.ctx, o.id, amount))
		s.balance["burnt"] += amount
	case 2:
		f.must(f.keeper.Tax(f.ctx, o.id, "work", amount))
		s.balance["work"] += amount
	case 3:
		if err := f.keeper.Pay(f.ctx, o.id, o.lead, o.escrow+1); !errors.Is(err, market.ErrEscrow) {
			f.t.Fatalf("more was paid than there is: %v", err)
		}
		return
	default:
		f.must(f.keeper.Settle(f.ctx, o.id, o.escrow))
		s.close(o, marketv1.STATUS_SETTLED)
		s.led[o.lead]--
		f.closed++
		return
	}
	o.escrow -= amount
}

// block ends a block in both, compares what happened, and begins the next.
func (f *fuzz) block() {
	f.nextBlock()
	if f.slow.height%100 == 0 {
		f.compare()
	}
}

func (f *fuzz) nextBlock() {
	f.t.Helper()
	s := f.slow
	s.registry.from, s.registry.took = "", nil
	ctx := f.ctx.WithEventManager(sdk.NewEventManager())
	f.must(f.module.EndBlock(ctx))
	s.registry.begun = nil
	got, want := f.did(ctx), s.block()
	if s.work > 1<<17 {
		f.t.Fatalf("the block may have had to stop early: %d of work", s.work)
	}
	if !slices.Equal(got, want) {
		f.t.Fatalf("height %d: the market did\n%v\nthe slow one\n%v", s.height, got, want)
	}
	s.height++
	s.now += 1_000 * (5 + f.chance.Int64N(20)) // whole seconds, so that some ends come exactly
	f.ctx, f.few = f.ctx.WithBlockHeight(s.height).WithBlockTime(time.UnixMilli(s.now)), f.opens() < f.target
}

// did reads what happened out of a block's events.
func (f *fuzz) did(ctx sdk.Context) (all []did) {
	f.t.Helper()
	for _, e := range ctx.EventManager().ABCIEvents() {
		m, err := event.Parse(e)
		f.must(err)
		switch m := m.(type) {
		case *marketv1.EventClosed:
			all = append(all, did{"closed " + m.Status.String(), m.Order, "", m.Refund})
			f.closed++
		case *marketv1.EventMatched:
			all = append(all, did{"matched", m.Order, m.Validator, m.Price})
			f.matched++
		case *marketv1.EventOfferWithdrawn:
			all = append(all, did{"ended", "", m.Validator, 0})
		case *marketv1.EventObstacle:
			f.refused++
		}
	}
	return all
}

// compare compares all of the book, and all money.
func (f *fuzz) compare() {
	f.t.Helper()
	s := f.slow
	f.must(f.keeper.Invariant(f.ctx))
	g, err := f.keeper.ExportGenesis(f.ctx)
	f.must(err)
	f.must(market.ValidateGenesis(g))
	if len(g.Orders) != len(s.orders) || len(g.Offers) != len(s.offers) || g.Next != f.nonce+1 {
		f.t.Fatalf("%d orders and %d offers, the slow one has %d and %d", len(g.Orders), len(g.Offers), len(s.orders), len(s.offers))
	}
	for i, o := range s.orders {
		p := g.Orders[i].Posting
		if p.Number != o.number || p.Status != o.status || p.Escrow != o.escrow || p.ExpiresAt != o.expires || p.Price != o.price || p.Validator != o.lead || p.Deposit != o.deposit {
			f.t.Fatalf("order %d is %+v, in the slow one %+v", i, p, o)
		}
	}
	slices.SortFunc(s.offers, func(a, b marketv1.Offer) int {
		return bytes.Compare([]byte(bytesOf(a.Validator)), []byte(bytesOf(b.Validator)))
	})
	for i, o := range s.offers {
		if o.Height = 0; g.Offers[i] != o {
			f.t.Fatalf("offer %d is %+v, in the slow one %+v", i, g.Offers[i], o)
		}
	}
	last := s.trades[max(0, len(s.trades)-market.MaxTrades):]
	for i, x := range last {
		if y := g.Trades[i]; len(g.Trades) != len(last) || y.Order != x.Order || y.At != x.At || y.Price != x.Price || y.Validator != x.Validator || y.Providers != x.Providers {
			f.t.Fatalf("trade %d of %d is %+v, in the slow one %+v", i, len(g.Trades), y, x)
		}
	}
	for who, want := range s.balance { // order: each for itself
		var has uint64
		switch a, err := address.Parse(who); {
		case who == "burnt":
			has = f.bank.Burnt
		case err != nil:
			has = f.bank.Module(who)
		default:
			has = f.bank.Balances[string(a)]
		}
		if has != want {
			f.t.Fatalf("%s has %d utally, in the slow one %d", who, has, want)
		}
	}
}

// registry knows 5,000 leads, so that a block cannot look at all of them, with one or two providers each.
type registry struct {
	leads      []string // account bytes, in order
	candidates map[string]providerv1.Candidate
	providers  map[string][]providerv1.Candidate
	judges     []providerv1.Candidate
	improved   map[string]bool
	from       string   // the account with which a block began to look
	took       []string // whose clusters it took as improved
	begun      []string // whom it gave leases, until the slow market knows
}

func newRegistry(r *rand.Rand) *registry {
	g := &registry{candidates: map[string]providerv1.Candidate{}, providers: map[string][]providerv1.Candidate{}, improved: map[string]bool{}}
	name := func() string {
		var a [20]byte
		for i := range a {
			a[i] = byte(r.Uint32())
		}
		return string(a[:])
	}
	candidate := func(of string) providerv1.Candidate {
		return providerv1.Candidate{Account: bech32Of(of), Free: 1 << 50, Stake: 1 << 50, UnitPrice: 900 + 50*r.Uint64N(20), Declared: providerv1.Declared{Region: []string{"DE", "FR", ""}[r.IntN(3)]}}
	}
	for range 5_000 {
		lead := name()
		g.leads = append(g.leads, lead)
		g.candidates[bech32Of(lead)] = candidate(lead)
		for range 1 + r.IntN(2) {
			g.providers[bech32Of(lead)] = append(g.providers[bech32Of(lead)], candidate(name()))
		}
	}
	slices.Sort(g.leads)
	for range judges {
		g.judges = append(g.judges, candidate(name()))
	}
	return g
}

func bech32Of(account string) string { return sdk.AccAddress(account).String() }

func bytesOf(text string) string {
	a, err := address.Parse(text)
	if err != nil {
		panic(err)
	}
	return string(a)
}

func (g *registry) lead(validator string) providerv1.Candidate { return g.candidates[validator] }
func (g *registry) taken() []string                            { return g.took }

func (g *registry) Params(context.Context) (providerv1.Params, error) {
	return providerv1.Params{}, nil
}
func (g *registry) Get(_ context.Context, a sdk.AccAddress) (providerv1.Peer, error) {
	return providerv1.Peer{Account: a.String(), Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}}, nil
}
func (g *registry) Candidate(_ context.Context, a sdk.AccAddress) (providerv1.Candidate, error) {
	return g.candidates[a.String()], nil
}
func (g *registry) Leads(_ context.Context, from, until sdk.AccAddress, visit func(sdk.AccAddress) (bool, error)) error {
	if g.from == "" {
		g.from = string(from)
	}
	for _, l := range g.leads {
		if from != nil && l < string(from) || until != nil && l >= string(until) {
			continue
		}
		if stop, err := visit(sdk.AccAddress(l)); stop || err != nil {
			return err
		}
	}
	return nil
}
func (g *registry) Providers(_ context.Context, v, _ sdk.AccAddress, most int) ([]providerv1.Candidate, error) {
	all := g.providers[v.String()]
	return slices.Clone(all[:min(len(all), most)]), nil
}
func (g *registry) Validators(context.Context, int) ([]providerv1.Candidate, error) {
	return slices.Clone(g.judges), nil
}
func (g *registry) Free(ctx context.Context, c providerv1.Candidate) bool {
	return c.JailedUntil <= module.Now(ctx)
}
func (g *registry) MarkImproved(_ context.Context, v sdk.AccAddress) error {
	g.improved[string(v)] = true
	return nil
}
func (g *registry) TakeImproved(_ context.Context, from sdk.AccAddress, most int) (out []sdk.AccAddress, all bool, err error) {
	for n, begin := 0, slices.IndexFunc(g.leads, func(l string) bool { return l >= string(from) }); n < len(g.leads) && len(out) < min(most, 32); n++ {
		if l := g.leads[(max(begin, 0)+n)%len(g.leads)]; g.improved[l] {
			delete(g.improved, l)
			out, g.took = append(out, sdk.AccAddress(l)), append(g.took, l)
		}
	}
	return out, false, nil
}

// fuzzLeases begin whatever a lead does not refuse.
type fuzzLeases struct{ *slow }

// refuses says whether the lease of an order cannot begin with a lead.
func refuses(lead string, nonce uint64) bool { return (nonce+uint64(lead[len(lead)-1]))%5 == 0 }

func (l fuzzLeases) Rules(context.Context) (job.Params, error) { return job.DefaultParams, nil }
func (l fuzzLeases) Leading(_ context.Context, account string) (int, uint64, error) {
	n := l.led[account]
	for _, b := range l.registry.begun {
		if b == account {
			n++
		}
	}
	return n, 0, nil // each alone is within what its stake lets it lead
}
func (l fuzzLeases) Begin(_ context.Context, m job.Match) (job.Quote, error) {
	if refuses(m.Lead, m.Order.Nonce) {
		return job.Quote{}, errors.New("it rains")
	}
	l.registry.begun = append(l.registry.begun, m.Lead)
	return job.NewQuote(&m.Order.Problem, &m.Order.Conditions, job.Dearest(m.Providers), m.FeeBps, m.Params.Tariff)
}
func (fuzzLeases) Retired(context.Context, canon.Hash) (bool, error)     { return false, nil }
func (fuzzLeases) Retention(context.Context) (int64, error)              { return retention.Milliseconds(), nil }
func (fuzzLeases) Final(context.Context, canon.Hash) (canon.Hash, error) { return canon.Hash{}, nil }

type fuzzGames struct{}

func (fuzzGames) Rules(context.Context) (dispute.Rules, error) { return dispute.DefaultRules, nil }

type noPowers struct{}

func (noPowers) Effective(context.Context, sdk.AccAddress) (uint64, error) { return 0, nil }

type burner struct{ *chaintest.Bank }

func (b burner) Burn(ctx context.Context, from string, amount uint64) error {
	return b.BurnCoins(ctx, from, coin.Of(amount))
}

// taker takes the server of messages that a module registers.
type taker struct {
	server *marketv1.MsgServer
}

func (k *taker) Error() error                                                       { return nil }
func (k *taker) MsgServer() gogogrpc.Server                                         { return k }
func (k *taker) QueryServer() gogogrpc.Server                                       { return k }
func (k *taker) RegisterMigration(string, uint64, sdkmodule.MigrationHandler) error { return nil }
func (k *taker) RegisterService(_ *grpc.ServiceDesc, impl any) {
	if s, ok := impl.(marketv1.MsgServer); ok {
		*k.server = s
	}
}
