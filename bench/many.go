package bench

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/sim"
)

// The chain that is measured.
const (
	manyProviders   = 100_000
	manyLeases      = 10_000
	manyValidators  = 20
	team            = 4                 // providers under each validator that an order can afford
	manyStake       = 1_000_000_000_000 // utally, of a validator
	manyPurse       = 1_000 * manyStake // utally, the consumer's
	perBlock, perTx = 64, 8             // orders that are posted in a block, and in a transaction of it
	manyDue         = 100               // leases that fall due in a block
	manyPause       = 5 * time.Second   // between blocks, once there are leases
	maxTurn         = 700               // blocks of a second after which each order has had a turn
	answerTime      = time.Hour         // longer than it takes to match them all
	longWindow      = 10 * time.Minute
)

// many is a chain with many peers and leases: its registry is generated, and the
// leases come of orders that the market matches.
type many struct {
	*solo.Chain
	consumer *secp256k1.PrivKey
	peer     ed25519.PrivateKey
	order    job.Order
}

// chainRows measures a chain for many, all or the parts that --only names.
func chainRows(ctx context.Context, o Options) (rows []Row, err error) {
	for _, part := range []struct {
		name string
		rows func(context.Context, Options) ([]Row, error)
	}{{"rounds", roundRows}, {"pruned", prunedRows}, {"orders", settledRows}, {"sessions", sessionRows}, {"year", yearRows}, {"blocks", blockRows}} {
		if !strings.Contains(part.name, o.Only) {
			continue
		}
		more, err := part.rows(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		rows = append(rows, more...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("--only %q: give rounds, pruned, orders, sessions, year or blocks", o.Only)
	}
	return rows, nil
}

// roundRows simulates an order of many rounds whose windows are long.
func roundRows(context.Context, Options) ([]Row, error) {
	pace, err := sim.Rounds(64, longWindow.Milliseconds())
	if err != nil {
		return nil, err
	}
	return []Row{
		row("64 rounds without windows", "s", float64(pace.Plain)/1000),
		row("64 rounds, each waits for a window of ten minutes", "s", float64(pace.Waits)/1000),
		row("64 rounds, speculate: all", "s", float64(pace.Ahead)/1000),
		row("of that without windows and one window", "×", pace.Ratio()).atMost(1.1),
	}, nil
}

// blockRows measures what a chain does in a block beside many providers and leases, and what a role
// asks it that takes part in none.
func blockRows(ctx context.Context, o Options) (rows []Row, err error) {
	o.Tell("registering %d providers", manyProviders)
	c, err := newMany(manyProviders)
	if err != nil {
		return nil, err
	}
	quiet, err := c.blocks(ctx, 50, time.Second)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row("block, 10⁵ providers, no lease", "ms", 0).among(quiet))
	matched, err := c.lease(ctx, manyLeases, o.Tell)
	if err != nil {
		return nil, err
	}
	if quiet, err = c.blocks(ctx, 50, time.Second); err != nil {
		return nil, err
	}
	rows = append(rows,
		row("order posted and matched, 10⁵ providers", "ms", 0).among(matched),
		row("block, 10⁵ providers, 10⁴ leases, none due", "ms", 0).among(quiet).atMost(20))
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	rows = append(rows, row("memory of a process that keeps the state and its versions in it", "MB", float64(memory.HeapAlloc)/1e6))
	idle, err := c.idleRows(ctx)
	if err != nil {
		return nil, err
	}
	due, err := c.due(ctx, manyLeases)
	if err != nil {
		return nil, err
	}
	return append(append(rows, idle...),
		row("leases that fall due in a block, where some do", "", 0).among(due.leases),
		row("such a block, state committed", "ms", 0).among(due.blocks),
		row("its EndBlock, of 100 such leases", "ms", 0).among(due.hundred).atMost(20)), nil
}

// newMany begins a chain whose state lies in memory.
func newMany(providers int) (*many, error) {
	c := &many{consumer: secp256k1.GenPrivKeyFromSecret([]byte("consumer")), peer: solo.Seeded("peer of the consumer")}
	me := sdk.AccAddress(c.consumer.PubKey().Address())
	genesis, producer := solo.Genesis(me.String())
	genesis.Accounts = []app.Account{{Address: me.String(), Balance: manyPurse}}
	rules := job.DefaultParams.Quick()
	rules.AnswerTime = answerTime.Milliseconds()
	genesis.Work = wire.ParamsToProto(rules, wire.Sentences{Carelessness: time.Hour.Milliseconds(), Absence: time.Hour.Milliseconds()})
	for v := range manyValidators {
		genesis.Peers = append(genesis.Peers, peerOf("validator", v, providerv1.ROLE_VALIDATOR, manyStake, providerv1.Listing{}))
		genesis.Accounts = append(genesis.Accounts, app.Account{Address: validatorKey(v).address, Balance: manyStake})
	}
	for p := range providers {
		l := providerv1.Listing{Validator: validatorKey(p % manyValidators).address, UnitPrice: 1000}
		if p >= team*manyValidators {
			l.UnitPrice = 100_000
		}
		genesis.Peers = append(genesis.Peers, peerOf("provider", p, providerv1.ROLE_PROVIDER, manyStake/1000, l))
	}
	name := func(s string) canon.Hash { return canon.Sum(canon.Domain("bench/many"), []byte(s)) }
	c.order = job.Order{
		Chain: solo.ID, Consumer: me.String(), Contact: job.Contact{Key: c.peer.Public().(ed25519.PublicKey), Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}},
		Problem: job.Problem{
			Kind: "training", Profile: "fp32", Step: name("step"), Merge: name("merge"), Start: name("start"), Data: name("data"),
			Rounds: 2, Shards: 2, Steps: 6, Interval: 2, Batch: 4, Records: 100, Seed: 7,
			StepFLOPs: 5e8, StepBytes: 1e6, MergeFLOPs: 1e6, MergeBytes: 1e6, StateBytes: 1000,
			Files: []job.File{{Role: "model", CID: "bafymodel", Size: 10}},
		},
		Conditions: job.Conditions{
			Expires: time.Hour.Milliseconds(), MinProviders: 2, Auditors: 1, AuditSegments: 1, Custodians: 3, Speculate: job.MaxUnits,
			UnitTimeout: 600_000, UnitWindow: 60_000, Window: 600_000,
		},
	}
	q, err := job.NewQuote(&c.order.Problem, &c.order.Conditions, job.Rates{GFLOP: 1000}, 500, rules.Tariff)
	if err != nil {
		return nil, err
	}
	c.order.Conditions.MaxPrice = 2 * q.Price
	if c.Chain, err = solo.New(dbm.NewMemDB(), genesis, producer, nil); err != nil {
		return nil, err
	}
	for v := range manyValidators {
		k := validatorKey(v)
		tx, err := c.SignFor(k.key, 0, solo.Gas, &marketv1.MsgPostOffer{Validator: k.address, FeeBps: 500, MaxLeases: 10_000})
		if err != nil {
			return nil, err
		}
		if err := c.deliver(tx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// deliver makes a block in which nothing may fail.
func (c *many) deliver(txs ...[]byte) error {
	done, err := c.Make(time.Second, txs...)
	for _, r := range done {
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("order or offer refused: %s", r.Log)
		}
	}
	return err
}

// lease posts orders, and makes blocks until the market has matched them all. It returns what a block
// takes for each order that it matches, in ms.
func (c *many) lease(ctx context.Context, n int, tell func(string, ...any)) (each []float64, err error) {
	live := 0
	for posted := 0; posted < n; posted += perBlock {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var txs [][]byte
		for t := range uint64(perBlock / perTx) {
			var msgs []sdk.Msg
			for i := range uint64(perTx) {
				o := c.order
				o.Nonce = uint64(posted) + t*perTx + i + 1
				msgs = append(msgs, &marketv1.MsgPostOrder{
					Consumer: o.Consumer, Order: wire.OrderToProto(&o),
					Signature: ed25519.Sign(c.peer, wire.Statement(solo.ID, sdk.AccAddress(c.consumer.PubKey().Address()))),
				})
			}
			tx, err := c.SignFor(c.consumer, t, app.MaxGas, msgs...)
			if err != nil {
				return nil, err
			}
			txs = append(txs, tx)
		}
		ms, matched, err := c.matching(txs...)
		if err != nil {
			return nil, err
		}
		if live += matched; matched > 0 {
			each = append(each, ms/float64(matched))
		}
		if posted%(16*perBlock) == 0 {
			tell("%d of %d orders posted", posted+perBlock, n)
		}
	}
	for idle := 0; live < n; idle++ {
		ms, matched, err := c.matching()
		if err == nil && idle == maxTurn {
			err = fmt.Errorf("no order was matched for %d blocks, %d are live", idle, live)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if matched > 0 {
			live, idle, each = live+matched, 0, append(each, ms/float64(matched))
		}
	}
	return each, nil
}

// matching makes a block, and returns what it takes, in ms, and how many orders it matches.
func (c *many) matching(txs ...[]byte) (ms float64, orders int, err error) {
	begun := time.Now()
	err = c.deliver(txs...)
	return float64(time.Since(begun).Microseconds()) / 1000, len(c.Happened["tally.market.v1.EventMatched"]), err
}

// blocks makes empty blocks and returns what each takes, commit included, in ms.
func (c *many) blocks(ctx context.Context, n int, after time.Duration) (took []float64, err error) {
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		begun := time.Now()
		if _, err := c.Make(after); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(begun).Microseconds())/1000)
	}
	return took, nil
}

// dueBlocks are blocks in which leases fall due: how many, what a block takes, and what its end takes
// of a hundred of them, in ms.
type dueBlocks struct{ leases, blocks, hundred []float64 }

// due lets the time pass in which custodians should have fetched the files, which nobody does. The
// leases fall due as they began.
func (c *many) due(ctx context.Context, n int) (d dueBlocks, err error) {
	ends := solo.MeasureEnds()
	// Blocks are seconds apart, and follow at once here. So the collector runs between some of them, and
	// neither in one nor so late that a block is measured by how fast the system gives memory.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	for waited := time.Duration(0); waited < 2*answerTime && len(d.leases) < max(n/manyDue, 1); waited += manyPause {
		if len(d.leases)%10 == 0 && (len(d.leases) > 0 || waited == 0) {
			runtime.GC()
		}
		ms, err := c.blocks(ctx, 1, manyPause)
		if err != nil {
			return d, err
		}
		if n := float64(len(c.Happened["tally.work.v1.EventProgress"])); n > 0 {
			d.leases, d.blocks = append(d.leases, n), append(d.blocks, ms[0])
			d.hundred = append(d.hundred, float64(ends.Took().Microseconds())/1000*manyDue/n)
		}
	}
	if len(d.leases) == 0 {
		return d, errors.New("no lease fell due")
	}
	return d, nil
}

type signer struct {
	key     *secp256k1.PrivKey
	address string
}

// validatorKey returns the account of the i-th validator.
func validatorKey(i int) signer {
	key := secp256k1.GenPrivKeyFromSecret(fmt.Append(nil, "validator ", i))
	return signer{key, sdk.AccAddress(key.PubKey().Address()).String()}
}

func peerOf(what string, i int, role providerv1.Role, stake uint64, l providerv1.Listing) providerv1.Peer {
	name := fmt.Sprint(what, " ", i)
	h := canon.Sum(canon.Domain("bench/many"), []byte(name))
	account := sdk.AccAddress(h[:20]).String()
	if role == providerv1.ROLE_VALIDATOR {
		account = validatorKey(i).address
	}
	return providerv1.Peer{
		Account: account, Roles: []providerv1.Role{role}, PeerKey: solo.Seeded(name).Public().(ed25519.PublicKey), VrfKey: solo.Seeded("vrf of " + name).Public().(ed25519.PublicKey),
		Listing: l, Stake: stake,
	}
}
