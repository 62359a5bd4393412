package byzantine

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	pruning "github.com/cosmos/cosmos-sdk/store/v2/pruning/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/sortition"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
	"github.com/tally-network/tally/node/seat"
)

// Scale is how large a network is, and how long it is played.
type Scale struct {
	Crowd      int // honest providers without a bond
	Honest     int // honest members
	Members    int // of each team
	Delegators int // accounts that delegate to them, of each team
	Spares     int // names of each team that wait to join
	Epochs     int
	Blocks     int64 // of an epoch: some six for each of the adversary's members, or their turns may fill half of one
	OrdersIn   int   // epochs between real orders
}

// Small is played by go test, Whole by make byzantine.
var (
	Small = Scale{Crowd: 300, Honest: 16, Members: 1, Delegators: 2, Spares: 3, Epochs: 10, Blocks: 60, OrdersIn: 2}
	Whole = Scale{Crowd: 100_000, Honest: 60, Members: 2, Delegators: 12, Spares: 34, Epochs: 100, Blocks: 80, OrdersIn: 20}
)

const (
	tally    = worktest.Tally
	busy     = 12                 // places of an epoch in which attacks send messages, beside the last
	own      = 100                // ut that each of the crowd begins with
	idle     = 7                  // one in so many of the crowd delegates to nobody
	drawn    = 3                  // epoch of which a draw has counted the power that people begin with
	epochs   = 6 * time.Hour      // each
	purse    = 100_000 * tally    // of each member and spare
	held     = 10_000_000 * tally // by the reserve
	dueEvery = 50                 // credits of a seventh of a week come once in so many epochs, to one part of all after another
)

// person is an account of some weight. Its peer key is also that of its consensus node.
type person struct {
	chaintest.Account
	team    *team         // nil: it is honest
	uts     uint64        // that it begins with
	sum     *power.Record // what it was credited with
	had     uint64        // utally, when it was last looked at
	first   uint64        // utally at first
	counted uint64        // utally when draws first counted its power
	to      *person       // for whom its power counts at first
}

// team are the accounts that play an attack.
type team struct {
	attack
	members, delegators, spares []*person
	all                         []*person
	sent, taken                 int
	had                         uint64 // utally of all of them at first
	convicted                   int
}

// World is a network under attack.
type World struct {
	*chaintest.Chain
	t     testing.TB
	scale Scale
	comet *comet
	teams []*team

	honest []*person
	crowd  []*person
	byName map[string]*person // by address
	guilty map[string]bool    // addresses of those who have signed twice, or lost a dispute

	base     uint64 // power below which founders have the rest
	calendar beacon.Calendar
	queued   []queued
	last     []sortition.Seat // the newest set
	judge    judge
	orders   int // real ones that were played
	outcomes []outcome
	third    seat.Capture // what a third of the votes took while the last of them was under way
}

// queued is a message that the next block has.
type queued struct {
	team *team
	must verdict
	what sdk.Msg
}

type verdict int

const (
	may    verdict = iota // it may be taken
	never                 // it must be refused
	always                // it must be taken
)

// Begin makes a network.
func Begin(t testing.TB, s Scale) *World {
	t.Helper()
	w := &World{t: t, scale: s, byName: map[string]*person{}, guilty: map[string]bool{}}
	w.judge = judge{World: w, ends: map[uint64]*counts{}, abandoned: map[string]int{}, least: 10}
	w.people()
	w.Chain = chaintest.New(t, w.genesis()...)
	w.Unchecked = true
	w.CommitMultiStore().SetPruning(pruning.NewCustomPruningOptions(2, 10)) // else states of all blocks are kept in memory
	var first []*cmttypes.Validator
	all, err := seatsv1.NewQueryClient(w).Members(t.Context(), &seatsv1.QueryMembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all.Members {
		first = append(first, cmttypes.NewValidator(cmted25519.PubKey(m.ConsensusKey), m.Votes))
		w.last = append(w.last, sortition.Seat{Member: m.Account, Votes: uint64(m.Votes)})
	}
	slices.SortFunc(w.last, func(a, b sortition.Seat) int { return strings.Compare(a.Member, b.Member) }) // as sets are
	w.comet = follow(t, w.Chain, first)
	var keys []ed25519.PrivateKey
	for _, p := range w.byName {
		if p.team != nil || p.to == p { // the crowd has no nodes
			keys = append(keys, p.VRF, second(p))
		}
	}
	w.ProveWith(keys...)
	for _, team := range w.teams {
		for _, p := range team.all {
			w.comet.behaviours[string(consensus(p.Peer))] = team.behaviour
			w.comet.behaviours[string(consensus(second(p)))] = team.behaviour
		}
	}
	for _, p := range w.honest[:len(w.honest)/8+1] {
		w.comet.censored[string(consensus(p.Peer))] = true
	}
	w.comet.look = w.judge.look
	if w.calendar, err = w.Beacon.Calendar(w.Ctx()); err != nil {
		t.Fatal(err)
	}
	w.comet.epoch = w.calendar.At
	w.fund()
	return w
}

// people makes all accounts. Of the power that counts a little less than a third is the adversary's.
func (w *World) people() {
	s := w.scale
	w.honest = w.make(nil, "h", s.Honest, own)
	for i := range s.Crowd {
		a := make(sdk.AccAddress, 20) // it signs nothing
		binary.BigEndian.PutUint32(a[16:], uint32(i+1))
		p := &person{Account: chaintest.Account{Name: fmt.Sprint("c", i), Address: a}, uts: own, sum: &power.Record{}}
		if i%idle > 0 {
			p.to = w.honest[i%s.Honest]
		}
		w.crowd, w.byName[a.String()] = append(w.crowd, p), p
	}
	counted := uint64(own * (s.Honest + s.Crowd - (s.Crowd+idle-1)/idle))
	each := counted * 49 / 100 / uint64(len(Attacks)*(s.Members+s.Delegators)) // 0.49 / 1.49 is a third
	for _, a := range Attacks {
		t := &team{attack: a}
		t.members = w.make(t, a.name+" m", s.Members, each)
		t.delegators = w.make(t, a.name+" p", s.Delegators, each)
		t.spares = w.make(t, a.name+" s", s.Spares, 0)
		for i, p := range t.delegators {
			p.to = t.members[i%len(t.members)]
		}
		t.all = slices.Concat(t.members, t.delegators, t.spares)
		w.teams = append(w.teams, t)
	}
}

// make makes accounts with nodes, whose power counts for themselves.
func (w *World) make(t *team, name string, n int, uts uint64) (out []*person) {
	for i := range n {
		p := &person{Account: chaintest.Named(fmt.Sprint(name, i)), team: t, uts: uts, sum: &power.Record{}}
		p.to = p
		w.byName[p.String()] = p
		out = append(out, p)
	}
	return out
}

// bond is what a member begins with: for three times the seats that its power gives it.
func (w *World) bond(p *person) uint64 {
	if p.team == nil {
		return uint64(3 * 10_000 * 10 * tally / w.scale.Honest)
	}
	return uint64(2 * 10_000 * 10 * tally / (3 * w.scale.Members * len(w.teams)))
}

// genesis describes the network: its members are founders by their power.
func (w *World) genesis() []chaintest.Option {
	founders := slices.Clone(w.honest)
	var names []string
	for _, p := range w.honest {
		names = append(names, p.Name)
	}
	for _, t := range w.teams {
		founders = append(founders, t.members...)
		for _, p := range t.all {
			names = append(names, p.Name)
		}
	}
	votes := map[*person]int64{}
	sum := uint64(0)
	for _, p := range w.byName {
		if p.to != nil {
			votes[p.to] += int64(p.uts)
			sum += p.uts
		}
	}
	return worktest.Network(chaintest.Fund(purse, append(names, mallory.Name)...), func(g *app.Genesis) {
		g.Epoch = w.scale.Blocks
		g.Seats.Params = seats.DefaultParams()
		g.Policy = policy.DefaultParams()
		w.base = sum * 600_000 // what counts of training
		g.Policy.Base, g.Policy.Quorum = w.base, w.base*4/10
		g.Reserve, g.Rewards = held, app.Rewards{Params: reserve.DefaultParams(), EpochMs: epochs.Milliseconds()}
		g.Validators, g.Keys = nil, nil
		for _, p := range founders {
			g.Validators = append(g.Validators, app.Validator{Account: p.String(), ConsensusKey: p.PeerKey(), Votes: votes[p], Bond: w.bond(p)})
			g.Keys = append(g.Keys, beaconv1.Key{Account: p.String(), Key: p.VRFKey()})
		}
		for _, p := range w.crowd {
			if p.to != nil {
				g.Seats.Delegations = append(g.Seats.Delegations, seatsv1.Delegation{Account: p.String(), Member: p.to.String()})
			}
		}
		for _, t := range w.teams {
			for _, p := range t.delegators {
				g.Seats.Delegations = append(g.Seats.Delegations, seatsv1.Delegation{Account: p.String(), Member: p.to.String()})
			}
		}
	})
}

// fund gives the crowd some money, and everybody the power that it begins with.
func (w *World) fund() {
	from := w.honest[0]
	err := w.Do(func(ctx sdk.Context) error {
		for _, p := range w.crowd {
			if err := w.Bank.SendCoins(ctx, from.Address, p.Address, coin.Of(purse/(2*uint64(len(w.crowd))))); err != nil {
				return err
			}
		}
		for _, p := range w.everybody() {
			if err := w.credit(ctx, p, p.uts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range w.everybody() {
		p.first = w.wealth(p)
		if p.had = p.first; p.team != nil {
			p.team.had += p.first
		} else if p.to == p {
			p.had = w.safe(p)
		}
	}
}

// everybody returns all accounts, in an order of their own.
func (w *World) everybody() []*person {
	out := slices.Concat(w.honest, w.crowd)
	for _, t := range w.teams {
		out = append(out, t.all...)
	}
	return out
}

// credit credits an account with work, as a settled lease does, and notes it.
func (w *World) credit(ctx sdk.Context, p *person, uts uint64) error {
	if uts == 0 {
		return nil
	}
	h, err := w.Power.Hour(ctx)
	if err != nil {
		return err
	}
	if err := p.sum.Training.Credit(uts*1_000_000, h); err != nil {
		return err
	}
	return w.Power.Credit(ctx, p.Address, uts*power.UT)
}

// compute credits a fiftieth of all accounts with as much as they began with, and a fifth: a quarter of a day takes 2.4 percent.
func (w *World) compute(epoch uint64) {
	err := w.Do(func(ctx sdk.Context) error {
		all := w.everybody()
		for _, p := range w.crowd[len(w.crowd)*int(epoch%dueEvery)/dueEvery : len(w.crowd)*int(epoch%dueEvery+1)/dueEvery] {
			if err := w.credit(ctx, p, p.uts*6/5); err != nil {
				return err
			}
		}
		for _, p := range all {
			if p.team != nil && !w.guilty[p.String()] {
				if err := w.credit(ctx, p, p.uts*24/1000); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// Play plays all epochs.
func (w *World) Play() {
	begun := time.Now()
	next := w.scale.OrdersIn / 2
	for w.epoch() < uint64(w.scale.Epochs) {
		height := w.Height() + 1
		switch at := (height - w.calendar.Height) % w.calendar.Length; at {
		case 0:
			if w.compute(w.epoch()); w.epoch() == drawn {
				w.judge.count()
			}
		default:
			for _, t := range w.teams {
				if at < busy || at == w.calendar.Length-1 {
					t.play(w, t, int(at))
				}
			}
			w.live(int(at))
			w.block()
			if at == w.calendar.Length-1 {
				w.judge.check()
				w.judge.progress(begun)
			}
			if int(w.epoch()) >= next && at == w.calendar.Length/2 {
				next += w.scale.OrdersIn
				w.order(orderAttacks[w.orders%len(orderAttacks)])
			}
		}
	}
	w.judge.checkAll()
}

// epoch returns that of the last block.
func (w *World) epoch() uint64 { return w.calendar.At(w.Height()) }

// live has honest people do something in a block: they pay, claim, and change their bonds.
func (w *World) live(at int) {
	p := w.honest[(int(w.Height())*7)%len(w.honest)]
	w.send(nil, p, always, banktypes.NewMsgSend(p.Address, p.Address, coin.Of(1)))
	switch at {
	case 4:
		w.send(nil, p, may, claim(p)) // if there is something
	case 5:
		w.send(nil, p, always, &seatsv1.MsgBond{Account: p.String(), Amount: tally})
	case 7:
		w.send(nil, p, may, &seatsv1.MsgUnbond{Account: p.String(), Amount: tally})
	}
}

// send puts a message into the next block.
func (w *World) send(t *team, from *person, must verdict, m sdk.Msg) {
	w.Queue(from.Account, m)
	w.queued = append(w.queued, queued{t, must, m})
}

// block makes a block of what was sent, and looks at what became of it.
func (w *World) block() {
	pace := epochs / time.Duration(w.scale.Blocks)
	b := w.NextBlock(pace)
	for i, q := range w.queued {
		r := b.TxResults[i]
		if q.must == never && r.Code == 0 {
			w.t.Errorf("height %d: taken, and must be refused: %T %v", b.Height, q.what, q.what)
		}
		if q.must == always && r.Code != 0 {
			w.t.Errorf("height %d: refused, and must be taken: %T %v: %s", b.Height, q.what, q.what, r.Log)
		}
		if q.team != nil {
			if q.team.sent++; r.Code == 0 {
				q.team.taken++
			}
		}
	}
	w.queued = nil
}

// join returns the message by which an account joins with a consensus key.
func join(p *person, key ed25519.PrivateKey, bond uint64) *seatsv1.MsgJoin {
	return &seatsv1.MsgJoin{
		Account: p.String(), ConsensusKey: key.Public().(ed25519.PublicKey), BeaconKey: p.VRFKey(), Bond: bond,
		ProofOfPossession: ed25519.Sign(key, wire.ProofOfPossession(chaintest.ChainID, p.Address)),
	}
}

// second returns another key of an account's.
func second(p *person) ed25519.PrivateKey { return chaintest.Named("second of " + p.Name).VRF }
