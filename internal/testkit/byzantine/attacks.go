package byzantine

import (
	"crypto/ed25519"
	"slices"

	cmttypes "github.com/cometbft/cometbft/types"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/seats"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// attack is a row of docs/spec/attacks.md, or of docs/spec/seats.md, that a team plays in each epoch.
type attack struct {
	name      string
	behaviour behaviour
	play      func(w *World, t *team, at int) // before the block at a place of the epoch, from 1 on
}

// Attacks are those that messages, votes and turns can make. Left out is what needs a network (mempools, peers, light clients) or
// another way of giving seats (lots, proofs of members); orders.go plays those on orders.
var Attacks = []attack{
	{"sign twice", behaviour{}, signTwice},
	{"absent", behaviour{absent: func(epoch uint64) bool { return epoch%3 == 1 }}, comeBack},
	{"only withhold", behaviour{}, nothing}, // and leave votes out: so do all others
	{"leave and join", behaviour{}, leaveAndJoin},
	{"cycle delegations", behaviour{}, cycleDelegations},
	{"Sybil split", behaviour{}, sybilSplit},
	{"time bonds", behaviour{}, timeBonds},
	{"flood", behaviour{}, flood},
	{"change keys", behaviour{}, changeKeys},
	{"forge evidence", behaviour{}, forgeEvidence},
	{"vote", behaviour{}, vote},
}

func nothing(*World, *team, int) {}

// signTwice has a member sign two blocks in each epoch, while there is one. Every second has its delegators go first, takes out
// a part of its bond, and leaves. Afterwards all that a convict must not do is tried, and a spare takes its place.
func signTwice(w *World, t *team, at int) {
	i := slices.IndexFunc(t.members, func(p *person) bool { m, ok := w.member(p); return ok && m.Votes > 0 && !w.guilty[p.String()] })
	flees := w.epoch()%2 == 1
	switch {
	case at == 1 && i >= 0 && flees:
		p, other := t.members[i], t.members[(i+1)%len(t.members)]
		for _, d := range t.delegators {
			w.send(t, d, may, &seatsv1.MsgDelegate{Account: d.String(), Member: other.String()})
		}
		for range 3 {
			w.send(t, p, may, &seatsv1.MsgUnbond{Account: p.String(), Amount: 20 * tally})
		}
		w.send(t, p, may, &seatsv1.MsgLeave{Account: p.String()})
	case at == 3 && i >= 0:
		p := t.members[i]
		for k, height := range []int64{w.Height(), w.Height() - 1, w.Height()} { // another pair of one height is new evidence
			name := string(rune('a' + k))
			w.testify(t, p, ballot(p.Peer, consensus(p.Peer), height, name), ballot(p.Peer, consensus(p.Peer), height, name+"'"))
		}
	case at == 5:
		for _, p := range t.members {
			if w.guilty[p.String()] {
				tryAgain(w, t, p)
				break
			}
		}
	case at == 6 && len(t.spares) > 0 && w.epoch()%3 == 0:
		p := t.spares[0]
		t.spares, t.members = t.spares[1:], append([]*person{p}, t.members...)
		w.send(t, p, always, join(p, p.Peer, 500*tally))
	case at == 7 && len(t.members) > 0:
		for _, d := range t.delegators {
			w.send(t, d, may, &seatsv1.MsgDelegate{Account: d.String(), Member: t.members[0].String()})
		}
	case at == 8 && len(t.members) > 1 && w.guilty[t.members[len(t.members)-1].String()]:
		t.delegators, t.members = append(t.delegators, t.members[len(t.members)-1]), t.members[:len(t.members)-1] // it still has money
	}
}

// tryAgain has a convict try all by which it would take part again.
func tryAgain(w *World, t *team, p *person) {
	who := p.String()
	for _, m := range []sdk.Msg{
		join(p, p.Peer, 100*tally), join(p, second(p), 100*tally), &seatsv1.MsgUnjail{Account: who}, &seatsv1.MsgLeave{Account: who},
		&seatsv1.MsgBond{Account: who, Amount: 100 * tally}, &seatsv1.MsgUnbond{Account: who, Amount: 1},
	} {
		w.send(t, p, never, m)
	}
	if len(t.spares) > 0 {
		w.send(t, t.spares[0], never, join(t.spares[0], p.Peer, 100*tally))
	}
	w.send(t, t.delegators[0], never, &seatsv1.MsgDelegate{Account: t.delegators[0].String(), Member: who})
}

// testify reports two votes. Only those of a validator by its own key, on two blocks of a height that it could sign, are evidence.
func (w *World) testify(t *team, of *person, a, b *cmttypes.Vote) {
	err := w.comet.report(a, b)
	if t.sent++; err != nil {
		return
	}
	t.taken++
	if of.team == nil {
		w.t.Errorf("height %d: evidence against %s, who is honest, is taken", w.Height(), of.Name)
	}
	w.guilty[of.String()] = true
}

// comeBack has members return that were absent for too long.
func comeBack(w *World, t *team, at int) {
	for _, p := range t.members {
		if m, ok := w.member(p); ok && at == 2 {
			must := never
			if m.Status == seatsv1.STATUS_JAILED {
				must = always
			}
			w.send(t, p, must, &seatsv1.MsgUnjail{Account: p.String()})
		}
	}
}

// leaveAndJoin has a member leave and come back, by its key and by another, in turn.
func leaveAndJoin(w *World, t *team, at int) {
	p := t.members[int(w.epoch())%len(t.members)]
	m, ok := w.member(p)
	switch left := ok && m.Status == seatsv1.STATUS_LEFT; {
	case at == 2 && left:
		w.send(t, p, never, join(p, second(p), 100*tally)) // while its votes or its bond are there
		must := always
		if m.FromEpoch > w.epoch() { // its key of the last time does not count yet
			must = may
		}
		w.send(t, p, must, join(p, p.Peer, w.bond(p)))
	case at == 2 && !ok:
		w.send(t, p, always, join(p, second(p), w.bond(p)))
	case at == 4 && ok && !left && int(w.epoch())/len(t.members)%2 == 1:
		w.send(t, p, may, &seatsv1.MsgLeave{Account: p.String()})
	}
}

// cycleDelegations has power go round among members, and to whom it cannot go.
func cycleDelegations(w *World, t *team, at int) {
	if at != 2 {
		return
	}
	for i, p := range t.delegators {
		to := t.members[(i+int(w.epoch()))%len(t.members)]
		w.send(t, p, may, &seatsv1.MsgDelegate{Account: p.String(), Member: to.String()})
		w.send(t, p, may, &seatsv1.MsgDelegate{Account: p.String(), Member: ""}) // of two at once one stands
		w.send(t, p, never, &seatsv1.MsgDelegate{Account: p.String(), Member: w.crowd[0].String()})
		w.send(t, p, never, &seatsv1.MsgDelegate{Account: p.String(), Member: t.delegators[0].String()})
	}
}

// sybilSplit splits power over as many names as there are, each with the bond of a seat, and puts it together again.
func sybilSplit(w *World, t *team, at int) {
	if at != 2 {
		return
	}
	for i, p := range t.delegators {
		switch m, ok := w.member(p); w.epoch() % 12 {
		case 0:
			if !ok || m.Status == seatsv1.STATUS_LEFT {
				w.send(t, p, may, join(p, p.Peer, 10*tally))
			}
		case 1, 5:
			w.send(t, p, may, &seatsv1.MsgDelegate{Account: p.String(), Member: p.String()})
		case 9:
			w.send(t, p, may, &seatsv1.MsgDelegate{Account: p.String(), Member: t.members[i%len(t.members)].String()})
		case 11:
			w.send(t, p, may, &seatsv1.MsgLeave{Account: p.String()})
		}
	}
}

// timeBonds has bonds come before a draw and in the middle of it, and go right after.
func timeBonds(w *World, t *team, at int) {
	for _, p := range t.members {
		switch at {
		case 1, int(w.scale.Blocks) - 1:
			w.send(t, p, may, &seatsv1.MsgBond{Account: p.String(), Amount: 5_000 * tally})
		case 2, 3:
			w.send(t, p, may, &seatsv1.MsgUnbond{Account: p.String(), Amount: 5_000 * tally})
		}
	}
}

// flood sends what must be refused, in every block.
func flood(w *World, t *team, at int) {
	p, d, h := t.members[at%len(t.members)], t.delegators[at%len(t.delegators)], w.honest[at%len(w.honest)]
	theirs := join(d, d.Peer, 100*tally)
	theirs.ConsensusKey = h.PeerKey()
	forged := join(d, d.Peer, 100*tally)
	forged.ProofOfPossession = ed25519.Sign(p.Peer, []byte("possession"))
	all := []sdk.Msg{
		theirs, forged, join(d, d.Peer, tally),
		&seatsv1.MsgUnjail{Account: d.String()}, &seatsv1.MsgUnbond{Account: d.String(), Amount: 1}, &seatsv1.MsgBond{Account: d.String()},
		&seatsv1.MsgProve{Account: d.String(), Epoch: w.epoch()}, &beaconv1.MsgSetKey{Account: d.String(), Key: d.VRFKey()},
		&seatsv1.MsgUpdateParams{Authority: d.String(), Params: seats.DefaultParams()},
		&seatsv1.MsgDelegate{Account: d.String(), Member: w.crowd[0].String()},
		&seatsv1.MsgUnbond{Account: d.String(), Amount: 1_000_000 * tally},
	}
	for i := range 3 {
		w.send(t, d, never, all[(3*int(w.Height())+i)%len(all)])
	}
}

// changeKeys gives the beacon other keys in every epoch, and twice in some.
func changeKeys(w *World, t *team, at int) {
	for i, p := range t.members {
		switch at {
		case 1 + i, 6:
			key := p.VRFKey()
			if (int(w.epoch())+at)%2 == 0 {
				key = second(p).Public().(ed25519.PublicKey)
			}
			w.send(t, p, may, &beaconv1.MsgSetKey{Account: p.String(), Key: key})
		case 8:
			w.send(t, p, never, &beaconv1.MsgSetKey{Account: p.String(), Key: make([]byte, 32)})
		}
	}
}

// forgeEvidence reports honest members by votes that they have not signed, or that are no evidence.
func forgeEvidence(w *World, t *team, at int) {
	h, p := w.honest[at%len(w.honest)], t.members[at%len(t.members)]
	of, height := consensus(h.Peer), w.Height()
	for _, pair := range [][2]*cmttypes.Vote{
		{ballot(p.Peer, of, height, "a"), ballot(p.Peer, of, height, "b")},       // by another's key
		{ballot(h.Peer, of, height, "a"), ballot(p.Peer, of, height, "b")},       // one of two by another's
		{ballot(h.Peer, of, height, "a"), ballot(h.Peer, of, height, "a")},       // the same vote
		{ballot(h.Peer, of, height, "a"), ballot(h.Peer, of, height-1, "b")},     // of two heights
		{ballot(h.Peer, of, height+100, "a"), ballot(p.Peer, of, height, "b")},   // of one to come
		{ballot(p.Peer, consensus(p.Peer), 0, "a"), ballot(p.Peer, of, 0, "b")},  // of none, by two
		{ballot(second(h), of, height, "a"), ballot(second(h), of, height, "b")}, // by a key of its own that votes for nothing
	} {
		w.testify(t, h, pair[0], pair[1])
	}
}

// vote proposes rules that suit the adversary, and has all of its members vote for them. Honest members vote against.
func vote(w *World, t *team, at int) {
	p := t.members[0]
	all, err := policyv1.NewQueryClient(w).Proposals(w.t.Context(), &policyv1.QueryProposalsRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	open := slices.IndexFunc(all.Proposals, func(x policyv1.Proposal) bool { return x.Status == policyv1.STATUS_VOTING })
	switch {
	case at == 3 && open < 0:
		rules := seats.DefaultParams()
		rules.SlashBps, rules.BondPerSeat = 100, 1
		change, err := codectypes.NewAnyWithValue(&seatsv1.MsgUpdateParams{Authority: address.Policy().String(), Params: rules})
		if err != nil {
			w.t.Fatal(err)
		}
		w.send(t, p, may, &policyv1.MsgPropose{
			Proposer: p.String(), Title: "Less to lose", Summary: "Bonds of nothing.", Deposit: policy.DefaultParams().Deposit, Messages: []*codectypes.Any{change},
		})
	case at == 5 && open >= 0:
		for _, team := range w.teams {
			for _, p := range slices.Concat(team.members, team.delegators) {
				w.send(t, p, may, &policyv1.MsgVote{Voter: p.String(), Proposal: all.Proposals[open].Id, Option: policyv1.OPTION_YES})
			}
		}
		for _, p := range w.honest {
			w.send(nil, p, may, &policyv1.MsgVote{Voter: p.String(), Proposal: all.Proposals[open].Id, Option: policyv1.OPTION_NO})
		}
	}
}

// member returns what the chain has of a member.
func (w *World) member(p *person) (seatsv1.Member, bool) {
	m, err := w.Seats.Get(w.Ctx(), p.Address)
	return m, err == nil
}

func claim(p *person) sdk.Msg { return &reservev1.MsgClaim{Account: p.String()} }
