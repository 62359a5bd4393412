// Package town measures what orders cost a chain: it lets one consumer's orders be posted, matched,
// computed, attested, audited and settled, as fast as a node takes it. Sessions with a language model it
// lets many consumers open, and settle.
//
// Call [New], and then [Town.Settle] or [Town.Sessions] as often as you like; [Town.Pass] lets time pass. One lead, its
// provider, and those who keep and audit do at once what is due.
//
// Invariants: signatures are checked and blocks are on disk, as on a real node; no transaction may fail.
// States are hashes in place of what a trivial program would give.
package town

import (
	"context"
	"crypto/ed25519"
	"fmt"
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
	judges      = 5                     // validators
	perTx       = 16                    // messages of a transaction
	perBlock    = 20                    // transactions of a block
	gas         = 4_900_000             // of a transaction
	atOnce      = 2                     // transactions of an account, as many as fit its room in a mempool
	stake       = 100_000_000_000_000   // utally, of each validator and of the provider
	balance     = stake / 100           // of each, utally
	purse       = 1_000_000_000_000_000 // the consumer's, utally
	pause       = 2 * time.Second       // between blocks
	maxPause    = 30 * time.Second      // that counts whole
	maxBlocks   = 20_000
	unitTimeout = time.Hour
)

// Retention is how long a settled lease is kept.
const Retention = time.Hour

// Town is a chain on disk and everybody who takes part in its orders.
type Town struct {
	*solo.Chain
	people map[string]person
	orders map[canon.Hash]job.Order
	posted uint64 // orders so far
	spent  Spent
}

// Spent is what a node spends on orders.
type Spent struct {
	Wall     time.Duration
	CPU      time.Duration // on all cores
	Messages int           // that were executed
	Bytes    int           // of their transactions
}

// person is an account with the keys of its peer.
type person struct {
	key       *secp256k1.PrivKey
	peer, vrf ed25519.PrivateKey
}

func (p person) address() string { return sdk.AccAddress(p.key.PubKey().Address()).String() }

func personOf(name string) person {
	return person{secp256k1.GenPrivKeyFromSecret([]byte(name)), solo.Seeded(name), solo.Seeded("vrf of " + name)}
}

// duty is a message that somebody owes.
type duty struct {
	by  string
	msg sdk.Msg
}

// New begins a town whose chain lies in a folder.
func New(dir string) (*Town, error) { return At(dir, time.Time{}) }

// At is New with the time of the genesis, unless that is zero.
func At(dir string, begin time.Time) (*Town, error) {
	t := &Town{people: map[string]person{}, orders: map[canon.Hash]job.Order{}}
	consumer := t.add(personOf("town consumer"))
	genesis, producer := solo.Genesis(consumer.address())
	if !begin.IsZero() {
		genesis.Time = begin
	}
	register := func(p person, role providerv1.Role, stake uint64, l providerv1.Listing) {
		genesis.Peers = append(genesis.Peers, providerv1.Peer{
			Account: p.address(), Roles: []providerv1.Role{role}, Stake: stake, Listing: l,
			PeerKey: p.peer.Public().(ed25519.PublicKey), VrfKey: p.vrf.Public().(ed25519.PublicKey),
		})
		genesis.Accounts = append(genesis.Accounts, app.Account{Address: p.address(), Balance: balance})
	}
	genesis.Accounts = append(genesis.Accounts, app.Account{Address: consumer.address(), Balance: purse})
	rules := job.DefaultParams.Quick().WithoutForced()
	rules.MaxOpen = job.MaxUnits
	genesis.Work = wire.ParamsToProto(rules, wire.Sentences{Carelessness: time.Hour.Milliseconds(), Absence: time.Hour.Milliseconds()})
	genesis.Work.RetentionMs = Retention.Milliseconds()
	var validators []person
	for v := range judges {
		p := t.add(personOf(fmt.Sprint("town validator ", v)))
		validators = append(validators, p)
		register(p, providerv1.ROLE_VALIDATOR, stake, providerv1.Listing{})
	}
	register(t.add(personOf("town provider")), providerv1.ROLE_PROVIDER, stake, providerv1.Listing{Validator: validators[0].address(), UnitPrice: 1000})
	for i := range crowd {
		genesis.Accounts = append(genesis.Accounts, app.Account{Address: t.add(guest(i)).address(), Balance: balance})
	}
	db, err := dbm.NewGoLevelDB("application", dir, nil)
	if err != nil {
		return nil, err
	}
	if t.Chain, err = solo.New(db, genesis, producer, nil); err != nil {
		return nil, err
	}
	return t, t.perform(context.Background(), []duty{{validators[0].address(), &marketv1.MsgPostOffer{Validator: validators[0].address(), FeeBps: 500, MaxLeases: 10_000}}})
}

// add lets somebody live in the town.
func (t *Town) add(p person) person {
	t.people[p.address()] = p
	return p
}

// post returns the messages that post orders of so many units.
func (t *Town) post(n, shards int) (out []duty, err error) {
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
			UnitTimeout: unitTimeout.Milliseconds(), UnitWindow: 5_000, Window: 10_000,
		},
	}
	q, err := job.NewQuote(&o.Problem, &o.Conditions, job.Rates{GFLOP: 1000}, 500, job.DefaultParams.Quick().WithoutForced().Tariff)
	if err != nil {
		return nil, err
	}
	o.Conditions.MaxPrice = 2 * q.Price
	signature := ed25519.Sign(consumer.peer, wire.Statement(solo.ID, sdk.AccAddress(consumer.key.PubKey().Address())))
	for range n {
		t.posted++
		o.Nonce = t.posted
		t.orders[o.ID()] = o
		out = append(out, duty{o.Consumer, &marketv1.MsgPostOrder{Consumer: o.Consumer, Order: wire.OrderToProto(&o), Signature: signature}})
	}
	return out, nil
}

// Settle brings n orders of so many units from their post to their settlement, and returns what the node
// spends on them.
func (t *Town) Settle(ctx context.Context, n, shards int) (Spent, error) {
	t.spent, t.orders = Spent{}, map[canon.Hash]job.Order{}
	due, err := t.post(n, shards)
	if err != nil {
		return Spent{}, err
	}
	for blocks := 0; len(t.orders) > 0; blocks++ {
		if blocks == maxBlocks {
			return Spent{}, fmt.Errorf("%d of %d orders are not settled after %d blocks", len(t.orders), n, blocks)
		}
		if err := t.perform(ctx, due); err != nil {
			return Spent{}, err
		}
		if due, err = t.duties(); err != nil {
			return Spent{}, err
		}
	}
	return t.spent, nil
}

// perform puts messages into transactions, and these into blocks. There is one block if nothing is to do.
func (t *Town) perform(ctx context.Context, due []duty) error {
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
		for room := true; room && len(txs) < perBlock; {
			room = false
			for _, name := range names {
				msgs := by[name]
				if len(msgs) == 0 || len(txs) == perBlock || nonces[name] == atOnce {
					continue
				}
				n := together(msgs)
				tx, err := t.SignFor(t.people[name].key, nonces[name], gas, msgs[:n]...)
				if err != nil {
					return err
				}
				txs, room = append(txs, tx), true
				nonces[name]++
				t.spent.Messages += n
				if by[name] = msgs[n:]; len(by[name]) == 0 {
					delete(by, name)
				}
			}
		}
		if err := t.take(ctx, txs); err != nil {
			return err
		}
	}
	return nil
}

// together returns how many of an account's messages share a transaction.
func together(msgs []sdk.Msg) (n int) {
	for weight := 0; n < min(perTx, len(msgs)); n++ {
		weight++
		if m, ok := msgs[n].(*workv1.MsgAssign); ok {
			weight += len(m.Units) / 8
		}
		if n > 0 && weight > perTx {
			return n
		}
	}
	return n
}

// take lets the node check and execute transactions, which all must succeed, and counts its time.
func (t *Town) take(ctx context.Context, txs [][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	begun, used := time.Now(), cputime.Used()
	for _, tx := range txs {
		t.spent.Bytes += len(tx)
		r, err := t.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_New})
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("a transaction does not enter the mempool: %s", r.Log)
		}
		if err != nil {
			return err
		}
	}
	done, err := t.Make(pause, txs...)
	if err != nil {
		return err
	}
	t.spent.Wall += time.Since(begun)
	t.spent.CPU += cputime.Used() - used
	for _, r := range done {
		if r.Code != 0 {
			return fmt.Errorf("a transaction failed: %s", r.Log)
		}
	}
	return nil
}

// duties returns what everybody owes now, and forgets orders that are settled.
func (t *Town) duties() (out []duty, err error) {
	for id := range t.orders { // order: each by itself
		var r workv1.QueryStateResponse
		switch err := t.Ask("/tally.work.v1.Query/State", &workv1.QueryStateRequest{Order: id.String()}, &r); {
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
			delete(t.orders, id)
		case job.Active:
			out = append(out, t.owed(id, l)...)
		}
	}
	return out, nil
}

// owed returns what an active lease waits for.
func (t *Town) owed(id canon.Hash, l *job.Lease) (out []duty) {
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
			p := t.people[l.Providers[0].Account]
			a := job.Acceptance{Order: id, Unit: i, Attempt: u.Attempt, Provider: p.address()}
			assign.Units = append(assign.Units, workv1.Assignment{Unit: uint32(i), Attempt: uint32(u.Attempt), Provider: p.address(), Signature: ed25519.Sign(p.peer, a.SignBytes())})
			continue
		}
		out = append(out, t.owedOf(id, l, i)...)
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
func (t *Town) owedOf(id canon.Hash, l *job.Lease, i int) (out []duty) {
	u := &l.Units[i]
	switch u.Status {
	case job.Assigned:
		p := t.people[u.Provider]
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
				out = append(out, duty{a.Auditor, t.report(id, u, i, a.Auditor)})
			}
		}
	}
	return out
}

// report returns an auditor's answer.
func (t *Town) report(id canon.Hash, u *job.Unit, i int, auditor string) sdk.Msg {
	receipt := u.Receipt.ID()
	_, pi, err := vrf.Prove(t.people[auditor].vrf, proof.AuditInput(receipt, auditor))
	if err != nil {
		panic(err) // the key is ours
	}
	digest := proof.Digest(auditor, receipt, nil)
	return &workv1.MsgReport{Auditor: auditor, Order: id.String(), Unit: uint32(i), Attempt: uint32(u.Attempt), Proof: pi, Digest: digest[:], Pass: true}
}

// Pass lets protocol time pass, in which nobody does anything, and then until nothing is pruned any more.
func (t *Town) Pass(ctx context.Context, whole time.Duration) error {
	for passed, gone := time.Duration(0), 0; passed < whole || gone > 0; passed += maxPause {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := t.Make(maxPause); err != nil {
			return err
		}
		gone = len(t.Happened["tally.work.v1.EventPruned"])
	}
	return nil
}

// Size returns the bytes of all keys and values of the state.
func (t *Town) Size() (n int, err error) {
	all, ok := t.CommitMultiStore().(*rootmulti.Store)
	if !ok {
		return 0, fmt.Errorf("the state is a %T", t.CommitMultiStore())
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
