package adversary

import (
	"crypto/ed25519"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// sources say what fields mean, by message and path or by path or name alone. A field
// that no source knows is left out, and bent like the others.
var sources map[string]func(*composer) any

func init() { // sources call what reads them
	sources = map[string]func(*composer) any{}
	for _, about := range []map[string]func(*composer) any{ofPeople(), ofOrders(), ofWork(), ofReplicas(), ofDisputes()} {
		maps.Copy(sources, about)
	}
}

// ofPeople are accounts, and what they register and pay.
func ofPeople() map[string]func(*composer) any {
	of := func(list []string) func(*composer) any {
		return func(c *composer) any { return named(list[c.Pick%len(list)]).String() }
	}
	return map[string]func(*composer) any{
		"provider":  of(house0),
		"validator": of(leads),
		"sender":    of(strangers),
		"custodian": func(c *composer) any {
			if c.l != nil && len(c.l.Auditors) > 0 {
				return c.l.Auditors[c.Pick%len(c.l.Auditors)].Account
			}
			return named("v2").String()
		},
		"MsgPostOrder.signature": func(c *composer) any {
			return ed25519.Sign(c.actor.Peer, wire.Statement(chaintest.ChainID, c.actor.Address))
		},
		"to_address":         of(everybody),
		"amount":             func(*composer) any { return worktest.Tally },
		"stake":              func(*composer) any { return 1_000 * worktest.Tally },
		"MsgSend.amount":     func(*composer) any { c := coin.Of(worktest.Tally)[0]; return &c },
		"fee_bps":            func(*composer) any { return 500 },
		"max_leases":         func(*composer) any { return 8 },
		"roles":              func(c *composer) any { return c.roles() },
		"peer_key":           func(c *composer) any { return c.actor.PeerKey() },
		"vrf_key":            func(c *composer) any { return c.actor.VRFKey() },
		"listing.validator":  (*composer).underWhom,
		"listing.unit_price": (*composer).price,
	}
}

// ofOrders are orders, and places in their leases.
func ofOrders() map[string]func(*composer) any {
	return map[string]func(*composer) any{
		"order": func(c *composer) any {
			if c.o == nil {
				return canon.Sum("never").String()
			}
			return c.o.id.String()
		},
		"MsgPostOrder.order": (*composer).order,
		"unit":               func(c *composer) any { return max(c.Unit, 0) },
		"files":              func(c *composer) any { return c.Unit == job.OfFiles },
		"attempt": func(c *composer) any {
			if c.u != nil {
				return c.u.Attempt
			}
			return 0
		},
		"round": func(c *composer) any {
			if c.l != nil {
				return c.l.Round
			}
			return 0
		},
		"draw": func(c *composer) any {
			if c.l != nil {
				return c.l.Files.Draws
			}
			return 1
		},
	}
}

// ofWork is what leads, providers, custodians and auditors say of units and files.
func ofWork() map[string]func(*composer) any {
	return map[string]func(*composer) any{
		"says": func(c *composer) any { // the files of a mere name are not those of an order
			if c.o != nil && (c.o.mind != nil || c.o.named) {
				return int(workv1.WORD_HAD)
			}
			return int(workv1.WORD_MISSING)
		},
		"reason":               func(*composer) any { return "no files" },
		"units":                (*composer).assignment,
		"receipt":              (*composer).receipt,
		"MsgReport.proof":      func(c *composer) any { _, pi := c.audit(); return pi },
		"digest":               func(c *composer) any { return c.verdict().digest },
		"pass":                 func(c *composer) any { return c.verdict().pass },
		"MsgProveDraw.proof":   func(c *composer) any { _, pi := c.forcedDraw(); return pi },
		"MsgMerge.root":        (*composer).mergeRoot,
		"MsgAttest.fragment":   (*composer).fragment,
		"shown":                (*composer).shown,
		"wrong":                func(*composer) any { return &proof.WrongFragment{Tiles: make([]proof.Shown, 2)} },
		"MsgHalt.opening.root": func(*composer) any { return make([]byte, canon.HashSize) },
	}
}

// ofDisputes is what disputes are about, and their moves.
func ofDisputes() map[string]func(*composer) any {
	return map[string]func(*composer) any{
		"MsgOpen.target":  (*composer).disputeTarget,
		"MsgOpen.opening": (*composer).disputeOpening,
		"MsgOpen.attempt": (*composer).disputedAttempt,
		"dispute":         (*composer).disputeID,
		"number": func(c *composer) any {
			if c.g == nil {
				return 0
			}
			return c.g.Game.Moves
		},
		"move": (*composer).move,
		"side": (*composer).side,
	}
}

func (c *composer) disputeTarget() any {
	if c.l == nil {
		return nil
	}
	t, segment := c.aim()
	if t.kind == ofMerge && c.l.Round > 0 {
		t.Index %= c.l.Round
	}
	m := wire.TargetToProto(c.target(c.l, t, segment))
	return &m
}

func (c *composer) disputeOpening() any {
	if c.l == nil {
		return &dispute.Opening{}
	}
	t, segment := c.aim()
	return c.o.opening(c.l, t, segment)
}

func (c *composer) disputedAttempt() any {
	t, _ := c.aim()
	switch {
	case c.l == nil:
		return 0
	case t.kind == ofMerge && c.l.Round > 0:
		return c.l.Merges[t.Index%c.l.Round].Attempt
	case t.kind == ofTruth && t.which < len(forced(c.l)):
		return forced(c.l)[t.which].Unit.Attempt
	}
	return c.u.Attempt
}

func (c *composer) disputeID() any {
	if c.g == nil {
		return 0
	}
	return int(c.g.Id)
}

func (c *composer) side() any {
	if c.g == nil {
		return 0
	}
	return int(c.g.Turn)
}

// move is what the actor's account of the claim says; Pick 1 stands for a move that
// merely fits.
func (c *composer) move() any {
	if c.g == nil {
		return &dispute.Pick{}
	}
	if c.Pick == 0 {
		if w := c.witness(c.g, c.lies(c.By)); w != nil {
			if m, err := dispute.Play(&c.g.Game, w); err == nil {
				return m
			}
		}
	}
	switch c.g.Game.Stage {
	case dispute.PostRoots:
		return &dispute.Roots{Roots: make([]canon.Hash, len(c.g.Cuts()))}
	case dispute.PickTrace:
		return &dispute.Pick{Outputs: c.Pick%2 == 1, Index: c.Pick / 2}
	case dispute.PickElement:
		return &dispute.Element{Place: c.Pick / 2}
	}
	return &dispute.Pick{Index: c.Pick / 2}
}

// roles are one to three, as Pick says.
func (c *composer) roles() (out []int) {
	for i := range 3 {
		if (1+c.Pick%7)>>i&1 == 1 {
			out = append(out, 1+i)
		}
	}
	return out
}

func (c *composer) underWhom() any {
	if c.provides() {
		return named(leads[c.Pick/3%len(leads)]).String()
	}
	return nil
}

func (c *composer) price() any {
	if c.provides() {
		return 1000
	}
	return nil
}

// provides reports whether the listing that is sent is a provider's.
func (c *composer) provides() bool { return slices.Contains(c.roles(), int(providerv1.ROLE_PROVIDER)) }

// order is one that everybody could compute; or one of many shards, whose states are
// mere names. Pick says how long its slots' names are, how many shards it has, which of
// its times is how long, and how many replicas there are.
func (c *composer) order() any {
	m := c.mindOf(tail(c.Pick))
	o := m.honest.Order()
	o.Consumer, o.Contact.Key = c.actor.String(), c.actor.PeerKey()
	o.Nonce, o.Conditions.MaxPrice = uint64(len(c.orders)), purse/100
	if size := c.Pick / tails % sizes; size > 0 {
		p := &o.Problem
		p.Rounds, p.Shards = 1, min(p.Shards<<size, job.MaxUnits)
		p.Records = p.Shards
	}
	o.Conditions.Speculate = c.Pick % 3
	if n := c.Pick / tails / sizes % (times * powers); n > 0 {
		k := &o.Conditions
		*[times]*int64{&k.UnitTimeout, &k.UnitWindow, &k.Window, &k.Expires}[n/powers] = 1 << (n % powers)
	}
	replicate(&o, c.Pick)
	p := wire.OrderToProto(&o)
	return &p
}

// How many kinds of order there are, by the length of names, by the shards and by one of
// the times, in ms: all go up by powers of two to what the rules allow.
const (
	tails  = 12
	sizes  = 12
	times  = 4
	powers = 32
)

// tail is the length that slots' names are given.
func tail(pick int) int {
	switch n := pick % tails; n {
	case 0:
		return 0
	case tails - 1:
		return canon.MaxKey
	default:
		return 1 << (n - 1)
	}
}

// posted enters an order that was taken.
func (p *play) posted(by string, m *marketv1.MsgPostOrder, pick int) {
	o, err := wire.OrderFromProto(&m.Order)
	if err != nil {
		return
	}
	x := &order{Order: o, id: o.ID(), poster: by, height: p.height}
	mind := p.mindOf(tail(pick))
	a, b := o.Problem, mind.problem
	if x.named = a.Step == b.Step && a.Merge == b.Merge && a.Start == b.Start && a.Data == b.Data; x.named {
		if a.Rounds == b.Rounds && a.Shards == b.Shards && a.Steps == b.Steps && a.Interval == b.Interval && a.Batch == b.Batch && a.Records == b.Records && a.Seed == b.Seed {
			x.mind = mind
		}
	}
	p.orders = append(p.orders, x)
}

// assignment gives the unit to one of the providers that would take it: to who waits
// for one, if anybody does whom the chain takes, since a lead serves these first.
func (c *composer) assignment() any {
	if c.l == nil || c.l.Round == len(c.l.Merges) {
		return nil
	}
	if replicated(c.l) { // who computes it is drawn
		return &workv1.Assignment{Unit: uint32(c.Unit), Attempt: uint32(c.u.Attempt)}
	}
	all := c.able(c.o, c.l, c.Unit)
	if len(all) == 0 {
		return nil
	}
	a := workv1.Assignment{Unit: uint32(c.Unit), Attempt: uint32(c.u.Attempt)}
	for _, a.Provider = range c.l.Waits() {
		m := workv1.MsgAssign{Lead: c.actor.String(), Order: c.o.id.String(), Units: []workv1.Assignment{a}}
		if ctx, _ := c.block.CacheContext(); c.handle(ctx, &m) == nil {
			return &a
		}
	}
	a.Provider = all[c.Pick%len(all)]
	return &a
}

func (c *composer) receipt() any {
	r := c.done()
	if r == nil {
		return nil
	}
	m := wire.ReceiptToProto(r)
	return &m
}

// done is the actor's receipt of the unit, nil if there is nothing to be done.
func (c *composer) done() *job.Receipt {
	if c.l == nil || c.l.Round == len(c.l.Merges) {
		return nil
	}
	start := c.l.RoundStart(c.Unit / c.l.Order.Problem.Shards)
	return &job.Receipt{
		Order: c.o.id, Unit: c.Unit, Attempt: c.u.Attempt, Provider: c.actor.String(), Start: start,
		Checkpoints: c.o.checkpoints(c.lies(c.By), c.Unit, start), FLOPs: c.o.Problem.UnitFLOPs(),
		Data: job.File{Role: "receipt", CID: "bafyreceipt", Size: 1 << 10},
	}
}

// audit returns the output of the actor's VRF for the unit's receipt, and its proof.
func (c *composer) audit() (output, pi []byte) {
	if c.u == nil || c.u.Receipt == nil {
		return nil, nil
	}
	out, pi, err := vrf.Prove(c.actor.VRF, proof.AuditInput(c.u.Receipt.ID(), c.actor.String()))
	if err != nil {
		return nil, nil
	}
	return out[:], pi
}

type verdict struct {
	pass   bool
	digest canon.Hash
}

// verdict is what an auditor finds that computes its segments; a liar passes all.
func (c *composer) verdict() (v verdict) {
	output, _ := c.audit()
	v.pass = true
	if output == nil || c.lies(c.By) || c.o.mind == nil {
		return v
	}
	r := c.u.Receipt
	var outcomes []proof.Outcome
	for _, s := range proof.Segments(output, c.l.Order.Problem.Segments(), c.u.Audited) {
		o, ok := c.o.mind.outcome(c.Unit, s, r.Checkpoints[s])
		v.pass = v.pass && ok && o.End == r.Checkpoints[s+1]
		outcomes = append(outcomes, o)
	}
	v.digest = proof.Digest(c.actor.String(), r.ID(), outcomes)
	return v
}

// forcedDraw returns the output of the actor's VRF for the unit's attempt, and its proof.
func (c *composer) forcedDraw() (output, pi []byte) {
	if c.u == nil {
		return nil, nil
	}
	out, pi, err := vrf.Prove(c.actor.VRF, proof.ForcedDrawInput(c.o.id, c.u.Seed, c.Unit, c.u.Attempt))
	if err != nil {
		return nil, nil
	}
	return out[:], pi
}

// truth is what the segments of a forced attempt give, nil if it is not forced.
func (c *composer) truth() (out []proof.Outcome) {
	output, _ := c.forcedDraw()
	if output == nil || c.u.Receipt == nil || !proof.Forced(output, c.l.Params.ForcedBps) {
		return nil
	}
	r := c.u.Receipt
	for s, end := range r.Checkpoints[1:] {
		o := proof.Outcome{End: end}
		if c.o.mind != nil {
			o, _ = c.o.mind.outcome(c.Unit, s, r.Checkpoints[s])
		}
		out = append(out, o)
	}
	return out
}

func (c *composer) mergeRoot() any {
	if c.l == nil || c.l.Round == len(c.l.Merges) {
		return nil
	}
	var ends []canon.Hash
	for _, u := range c.l.RoundUnits() {
		if u.Receipt == nil {
			return make([]byte, canon.HashSize)
		}
		ends = append(ends, c.l.Order.Problem.End(u.Receipt))
	}
	root, _ := c.o.merge(ends)
	if c.lies(c.By) {
		root = canon.Sum("merged", root[:])
	}
	return root
}

func (c *composer) fragment() any {
	if c.o == nil || !c.o.Fragments().Cuts() {
		return nil
	}
	at := 0
	if c.u != nil {
		at = max(0, slices.IndexFunc(c.u.Attested, func(k job.Attestation) bool { return k.Custodian == c.actor.String() }))
	}
	return wire.FragmentToProto(&job.Fragment{Number: at})
}

// shown answers the question that is put to the actor about the unit.
func (c *composer) shown() any {
	if c.l == nil {
		return &proof.Shown{}
	}
	r := c.l.Question(c.actor.String(), c.Unit)
	if r == nil || c.o.mind == nil {
		return &proof.Shown{}
	}
	q, drawn := c.l.Sample(r)
	switch {
	case !drawn || q.Of > 0:
		return &proof.Shown{}
	case q.State < 0:
		s := q.ShowTensor(c.o.mind.honest.Records())
		return &s
	case c.o.mind.knows(q.Root):
		if s, err := q.ShowState(c.o.mind.honest.State(q.Root)); err == nil {
			return &s
		}
	}
	return &proof.Shown{}
}

// sign adds the signatures that others than the signer of the transaction give, or
// that keys give beside accounts', unless they were bent.
func (c *composer) sign(m sdk.Msg) {
	if slices.ContainsFunc(c.Bend, func(b string) bool { return strings.Contains(b, "signature") }) {
		return
	}
	switch m := m.(type) {
	case *workv1.MsgSubmit:
		if r, err := wire.ReceiptFromProto(&m.Receipt); err == nil {
			m.Signature = ed25519.Sign(c.actor.Peer, r.SignBytes())
		}
	case *workv1.MsgAssign:
		for i := range m.Units {
			a := &m.Units[i]
			name := nameOf(a.Provider)
			if c.o == nil || c.l == nil || name == "" || !c.signs(name, c.o, c.l) {
				continue
			}
			acc := job.Acceptance{Order: c.o.id, Unit: int(a.Unit), Attempt: int(a.Attempt), Provider: a.Provider}
			a.Signature = ed25519.Sign(named(name).Peer, acc.SignBytes())
		}
	case *workv1.MsgProveDraw:
		if !slices.ContainsFunc(c.Bend, func(b string) bool { return strings.HasPrefix(b, "truth") }) {
			m.Truth = wire.OutcomesToProto(c.truth())
		}
	case *providerv1.MsgRegister:
		m.Signature = ed25519.Sign(c.actor.Peer, wire.Statement(chaintest.ChainID, c.actor.Address))
	default:
		signResult(c, m)
	}
}
