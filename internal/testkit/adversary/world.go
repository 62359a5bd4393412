package adversary

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Kind is what rules a world has.
type Kind string

// The kinds of world.
const (
	Plain  Kind = "plain"  // no attempt is forced
	Forced Kind = "forced" // some are, and the jackpot pool holds something
	Crowd  Kind = "crowd"  // none is; there are many providers, whose work takes a while
)

var kindsOfWorld = []Kind{Plain, Forced, Crowd}

// People of every world by their part in it. Strangers have money and no part.
var (
	challenger = "challenger"
	buyers     = []string{"consumer", "buyer"}
	strangers  = []string{"mallory", "trudy"}
	leads      = []string{"v0", "v1"}
	others     = []string{"v2", "v3", "v4"}
	house0     = worktest.Providers // under v0
	house1     = worktest.Rivals    // under v1
	crowd      = numbered("c", 64)  // under v0, in some worlds
	everybody  = slices.Concat(leads, others, house0, house1, buyers, strangers, []string{challenger})
)

const (
	purse = 1_000_000 * worktest.Tally // of everybody at genesis, in utally
	price = 1_000_000_000              // utally for a GFLOP: these orders are tiny
	pace  = 8_000                      // ms that a unit takes in a crowd
	clock = 30_000                     // ms that each side of a dispute has
)

// World is a committed state from which histories branch off.
type World struct {
	*chaintest.Chain
	Kind  Kind
	tb    testing.TB
	minds map[int]*mind // by the length that slots' names are given
	costs costs

	reached reached                          // what its histories have come to
	spender *spender                         // what messages take is noted there, if not nil
	Costs   bool                             // whether allocations beyond what gas pays for are a finding; they are the whole process's, so nothing else may run
	Trace   func(format string, args ...any) // what happens, if not nil
}

// Options are the people and the rules of a kind of world: everybody is registered.
func Options(kind Kind) []chaintest.Option {
	options := []chaintest.Option{
		chaintest.Fund(purse, everybody...),
		worktest.Rules(func(p *job.Params) {
			if kind == Forced {
				worktest.Forced(p)
			}
		}),
		func(g *app.Genesis) {
			g.Dispute = disputev1.Params{Depth: 6, ClockMs: clock, AnswerMs: clock / 3, Parallel: 4}
		},
		chaintest.Authority("trent"),
	}
	for _, v := range slices.Concat(leads, others) {
		options = append(options, chaintest.Validator(v, 100_000*worktest.Tally))
	}
	for i, p := range house0 {
		options = append(options, chaintest.Provider(p, "v0", 10_000*worktest.Tally, price+price/10*uint64(i)))
	}
	if kind == Crowd {
		for _, c := range crowd {
			options = append(options, chaintest.Provider(c, "v0", 10_000*worktest.Tally, price))
		}
	}
	for _, q := range house1 {
		options = append(options, chaintest.Provider(q, "v1", 10_000*worktest.Tally, 2*price))
	}
	return options
}

// NewWorld prepares a world.
func NewWorld(tb testing.TB, kind Kind) *World {
	tb.Helper()
	w := worldOf(tb, chaintest.New(tb, Options(kind)...), kind)
	if kind == Forced {
		w.fillPool()
	}
	return w
}

// worldOf is a world on a chain, on which both leads have an offer.
func worldOf(tb testing.TB, c *chaintest.Chain, kind Kind) *World {
	w := &World{Chain: c, Kind: kind, tb: tb, minds: map[int]*mind{}}
	for _, v := range leads {
		worktest.Offer(c, v)
	}
	return w
}

// numbered returns n names.
func numbered(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// fillPool lets honest orders be taxed until the jackpot pool holds something: their own
// forced attempts are paid out of it, too.
func (w *World) fillPool() {
	w.tb.Helper()
	for n := uint64(0); w.Work.Pool(w.Ctx()) < 2*worktest.Tally; n++ {
		if n == 64 {
			w.tb.Fatalf("%d orders have left nothing in the jackpot pool", n)
		}
		o := worktest.Order()
		o.Nonce, o.Problem.StepFLOPs, o.Conditions.MaxPrice = 1<<20+n, 100_000, purse/100
		w.Deliver(worktest.Consumer, worktest.Post(o))
		w.NextBlock(time.Second)
		p := worktest.Join(w.tb, w.Chain, o)
		p.SayOfFiles(workv1.WORD_HAD)
		p.Finish()
	}
}

// mindOf returns what people know who work on orders whose slots' names are longer
// by tail bytes.
func (w *World) mindOf(tail int) *mind {
	if m := w.minds[tail]; m != nil {
		return m
	}
	m := newMind(w.tb, tail)
	w.minds[tail] = m
	return m
}

// branch begins a history.
func (w *World) branch(s *Script) *play {
	p := &play{
		World: w, script: s, ctx: w.Ctx(), now: w.Now(), height: w.Ctx().BlockHeight(),
		hash:  sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(w.Ctx().BlockHeight()))),
		views: map[int]*job.Lease{}, had: map[string]uint64{},
		games: map[uint64]*game{}, dirty: true,
	}
	p.block = p.ctx
	for name := range people {
		p.had[name] = p.wealth(name)
	}
	return p
}

// wealth returns what an account owns, in utally: balance and stake, also what it has withdrawn.
func (p *play) wealth(name string) uint64 {
	a := named(name)
	sum := p.Bank.GetAllBalances(p.ctx, a.Address).AmountOf("utally").Uint64()
	if peer, err := p.Provider.Get(p.ctx, a.Address); err == nil {
		sum += peer.Stake
	}
	withdrawn, err := p.Provider.Unbonding.Of(p.ctx, a.Address)
	if err != nil {
		p.fail("halt", "what %s has withdrawn: %v", name, err)
	}
	return sum + withdrawn
}

// people are the accounts that names stand for: their keys take a while to make.
var people, names = func() (map[string]chaintest.Account, map[string]string) {
	m, n := map[string]chaintest.Account{}, map[string]string{}
	for _, name := range slices.Concat(everybody, crowd) {
		a := chaintest.Named(name)
		m[name], n[a.String()] = a, name
	}
	return m, n
}()

// named returns the account of a name.
func named(name string) chaintest.Account {
	if a, ok := people[name]; ok {
		return a
	}
	return chaintest.Named(name)
}

// nameOf returns whose address it is, "" if nobody's.
func nameOf(address string) string { return names[address] }

// clock returns the time that windows count, in ms, as of the last block.
func (p *play) clock() int64 { return module.Now(p.at(p.ctx)) }

// next begins a block, wait ms after the last.
func (p *play) next(wait int64) {
	p.height++
	p.now = p.now.Add(time.Duration(wait) * time.Millisecond)
	p.hash = sha256.Sum256(binary.LittleEndian.AppendUint64(p.hash[:], uint64(p.now.UnixMilli())))
	p.block = p.at(p.ctx).WithTxCount(0)
	p.sentNow = 0
	if _, err := p.ModuleManager.PreBlock(p.block); err != nil {
		p.fail("halt", "before a block: %v", err)
	}
	if _, err := p.ModuleManager.BeginBlock(p.block); err != nil {
		p.fail("halt", "the beginning of a block: %v", err)
	}
	if err := p.prove(); err != nil {
		p.fail("halt", "the value of a block: %v", err)
	}
}

// prove gives the block its value, as one with messages has it.
func (p *play) prove() error {
	txs, err := p.Begun(p.block, [][]byte{nil})
	if err != nil {
		return err
	}
	tx, err := p.Tx.TxDecoder()(txs[0])
	if err != nil {
		return err
	}
	return p.handle(p.block, tx.GetMsgs()[0])
}

// at returns ctx at the time and height of the block under way.
func (p *play) at(ctx sdk.Context) sdk.Context {
	h := ctx.BlockHeader()
	h.Height, h.Time, h.ProposerAddress = p.height, p.now, p.World.Ctx().BlockHeader().ProposerAddress
	return ctx.WithBlockHeader(h).WithBlockHeight(p.height).WithBlockTime(p.now).WithHeaderHash(p.hash[:]).
		WithEventManager(sdk.NewEventManager())
}
