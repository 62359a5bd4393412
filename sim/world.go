package sim

import (
	"cmp"
	"crypto/ed25519"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// Who takes part. The cheater, where there is one, is the first provider.
const (
	consumer         = "consumer"
	lead             = "lead"
	cheater          = "provider-00"
	honestChallenger = "challenger"
	griever          = "griever"
	providers        = 4
	validators       = 12 // beside the lead
)

const (
	marginBps = 2000 // of a provider's pay that is not the cost of computing
	stake     = 1 << 50
)

// world is one lease and the accounts of everybody in it.
type world struct {
	*training
	lease   job.Lease
	now     int64             // ms
	earned  map[string]int64  // utally received less given, bonds locked included
	spent   map[string]uint64 // FLOPs computed
	slashed map[string]uint64 // utally
	games   uint64
}

func key(name string) ed25519.PrivateKey {
	h := canon.Sum(canon.Domain("sim/key"), []byte(name))
	return ed25519.NewKeyFromSeed(h[:])
}

func party(name string, r job.Rates) job.Party {
	return job.Party{Account: name, Key: key(name).Public().(ed25519.PublicKey), Weight: stake, Rates: r}
}

func provider(i int) string  { return fmt.Sprintf("provider-%02d", i) }
func validator(i int) string { return fmt.Sprintf("validator-%02d", i) }

// rates make a unit of the small training worth about a tally.
func (t *training) rates() job.Rates {
	return job.Rates{GFLOP: 1_000_000 * 1_000_000_000 / max(t.problem.UnitFLOPs(), 1)}
}

// newWorld begins the lease of an order, whose files custodians have. Which auditors and
// custodians are drawn follows from the seed.
func newWorld(t *training, seed uint64, c job.Conditions, rules job.Params) (*world, error) {
	w, err := beginWorld(t, seed, c, rules)
	if err != nil {
		return nil, err
	}
	for _, k := range w.lease.Files.Custodians {
		if err := w.do(job.AttestFiles{By: k.Account, Draw: 1, Says: job.Had}); err != nil {
			return nil, err
		}
	}
	return w, w.check()
}

// beginWorld is newWorld before anybody has said anything of the files.
func beginWorld(t *training, seed uint64, c job.Conditions, rules job.Params) (*world, error) {
	c.MaxPrice, c.Expires, c.MinProviders, c.Custodians = 1<<40, 1000, 2, cmp.Or(c.Custodians, 3)
	c.UnitTimeout, c.UnitWindow, c.Window = 60_000, cmp.Or(c.UnitWindow, 10_000), cmp.Or(c.Window, 30_000)
	m := job.Match{
		Order: job.Order{
			Chain: "sim", Consumer: consumer, Nonce: seed, Problem: t.problem, Conditions: c,
			Contact: job.Contact{Key: party(consumer, job.Rates{}).Key},
		},
		Lead: lead, FeeBps: 500, Params: rules, Deposit: rules.MinDeposit,
		Affords: func(_ string, bond uint64) bool { return bond <= stake },
	}
	for i := range providers {
		m.Providers = append(m.Providers, party(provider(i), t.rates()))
	}
	for i := range validators {
		m.Validators = append(m.Validators, party(validator(i), job.Rates{}))
	}
	w := &world{training: t, now: 1, earned: map[string]int64{}, spent: map[string]uint64{}, slashed: map[string]uint64{}}
	l, effects, err := job.NewLease(m, w.now)
	if err != nil {
		return nil, err
	}
	w.lease = l
	w.earned[consumer] = -int64(l.Quote.Price + l.Deposit)
	w.perform(effects)
	w.now++ // the next block draws who keeps the files
	return w, w.do(job.Tick{Seed: w.seed(), Affords: m.Affords})
}

// seed stands for the beacon's value in this block.
func (w *world) seed() canon.Hash {
	return canon.Sum(canon.Domain("sim/block"), fmt.Append(nil, w.now))
}

// do applies an event at the present time.
func (w *world) do(e job.Event) error {
	next, effects, err := job.Apply(w.lease, e, w.now)
	if err != nil {
		return fmt.Errorf("%T: %w", e, err)
	}
	w.lease = next
	w.perform(effects)
	return w.check()
}

// perform moves money as a chain would. Locking a bond moves none.
func (w *world) perform(effects []job.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case job.Slash:
			w.slashed[e.Account] += e.Amount
			w.earned[e.Account] -= int64(e.Amount)
		case job.Lock:
			w.earned[e.Account] -= int64(e.Amount)
		case job.Award, job.Pay, job.Refund, job.Unlock:
			w.earned[e.Account] += int64(e.Amount)
		case job.Tax:
			w.earned["pool"] += int64(e.Amount)
		case job.Insure:
			w.earned[job.Insurance] -= int64(e.Amount)
			w.earned[e.Account] += int64(e.Amount)
		case job.Prize:
			w.earned["pool"] -= int64(e.Amount)
			w.earned[e.Account] += int64(e.Amount)
		case job.Burn:
			w.earned["burnt"] += int64(e.Amount)
		}
	}
}

// check returns an error if the lease contradicts itself or money came or went.
func (w *world) check() error {
	if err := w.lease.Check(); err != nil {
		return err
	}
	total := int64(w.lease.Ledger.Escrow + w.lease.Locked())
	for _, n := range w.earned { // order: a sum
		total += n
	}
	if total != 0 {
		return fmt.Errorf("%d utally came from nowhere", total)
	}
	return nil
}

// forfeit takes the bond of a challenger that was wrong.
func (w *world) forfeit(bond uint64, challenger, defender string) {
	won, fund := dispute.Forfeit(bond)
	w.slashed[challenger] += bond
	w.earned[challenger] -= int64(bond)
	w.earned[defender] += int64(won)
	w.earned[job.Insurance] += int64(fund)
}

// profit returns what an account has earned less what its computing cost.
func (w *world) profit(account string) float64 {
	pay, err := w.rates().Pay(w.spent[account], 0)
	if err != nil {
		return 0
	}
	return float64(w.earned[account]) - float64(pay)*(1-marginBps/1e4)
}
