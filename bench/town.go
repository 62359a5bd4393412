package bench

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	leasing "github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/cputime"
)

// What the town does at once.
const (
	townValidators  = 5
	townOrders      = 400       // that are under way together
	townShards      = 64        // units of an order with many
	townMessages    = 16        // in a transaction
	townTxs         = 20        // in a block
	townGas         = 4_900_000 // of a transaction
	townAtOnce      = 2         // transactions of an account, as many as fit its room in a mempool
	townRetention   = time.Hour
	townPause       = 2 * time.Second  // between blocks
	maxPause        = 30 * time.Second // that counts whole
	maxTownBlocks   = 20_000
	townUnitTimeout = time.Hour
)

// town is a chain on disk and everybody who takes part in its orders: one consumer, one lead, its
// provider, and those who keep and audit. Each does at once what is due. States are hashes in place of what
// a trivial program would give.
type town struct {
	*solo.Chain
	dir    string
	people map[string]person
	orders map[canon.Hash]job.Order
	posted uint64        // orders so far
	chain  time.Duration // that the node has taken
	cpu    time.Duration // of it, on all cores
	sent   int           // messages that were executed
	bytes  int           // of their transactions
}

// person is an account with the keys of its peer.
type person struct {
	key       *secp256k1.PrivKey
	peer, vrf ed25519.PrivateKey
}

func (p person) address() string { return sdk.AccAddress(p.key.PubKey().Address()).String() }

func personOf(name string) person {
	return person{secp256k1.GenPrivKeyFromSecret([]byte(name)), seeded(name), seeded("vrf of " + name)}
}

// duty is a message that somebody owes.
type duty struct {
	by  string
	msg sdk.Msg
}

// settledRows measures how many orders a chain settles, how many units it takes receipts of, and what of
// them stays in its state.
func settledRows(ctx context.Context, o Options) (rows []Row, err error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c, err := newTown(dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	o.Tell("settling %d orders of one unit", townOrders)
	took, err := c.settle(ctx, townOrders, 1)
	if err != nil {
		return nil, err
	}
	one, cpu, messages, bytes := took, c.cpu, c.sent, c.bytes
	kept, err := c.size()
	if err != nil {
		return nil, err
	}
	if err := c.pruneAll(ctx); err != nil {
		return nil, err
	}
	left, err := c.size()
	if err != nil {
		return nil, err
	}
	o.Tell("settling %d orders of %d units", townOrders/townShards+1, townShards)
	many := townOrders/townShards + 1
	if took, err = c.settle(ctx, many, townShards); err != nil {
		return nil, err
	}
	return []Row{
		row("orders of one unit, from post to settlement, signatures checked, committed to disk", "/s", townOrders/one.Seconds()).atLeast(50),
		row("CPU of the node for one", "ms", 1000*cpu.Seconds()/townOrders),
		row("messages of such an order", "", float64(messages)/townOrders),
		row("bytes of its transactions", "B", float64(bytes)/townOrders),
		row("units, their messages 16 in a transaction", "/s", float64(many*townShards)/took.Seconds()).atLeast(200),
		row("CPU of the node for one", "ms", 1000*c.cpu.Seconds()/float64(many*townShards)),
		row("state of a settled order of one unit: keys and values", "B", float64(kept-left)/townOrders),
	}, nil
}

func newTown(dir string) (*town, error) {
	c := &town{dir: dir, people: map[string]person{}, orders: map[canon.Hash]job.Order{}}
	add := func(name string) person {
		p := personOf(name)
		c.people[p.address()] = p
		return p
	}
	consumer := add("town consumer")
	genesis, producer := solo.Genesis(consumer.address())
	register := func(p person, role providerv1.Role, stake uint64, l providerv1.Listing) {
		genesis.Peers = append(genesis.Peers, providerv1.Peer{
			Account: p.address(), Roles: []providerv1.Role{role}, Stake: stake, Listing: l,
			PeerKey: p.peer.Public().(ed25519.PublicKey), VrfKey: p.vrf.Public().(ed25519.PublicKey),
		})
		genesis.Accounts = append(genesis.Accounts, app.Account{Address: p.address(), Balance: manyStake})
	}
	genesis.Accounts = append(genesis.Accounts, app.Account{Address: consumer.address(), Balance: manyPurse})
	rules := job.DefaultParams.Quick().WithoutForced()
	rules.MaxOpen = job.MaxUnits
	genesis.Work = wire.ParamsToProto(rules, time.Hour.Milliseconds())
	genesis.Work.RetentionMs = townRetention.Milliseconds()
	var validators []person
	for v := range townValidators {
		p := add(fmt.Sprint("town validator ", v))
		validators = append(validators, p)
		register(p, providerv1.ROLE_VALIDATOR, 100*manyStake, providerv1.Listing{})
	}
	register(add("town provider"), providerv1.ROLE_PROVIDER, 100*manyStake, providerv1.Listing{Validator: validators[0].address(), UnitPrice: 1000})
	db, err := dbm.NewGoLevelDB("application", dir, nil)
	if err != nil {
		return nil, err
	}
	if c.Chain, err = solo.New(db, genesis, producer, nil); err != nil {
		return nil, err
	}
	return c, c.perform(context.Background(), []duty{{validators[0].address(), &marketv1.MsgPostOffer{Validator: validators[0].address(), FeeBps: 500, MaxLeases: 10_000}}})
}

// post returns the messages that post orders of so many units.
func (c *town) post(n, shards int) (out []duty, err error) {
	consumer := personOf("town consumer")
	name := func(s string) canon.Hash { return canon.Sum(canon.Domain("bench/town"), []byte(s)) }
	o := job.Order{
		Chain: solo.ID, Consumer: consumer.address(), Contact: job.Contact{Key: consumer.peer.Public().(ed25519.PublicKey), Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}},
		Problem: job.Problem{
			Kind: "training", Profile: "fp32", Step: name("step"), Merge: name("merge"), Start: name("start"), Data: name("data"),
			Rounds: 1, Shards: shards, Steps: 1, Interval: 1, Batch: 1, Records: 100, Seed: 7,
			StepFLOPs: 1e6, StepBytes: 1e3, MergeFLOPs: 1e3, MergeBytes: 1e3, StateBytes: 1000,
			Files: []job.File{{Role: "model", CID: "bafymodel", Size: 10}},
		},
		Conditions: job.Conditions{
			Expires: time.Hour.Milliseconds(), MinProviders: 1, Auditors: 1, AuditSegments: 1, Custodians: 3, Speculate: job.MaxUnits,
			UnitTimeout: townUnitTimeout.Milliseconds(), UnitWindow: 5_000, Window: 10_000,
		},
	}
	q, err := job.NewQuote(&o.Problem, &o.Conditions, job.Rates{GFLOP: 1000}, 500, job.DefaultParams.Quick().WithoutForced().Tariff)
	if err != nil {
		return nil, err
	}
	o.Conditions.MaxPrice = 2 * q.Price
	signature := ed25519.Sign(consumer.peer, wire.Statement(solo.ID, sdk.AccAddress(consumer.key.PubKey().Address())))
	for range n {
		c.posted++
		o.Nonce = c.posted
		c.orders[o.ID()] = o
		out = append(out, duty{o.Consumer, &marketv1.MsgPostOrder{Consumer: o.Consumer, Order: wire.OrderToProto(&o), Signature: signature}})
	}
	return out, nil
}

// settle brings orders from their post to their settlement, and returns the time that the node takes.
func (c *town) settle(ctx context.Context, n, shards int) (time.Duration, error) {
	c.chain, c.cpu, c.sent, c.bytes, c.orders = 0, 0, 0, 0, map[canon.Hash]job.Order{}
	due, err := c.post(n, shards)
	if err != nil {
		return 0, err
	}
	for blocks := 0; len(c.orders) > 0; blocks++ {
		if blocks == maxTownBlocks {
			return 0, fmt.Errorf("%d of %d orders are not settled after %d blocks", len(c.orders), n, blocks)
		}
		if err := c.perform(ctx, due); err != nil {
			return 0, err
		}
		if due, err = c.duties(); err != nil {
			return 0, err
		}
	}
	return c.chain, nil
}

// perform puts messages into transactions, and these into blocks. There is one block if nothing is to do.
func (c *town) perform(ctx context.Context, due []duty) error {
	by := map[string][]sdk.Msg{}
	var names []string
	for _, d := range due {
		if by[d.by] == nil {
			names = append(names, d.by)
		}
		by[d.by] = append(by[d.by], d.msg)
	}
	for first := true; first || len(by) > 0; first = false {
		var txs [][]byte
		nonces := map[string]uint64{}
		for room := true; room && len(txs) < townTxs; {
			room = false
			for _, name := range names {
				msgs := by[name]
				if len(msgs) == 0 || len(txs) == townTxs || nonces[name] == townAtOnce {
					continue
				}
				n := together(msgs)
				tx, err := c.SignFor(c.people[name].key, nonces[name], townGas, msgs[:n]...)
				if err != nil {
					return err
				}
				txs, room = append(txs, tx), true
				nonces[name]++
				c.sent += n
				if by[name] = msgs[n:]; len(by[name]) == 0 {
					delete(by, name)
				}
			}
		}
		if err := c.take(ctx, txs); err != nil {
			return err
		}
	}
	return nil
}

// together returns how many of an account's messages share a transaction.
func together(msgs []sdk.Msg) (n int) {
	for weight := 0; n < min(townMessages, len(msgs)); n++ {
		weight++
		if m, ok := msgs[n].(*workv1.MsgAssign); ok {
			weight += len(m.Units) / 8
		}
		if n > 0 && weight > townMessages {
			return n
		}
	}
	return n
}

// take lets the node check and execute transactions, which all must succeed, and counts its time.
func (c *town) take(ctx context.Context, txs [][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	begun, used := time.Now(), cputime.Used()
	for _, tx := range txs {
		c.bytes += len(tx)
		r, err := c.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_New})
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("a transaction does not enter the mempool: %s", r.Log)
		}
		if err != nil {
			return err
		}
	}
	done, err := c.Make(townPause, txs...)
	if err != nil {
		return err
	}
	c.chain, c.cpu = c.chain+time.Since(begun), c.cpu+cputime.Used()-used
	for _, r := range done {
		if r.Code != 0 {
			return fmt.Errorf("a transaction failed: %s", r.Log)
		}
	}
	return nil
}

// duties returns what everybody owes now, and forgets orders that are settled.
func (c *town) duties() (out []duty, err error) {
	for id := range c.orders { // order: each by itself
		var r workv1.QueryStateResponse
		switch err := c.Ask("/tally.work.v1.Query/State", &workv1.QueryStateRequest{Order: id.String()}, &r); {
		case err != nil && strings.Contains(err.Error(), leasing.ErrNoLease.Error()):
			continue // it is not matched yet
		case err != nil:
			return nil, err
		}
		l := &job.Lease{}
		if err := canon.Unmarshal(r.Lease, l); err != nil {
			return nil, err
		}
		switch l.Phase {
		case job.Settled:
			delete(c.orders, id)
		case job.Active:
			out = append(out, c.owed(id, l)...)
		}
	}
	return out, nil
}

// owed returns what an active lease waits for.
func (c *town) owed(id canon.Hash, l *job.Lease) (out []duty) {
	if l.Files.Said == job.Silent {
		drawn := l.Files.Custodians // none before the next block
		for _, k := range drawn[:min(l.Order.Conditions.Quorum(), len(drawn))] {
			out = append(out, duty{k.Account, &workv1.MsgAttestFiles{Custodian: k.Account, Order: id.String(), Draw: uint32(l.Files.Draws), Says: workv1.WORD_HAD}})
		}
		return out
	}
	accepted := true
	assign := &workv1.MsgAssign{Lead: l.Lead(), Order: id.String()}
	for i := range l.Units {
		u := &l.Units[i]
		accepted = accepted && u.Status == job.Accepted
		if u.Status == job.Open {
			p := c.people[l.Providers[0].Account]
			a := job.Acceptance{Order: id, Unit: i, Attempt: u.Attempt, Provider: p.address()}
			assign.Units = append(assign.Units, workv1.Assignment{Unit: uint32(i), Attempt: uint32(u.Attempt), Provider: p.address(), Signature: ed25519.Sign(p.peer, a.SignBytes())})
			continue
		}
		out = append(out, c.owedOf(id, l, i)...)
	}
	if len(assign.Units) > 0 {
		out = append(out, duty{assign.Lead, assign})
	}
	if accepted && l.Merges[0].Root.IsZero() {
		root := canon.Sum(canon.Domain("bench/town"), []byte("merged"))
		out = append(out, duty{l.Lead(), &workv1.MsgMerge{Lead: l.Lead(), Order: id.String(), Root: root[:]}})
	}
	return out
}

// owedOf returns what a unit that is given out waits for.
func (c *town) owedOf(id canon.Hash, l *job.Lease, i int) (out []duty) {
	u := &l.Units[i]
	switch u.Status {
	case job.Assigned:
		p := c.people[u.Provider]
		start := l.RoundStart(0)
		r := job.Receipt{
			Order: id, Unit: i, Attempt: u.Attempt, Provider: u.Provider, Start: start, FLOPs: l.Order.Problem.UnitFLOPs(),
			Checkpoints: []canon.Hash{start, canon.Sum(canon.Domain("bench/town"), fmt.Append(nil, "unit ", i))},
			Data:        job.File{Role: "receipt", CID: "bafyreceipt", Size: 1000},
		}
		out = append(out, duty{u.Provider, &workv1.MsgSubmit{Provider: u.Provider, Receipt: wire.ReceiptToProto(&r), Signature: ed25519.Sign(p.peer, r.SignBytes())}})
	case job.Received, job.Counted:
		done, want := 0, l.Order.Conditions.Quorum()
		for _, k := range u.Attested {
			if k.Done {
				done++
			}
		}
		for _, k := range u.Attested {
			if !k.Done && done < want {
				done++
				out = append(out, duty{k.Custodian, &workv1.MsgAttest{Custodian: k.Custodian, Order: id.String(), Unit: uint32(i), Attempt: uint32(u.Attempt)}})
			}
		}
		for _, a := range u.Audits {
			if !a.Done {
				out = append(out, duty{a.Auditor, c.report(id, u, i, a.Auditor)})
			}
		}
	}
	return out
}

// report returns an auditor's answer.
func (c *town) report(id canon.Hash, u *job.Unit, i int, auditor string) sdk.Msg {
	receipt := u.Receipt.ID()
	_, pi, err := vrf.Prove(c.people[auditor].vrf, proof.AuditInput(receipt, auditor))
	if err != nil {
		panic(err) // the key is ours
	}
	digest := proof.Digest(auditor, receipt, nil)
	return &workv1.MsgReport{Auditor: auditor, Order: id.String(), Unit: uint32(i), Attempt: uint32(u.Attempt), Proof: pi, Digest: digest[:], Pass: true}
}

// pruneAll lets the retention pass, until nothing is pruned any more.
func (c *town) pruneAll(ctx context.Context) error {
	for passed, gone := time.Duration(0), 0; passed < 2*townRetention || gone > 0; passed += maxPause {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := c.Make(maxPause); err != nil {
			return err
		}
		gone = len(c.Happened["tally.work.v1.EventPruned"])
	}
	return nil
}

// size returns the bytes of all keys and values of the state.
func (c *town) size() (n int, err error) {
	all, ok := c.CommitMultiStore().(*rootmulti.Store)
	if !ok {
		return 0, fmt.Errorf("the state is a %T", c.CommitMultiStore())
	}
	for name := range all.StoreKeysByName() { // order: a sum
		kv, ok := all.GetStoreByName(name).(storetypes.KVStore)
		if !ok {
			continue // in memory alone
		}
		at := kv.Iterator(nil, nil)
		for ; at.Valid(); at.Next() {
			n += len(at.Key()) + len(at.Value())
		}
		if err := at.Close(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// onDisk returns the bytes of the files of the chain's database.
func onDisk(dir string) (n int64, err error) {
	return n, filepath.Walk(dir, func(_ string, f os.FileInfo, err error) error {
		if err == nil && !f.IsDir() {
			n += f.Size()
		}
		return err
	})
}
