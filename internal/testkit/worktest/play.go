package worktest

import (
	"context"
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Computer knows the states that units and merges end in.
type Computer interface {
	// Checkpoints returns the states of a unit at 0, Interval, …, Steps.
	Checkpoints(unit int, start canon.Hash) []canon.Hash
	// Merge returns the state that units which ended so merge into.
	Merge(ends []canon.Hash) canon.Hash
}

// Play is an order on a chain under test.
type Play struct {
	*chaintest.Chain
	Computer
	T     testing.TB
	Order job.Order
	ID    canon.Hash
	Work  workv1.QueryClient
}

// Offer posts a validator's offer.
func Offer(c *chaintest.Chain, name string) chaintest.Block {
	v := chaintest.Named(name)
	return c.Deliver(v, &marketv1.MsgPostOffer{Validator: v.String(), FeeBps: 500, MaxLeases: 8})
}

// Post returns the message that posts an order of Consumer.
func Post(o job.Order) *marketv1.MsgPostOrder { return PostOf(Consumer, o) }

// PostOf is Post of another consumer, whose peer the order names.
func PostOf(who chaintest.Account, o job.Order) *marketv1.MsgPostOrder {
	return &marketv1.MsgPostOrder{
		Consumer: o.Consumer, Order: wire.OrderToProto(&o),
		Signature: ed25519.Sign(who.Peer, wire.Statement(o.Chain, who.Address)),
	}
}

// Begin posts an offer of v0 and an order, lets them meet, and a quorum of custodians attest
// to the order's files.
func Begin(t testing.TB, c *chaintest.Chain, o job.Order) *Play {
	t.Helper()
	p := Meet(t, c, o)
	p.SayOfFiles(workv1.WORD_HAD)
	return p
}

// Meet posts an offer of v0 and an order, and lets them meet.
func Meet(t testing.TB, c *chaintest.Chain, o job.Order) *Play {
	t.Helper()
	Offer(c, "v0")
	c.Deliver(Consumer, Post(o))
	c.NextBlock(time.Second)
	p := Join(t, c, o)
	p.Lease() // it exists
	return p
}

// FilesMsg returns a word about the order's files.
func (p *Play) FilesMsg(custodian string, says workv1.Word) *workv1.MsgAttestFiles {
	p.T.Helper()
	return &workv1.MsgAttestFiles{Custodian: custodian, Order: p.ID.String(), Draw: p.Lease().Files.Draws, Says: says}
}

// SayOfFiles lets a quorum of custodians say a word of the order's files, in one block.
func (p *Play) SayOfFiles(says workv1.Word) chaintest.Block {
	p.T.Helper()
	for _, k := range p.Lease().Files.Custodians[:p.Order.Conditions.Quorum()] {
		p.Queue(Named(p.T, k.Account), p.FilesMsg(k.Account, says))
	}
	return p.Flush()
}

// Join returns the play of an order that is posted already.
func Join(t testing.TB, c *chaintest.Chain, o job.Order) *Play {
	return &Play{Chain: c, Computer: Fabricated{&o.Problem, ""}, T: t, Order: o, ID: o.ID(), Work: workv1.NewQueryClient(c)}
}

// Named returns the account of the network with the given address.
func Named(t testing.TB, address string) chaintest.Account {
	t.Helper()
	for _, name := range slices.Concat(Validators, Providers, Rivals, Reserve, []string{Consumer.Name, Challenger.Name}) {
		if a := chaintest.Named(name); a.String() == address {
			return a
		}
	}
	t.Fatalf("%s is nobody of the network", address)
	return chaintest.Account{}
}

// Lease returns the lease as clients see it.
func (p *Play) Lease() workv1.Lease {
	p.T.Helper()
	r, err := p.Work.Lease(context.Background(), &workv1.QueryLeaseRequest{Order: p.ID.String()})
	if err != nil {
		p.T.Fatal(err)
	}
	return r.Lease
}

// State returns the lease as the chain has it.
func (p *Play) State() *job.Lease {
	p.T.Helper()
	r, err := p.Work.State(context.Background(), &workv1.QueryStateRequest{Order: p.ID.String()})
	l := &job.Lease{}
	if err == nil {
		err = canon.Unmarshal(r.Lease, l)
	}
	if err != nil {
		p.T.Fatal(err)
	}
	return l
}

// Unit returns a unit as clients see it.
func (p *Play) Unit(unit int) workv1.Unit {
	p.T.Helper()
	r, err := p.Work.Unit(context.Background(), &workv1.QueryUnitRequest{Order: p.ID.String(), Unit: uint32(unit)})
	if err != nil {
		p.T.Fatal(err)
	}
	return r.Unit
}

// Lead returns the account that leads now.
func (p *Play) Lead() chaintest.Account { return Named(p.T, p.Lease().Lead) }

// AssignMsg returns the message by which the lead gives a unit to a provider.
func (p *Play) AssignMsg(unit int, provider string) *workv1.MsgAssign {
	a := chaintest.Named(provider)
	acc := job.Acceptance{Order: p.ID, Unit: unit, Attempt: int(p.Unit(unit).Attempt), Provider: a.String()}
	return &workv1.MsgAssign{Lead: p.Lease().Lead, Order: p.ID.String(), Units: []workv1.Assignment{{
		Unit: uint32(unit), Attempt: uint32(acc.Attempt), Provider: a.String(), Signature: ed25519.Sign(a.Peer, acc.SignBytes()),
	}}}
}

// Receipt returns the receipt that a unit's provider would post.
func (p *Play) Receipt(unit int) job.Receipt {
	u := p.Unit(unit)
	start, err := canon.HashOf(p.Lease().Root)
	if err != nil {
		p.T.Fatal(err)
	}
	return job.Receipt{
		Order: p.ID, Unit: unit, Attempt: int(u.Attempt), Provider: u.Provider, Start: start,
		Checkpoints: p.Checkpoints(unit, start), FLOPs: p.Order.Problem.UnitFLOPs(),
		Data: job.File{Role: "receipt", CID: "bafyreceipt", Size: 1 << 20},
	}
}

// SubmitMsg returns the message that posts a receipt, signed by its provider.
func (p *Play) SubmitMsg(r job.Receipt) *workv1.MsgSubmit {
	a := Named(p.T, r.Provider)
	return &workv1.MsgSubmit{Provider: r.Provider, Receipt: wire.ReceiptToProto(&r), Signature: ed25519.Sign(a.Peer, r.SignBytes())}
}

// ReportMsg returns an auditor's answer about a unit.
func (p *Play) ReportMsg(unit int, auditor chaintest.Account, pass bool) *workv1.MsgReport {
	p.T.Helper()
	u := p.Unit(unit)
	receipt, err := canon.HashOf(u.ReceiptId)
	if err != nil {
		p.T.Fatal(err)
	}
	_, pi, err := vrf.Prove(auditor.VRF, proof.AuditInput(receipt, auditor.String()))
	if err != nil {
		p.T.Fatal(err)
	}
	digest := proof.Digest(auditor.String(), receipt, nil)
	return &workv1.MsgReport{
		Auditor: auditor.String(), Order: p.ID.String(), Unit: uint32(unit), Attempt: u.Attempt,
		Proof: pi, Digest: digest[:], Pass: pass,
	}
}

// MergeMsg returns the message by which the lead merges the round.
func (p *Play) MergeMsg() *workv1.MsgMerge {
	p.T.Helper()
	l := p.Lease()
	var ends []canon.Hash
	for s := range p.Order.Problem.Shards {
		cs := p.Unit(int(l.Round)*p.Order.Problem.Shards + s).Receipt.Checkpoints
		end, err := canon.HashOf(cs[len(cs)-1])
		if err != nil {
			p.T.Fatal(err)
		}
		ends = append(ends, end)
	}
	root := p.Merge(ends)
	if !p.Order.Problem.Merges() {
		root = canon.Root(p.State().Ends(int(l.Round)))
	}
	return &workv1.MsgMerge{Lead: l.Lead, Order: p.ID.String(), Round: l.Round, Root: root[:]}
}

// Assign gives a unit to a provider, and lets the next block make its forced draw, if it has
// one.
func (p *Play) Assign(unit int, provider string) chaintest.Block {
	p.T.Helper()
	b := p.Deliver(p.Lead(), p.AssignMsg(unit, provider))
	if p.Lease().Params.ForcedBps > 0 {
		p.NextBlock(time.Second)
	}
	return b
}

// Submit posts the receipt of a unit, and lets the next block draw who audits and
// keeps it.
func (p *Play) Submit(unit int) chaintest.Block {
	p.T.Helper()
	r := p.Receipt(unit)
	b := p.Deliver(Named(p.T, r.Provider), p.SubmitMsg(r))
	p.NextBlock(time.Second)
	return b
}

// Attest lets a quorum of custodians attest to a unit's receipt, in one block. Fragments are
// mere names.
func (p *Play) Attest(unit int) chaintest.Block {
	p.T.Helper()
	u := p.Unit(unit)
	want := p.Order.Conditions.Quorum()
	for i, k := range u.Attested {
		if k.Failed || k.Done || want == 0 {
			continue
		}
		want--
		m := &workv1.MsgAttest{Custodian: k.Custodian, Order: p.ID.String(), Unit: uint32(unit), Attempt: u.Attempt}
		if p.Order.Fragments().Cuts() {
			m.Fragment = wire.FragmentToProto(&job.Fragment{Number: i})
		}
		p.Queue(Named(p.T, k.Custodian), m)
	}
	return p.Flush()
}

// Audit lets the drawn auditors of a unit answer, in one block; of a forced attempt
// they tell the truth.
func (p *Play) Audit(unit int, pass bool) chaintest.Block {
	p.T.Helper()
	for _, a := range p.Unit(unit).Audits {
		auditor := Named(p.T, a.Auditor)
		m := p.ReportMsg(unit, auditor, pass)
		if _, forced := p.ProveDrawMsg(unit); forced {
			m = p.DiligentMsg(unit, auditor, p.Truth(unit))
		}
		p.Queue(auditor, m)
	}
	return p.Flush()
}

// Flush makes a block of the queue, all of which must succeed.
func (p *Play) Flush() chaintest.Block {
	p.T.Helper()
	b := p.NextBlock(time.Second)
	for _, r := range b.TxResults {
		if r.Code != 0 {
			p.T.Fatalf("height %d: %s", b.Height, r.Log)
		}
	}
	return b
}

// Compute brings a unit from open to counted and audited.
func (p *Play) Compute(unit int, provider string) {
	p.T.Helper()
	p.Assign(unit, provider)
	p.Submit(unit)
	p.Attest(unit)
	p.Audit(unit, true)
}

// FinishRound computes what is left of the round, waits for its windows, and
// merges it.
func (p *Play) FinishRound() {
	p.T.Helper()
	shards := p.Order.Problem.Shards
	for again := true; again; p.NextBlock(UnitWindow) {
		again = false
		for s := range shards {
			unit := int(p.Lease().Round)*shards + s
			switch u := p.Unit(unit); {
			case u.Status == workv1.UNIT_STATUS_OPEN:
				p.Compute(unit, p.spare(unit))
				again = p.Lease().Params.ForcedBps > 0
			case u.Status == workv1.UNIT_STATUS_COUNTED && !u.Plain && p.Lease().Params.ForcedBps > 0:
				m, forced := p.ProveDrawMsg(unit)
				p.Deliver(Named(p.T, u.Provider), m)
				again = again || forced
			}
		}
	}
	p.Deliver(p.Lead(), p.MergeMsg())
}

// spare returns a provider that may be given a unit.
func (p *Play) spare(unit int) string {
	var free []string
	for _, name := range Providers {
		if a := chaintest.Named(name).String(); !slices.Contains(p.Lease().Barred, a) && !slices.Contains(p.Unit(unit).Withheld, a) {
			free = append(free, name)
		}
	}
	return free[unit%p.Order.Problem.Shards%len(free)]
}

// Finish brings the lease to its settlement.
func (p *Play) Finish() workv1.Settlement {
	p.T.Helper()
	for p.Lease().Phase == workv1.PHASE_ACTIVE {
		p.FinishRound()
	}
	p.NextBlock(Window)
	r, err := p.Work.Settlement(context.Background(), &workv1.QuerySettlementRequest{Order: p.ID.String()})
	if err != nil {
		p.T.Fatal(err)
	}
	return r.Settlement
}

// Fabricated names states by hashes of what they depend on. A lie makes others.
type Fabricated struct {
	Problem *job.Problem
	Lie     string
}

// Checkpoints implements Computer.
func (f Fabricated) Checkpoints(unit int, start canon.Hash) []canon.Hash {
	out := []canon.Hash{start}
	for s := range f.Problem.Segments() {
		out = append(out, canon.Sum("state", start[:], []byte{byte(unit), byte(unit >> 8), byte(s)}, []byte(f.Lie)))
	}
	return out
}

// Merge implements Computer.
func (f Fabricated) Merge(ends []canon.Hash) canon.Hash {
	var b []byte
	for _, h := range ends {
		b = append(b, h[:]...)
	}
	return canon.Sum("merged", b, []byte(f.Lie))
}
