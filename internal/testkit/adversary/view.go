package adversary

import (
	"cmp"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// order is one that was posted in a history.
type order struct {
	job.Order
	id     canon.Hash
	poster string
	height int64 // of the block in which it was posted
	mind   *mind // nil if it can be computed by nobody here
	named  bool  // its states are mere names
}

// game is an open dispute.
type game struct {
	disputev1.Dispute
	dispute.Game
}

// Functions, so that testdata/before/adapt.patch can replace them: there a lease has one
// list of each.
func forced(l *job.Lease) []*job.Forced      { return l.Forced() }
func verdicts(l *job.Lease) []job.Verdict    { return l.Verdicts() }
func questions(l *job.Lease) []*job.Question { return l.Questions() }

// query asks the state as clients do.
func (p *play) query(method string, request, reply proto.Message) error {
	data, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	res, err := p.GRPCQueryRouter().Route(method)(p.at(p.ctx), &abci.RequestQuery{Path: method, Data: data})
	if err != nil {
		return err
	}
	return proto.Unmarshal(res.Value, reply)
}

// refresh reads the state anew, if anything has happened, and finds out whether all
// of it can be read.
func (p *play) refresh() {
	if !p.dirty || p.found != nil {
		return
	}
	p.dirty = false
	for i := range p.orders {
		if l, over := p.views[i]; over && l != nil && l.Phase == job.Settled {
			continue
		}
		var r workv1.QueryStateResponse
		err := p.query("/tally.work.v1.Query/State", &workv1.QueryStateRequest{Order: p.orders[i].id.String()}, &r)
		if status.Code(err) == codes.NotFound {
			continue
		}
		l := &job.Lease{}
		if err == nil {
			err = canon.Unmarshal(r.Lease, l)
		}
		if err != nil {
			p.fail("unreadable", "a lease: %v", err)
			return
		}
		p.views[i] = l
		p.reached.lease(l)
	}
	p.readGames()
}

// readGames reads the open disputes, and those that have just ended.
func (p *play) readGames() {
	var r disputev1.QueryDisputesResponse
	if err := p.query("/tally.dispute.v1.Query/Disputes", &disputev1.QueryDisputesRequest{Open: true}, &r); err != nil {
		p.fail("unreadable", "the open disputes: %v", err)
		return
	}
	was := p.games
	p.games = map[uint64]*game{}
	for _, d := range r.Disputes {
		p.games[d.Id] = nil
	}
	ids := map[uint64]bool{}
	for id := range was {
		ids[id] = true
	}
	for id := range p.games {
		ids[id] = true
	}
	for id := range ids {
		var q disputev1.QueryDisputeResponse
		g := &game{}
		err := p.query("/tally.dispute.v1.Query/Dispute", &disputev1.QueryDisputeRequest{Dispute: id}, &q)
		if err == nil {
			err = canon.Unmarshal(q.Game, &g.Game)
		}
		if err != nil {
			p.fail("unreadable", "a dispute: %v", err)
			return
		}
		g.Dispute = q.Dispute
		if _, open := p.games[id]; open {
			p.games[id] = g
		} else {
			p.reached.game(g)
		}
	}
}

// open returns the open disputes in the order in which they began.
func (p *play) open() (out []*game) {
	for _, g := range p.games {
		out = append(out, g)
	}
	slices.SortFunc(out, func(x, y *game) int { return cmp.Compare(x.Id, y.Id) })
	return out
}

// live returns the lease of an order, nil if it has none or is settled.
func (p *play) live(i int) *job.Lease {
	if l := p.views[i]; l != nil && l.Phase != job.Settled {
		return l
	}
	return nil
}

// seat returns who plays a side of a game now.
func (g *game) seat(side disputev1.Side) string {
	if side == disputev1.SIDE_DEFENDER {
		return cmp.Or(g.Parties.DefenderSubstitute, g.Parties.Defender)
	}
	return cmp.Or(g.Parties.ChallengerSubstitute, g.Parties.Challenger)
}

// checkpoints returns the states that who computes a unit would commit to.
func (o *order) checkpoints(lies bool, unit int, start canon.Hash) []canon.Hash {
	switch {
	case o.mind != nil:
		return o.mind.checkpoints(lies, unit, start)
	case o.named && lies:
		return worktest.Fabricated{Problem: &o.Problem, Lie: "lie"}.Checkpoints(unit, start)
	case o.named:
		return worktest.Fabricated{Problem: &o.Problem}.Checkpoints(unit, start)
	}
	return nil
}

// merge returns what the units of a round merge into.
func (o *order) merge(ends []canon.Hash) (root canon.Hash, ok bool) {
	if o.mind == nil {
		return worktest.Fabricated{Problem: &o.Problem}.Merge(ends), o.named
	}
	w := o.mind.merge(ends)
	if w == nil {
		return root, false
	}
	root, _ = w.Root(1)
	return root, true
}

// available reports whether the data of a receipt can be had.
func (p *play) available(o *order, r *job.Receipt) bool {
	if h, hostile := p.script.Hostile[nameOf(r.Provider)]; hostile && h.Withhold {
		return false
	}
	for _, c := range r.Checkpoints {
		if o.mind != nil && !o.mind.knows(c) {
			return false
		}
	}
	return o.mind != nil || slices.Equal(r.Checkpoints, o.checkpoints(false, r.Unit, r.Start))
}

// wrong returns the first segment of a receipt that does not hold, −1 if there is none
// or nobody can tell.
func (o *order) wrong(r *job.Receipt) int {
	if o.mind == nil {
		return -1
	}
	for i, c := range o.mind.checkpoints(false, r.Unit, r.Start) {
		if i < len(r.Checkpoints) && r.Checkpoints[i] != c {
			return i - 1
		}
	}
	return -1
}
