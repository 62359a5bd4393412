package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
)

// Params are the chain's rules for leases; a lease keeps those that held when
// it began.
type Params struct {
	Tariff
	RewardBps     uint64 // of a slashed bond, to the challenger; below one half, so that challenging oneself loses
	LateBps       uint64 // of a unit's pay, the penalty for a unit given up
	BondFactor    uint64 // reserve behind all units of a provider over the honest work that their fraud could void
	MinBond       uint64 // utally that are reserved behind these at least
	MaxOpen       int    // units that one provider may have open
	LeadTimeout   int64  // ms in which a lead must do what is due
	MaxLate       int    // units that a provider may give up, or withhold the data of, before it is barred from the lease
	MaxAttempts   int    // how often a unit may be given out before the lease stops
	ChallengeBond uint64 // utally that a challenger locks at least
	VerdictFactor uint64 // an auditor's bond, as a multiple of a unit's pay
	KeepFactor    uint64 // a custodian's bond, as a multiple of a unit's pay
	AskFee        uint64 // utally that who asks a custodian pays for the answer
	AnswerTime    int64  // ms that a custodian has for it
	AnswerLoad    int    // questions of a lease that a custodian can answer in that time; it has more for more
	Speed         uint64 // FLOP per second of the slowest machine that the chain counts on
	Link          uint64 // bytes per second of the slowest connection that it counts on
	Allowance     int64  // ms for blocks, in every time that an order sets
	DepositBps    uint64 // of an order's maximum price, locked beside it
	MinDeposit    uint64 // utally, the least that is locked so
}

// DefaultParams are those of a new chain.
var DefaultParams = Params{
	Tariff: Tariff{CustodianBps: 200, BurnBps: 200, TaxBps: 210, KeepGB: 1000, BurnUT: 5000, ForcedBps: 200}, RewardBps: 4000, LateBps: 500, BondFactor: 2, MinBond: 1_000_000, MaxOpen: 2, MaxLate: 2, MaxAttempts: 16,
	LeadTimeout: 10 * 60 * 1000, ChallengeBond: 1_000_000, VerdictFactor: 100,
	KeepFactor: 5, AskFee: 10_000, AnswerTime: 10 * 60 * 1000, AnswerLoad: 16,
	Speed: 1e10, Link: 1e6, Allowance: 10 * 1000,
	DepositBps: 100, MinDeposit: 10_000,
}

// Check returns an error unless the rules can be kept and make cheating a loss.
func (p *Params) Check() error {
	switch {
	case max(p.CustodianBps, p.BurnBps, p.TaxBps, p.LateBps, p.ForcedBps, p.DepositBps) > bps:
		return fmt.Errorf("custodians' share, burn, tax, penalty, forced attempts and deposit are %d, %d, %d, %d, %d and %d, want at most %d basis points",
			p.CustodianBps, p.BurnBps, p.TaxBps, p.LateBps, p.ForcedBps, p.DepositBps, bps)
	case p.BurnUT > maxQuantity:
		return fmt.Errorf("%d utally burnt for each ut of credit, want at most %d", p.BurnUT, uint64(maxQuantity))
	case p.MinDeposit > maxQuantity:
		return fmt.Errorf("a deposit of at least %d utally, want at most %d", p.MinDeposit, uint64(maxQuantity))
	case p.ForcedBps == bps:
		return fmt.Errorf("every attempt is forced: no unit would ever be accepted")
	case p.JackpotFactor > bps:
		return fmt.Errorf("a jackpot of %d times the pay of a unit, want at most %d", p.JackpotFactor, bps)
	case p.RewardBps*2 >= bps:
		return fmt.Errorf("a challenger's reward of %d basis points would pay for challenging oneself; want less than %d", p.RewardBps, bps/2)
	case p.BondFactor > bps:
		return fmt.Errorf("a bond of %d times the honest work, want at most %d", p.BondFactor, bps)
	case p.MinBond < 1 || p.MinBond > maxQuantity:
		return fmt.Errorf("a bond of at least %d utally, want between 1 and %d", p.MinBond, uint64(maxQuantity))
	case p.BondFactor*(bps-p.RewardBps) <= bps: // the bond would come back: the void work is one's own, and the challenger a friend
		return fmt.Errorf("forging all work and challenging oneself would pay: bond_factor · (10000 − reward_bps) = %d · %d ≤ 10000", p.BondFactor, bps-p.RewardBps)
	case p.MaxOpen < 1 || p.MaxOpen > MaxUnits || p.MaxLate < 0 || p.MaxLate > MaxUnits:
		return fmt.Errorf("%d units open and %d late, want between 1 or 0 and %d", p.MaxOpen, p.MaxLate, MaxUnits)
	case p.MaxAttempts < 1 || p.MaxAttempts > maxAttempts:
		return fmt.Errorf("a unit is given out at most %d times, want between 1 and %d", p.MaxAttempts, maxAttempts)
	case p.VerdictFactor < 1 || p.VerdictFactor > bps:
		return fmt.Errorf("a verdict's bond of %d times the pay of a unit, want between 1 and %d", p.VerdictFactor, bps)
	case p.KeepFactor < 1 || p.KeepFactor > bps:
		return fmt.Errorf("a custodian's bond of %d times the pay of a unit, want between 1 and %d", p.KeepFactor, bps)
	case p.AskFee < 1 || p.AskFee > maxAskFee || p.AnswerLoad < 1 || p.AnswerLoad > MaxUnits:
		return fmt.Errorf("%d questions to a custodian at a time, at %d utally each, want 1 to %d at 1 to %d", p.AnswerLoad, p.AskFee, MaxUnits, uint64(maxAskFee))
	case p.AnswerTime < 1 || p.AnswerTime > maxWindow:
		return fmt.Errorf("%d ms for a custodian's answer, want between 1 and %d", p.AnswerTime, int64(maxWindow))
	case p.Speed == 0 || p.Link == 0 || p.Allowance < 0 || p.Allowance > maxWindow || p.KeepGB > maxKeepGB:
		return fmt.Errorf("a machine of %d FLOP/s, a connection of %d B/s, %d ms for blocks, %d utally to keep 10⁹ bytes for an hour: want at least 1, 1 and 0, at most %d ms and %d utally",
			p.Speed, p.Link, p.Allowance, p.KeepGB, int64(maxWindow), uint64(maxKeepGB))
	case p.LeadTimeout < 1 || p.LeadTimeout > maxWindow:
		return fmt.Errorf("a lead's timeout of %d ms, want between 1 and %d", p.LeadTimeout, int64(maxWindow))
	case p.ChallengeBond < 1 || p.ChallengeBond > maxQuantity:
		return fmt.Errorf("a challenger's bond of at least %d utally, want between 1 and %d", p.ChallengeBond, uint64(maxQuantity))
	}
	return nil
}

// Party is a registered peer as it was when the lease began.
type Party struct {
	Account string
	Key     []byte // ed25519 peer key
	VRF     []byte // validators only
	Owner   string // as declared when the lease began; empty for itself
	Weight  uint64 // utally of stake when the lease began, by which it is drawn
	Rates          // providers only
}

// Pool is parties of which some are drawn, or offered work, in account order. Leases share pools, and
// nobody changes one.
type Pool []Party

// Phase is where a lease stands.
type Phase uint8

// The phases.
const (
	Active   Phase = iota + 1 // units are computed and merged
	Stopping                  // no more units are given out; those under way are finished
	Closing                   // nothing is computed any more, everything can still be challenged
	Settled                   // paid out
)

// String returns the phase's name.
func (p Phase) String() string {
	return [...]string{"unknown", "active", "stopping", "closing", "settled"}[min(p, 4)]
}

// Lease is an order matched to an offer, and everything that has come of it.
type Lease struct {
	Order     Order
	Params    Params
	FeeBps    uint64
	Quote     Quote
	Deposit   uint64 // utally, locked beside the price
	MatchedAt int64

	Line
	Providers Pool   // behind the offer, or for replicas behind all offers that the block looked at; in account order
	LeadOwner string // of the first lead, as of a party
	Auditors  Pool   // pool from which each attempt's auditors and custodians are drawn, in account order
	Files     Files  // whether the order's files can be had, by those who keep them

	Phase   Phase
	Reason  string // why it stopped early, if it did
	Round   int    // the round being computed; Rounds when all are merged
	Windows Windows

	Units    []Unit   // by round·Shards + shard
	Past     [][]Past // by unit: its earlier attempts of which something still counts, in order
	Merges   []Merge
	Disputes []Dispute
	Asked    []Asked   // custodians with open questions, in account order
	Faults   []Fault   // units given up, by provider
	Queue    []Waiting // idle providers that want a unit, in the order in which they said so
	Sweep    int       // units of the round, from the last back, whose custodians are to be looked at, since one was convicted
	Barred   []string  // providers that get no more units, auditors and custodians that are drawn no more

	Audits  AuditCount
	Count   Count     // of the units of the round
	Reserve Exposures // of stake, by account and reason
	Ledger  Ledger

	sight *sight // which units are known; nil: all
}

// AuditCount counts the lease's audits, those of void work included.
type AuditCount struct{ Drawn, Passed, Failed int }

// Status is where a unit stands.
type Status uint8

// The statuses of a unit.
const (
	Open     Status = iota + 1 // to be assigned
	Assigned                   // a provider computes it
	Received                   // its receipt is on chain
	Counted                    // custodians attested; its window runs
	Accepted                   // it may be merged: its window closed unchallenged, or runs on beside later rounds
)

// String returns the status's name.
func (s Status) String() string {
	return [...]string{"unknown", "open", "assigned", "received", "counted", "accepted"}[min(s, 5)]
}

// Unit is one unit's current attempt.
type Unit struct {
	Status    Status
	Plain     bool // its provider has shown that it was not forced
	Sealed    bool // all replicas have committed: what they will show is fixed
	Differed  bool // its replicas have shown different results before one was its receipt
	Attempt   int
	Provider  string
	Audited   int        // segments that each auditor draws
	Seed      canon.Hash // of a block after the assignment, from which its forced draw, or InnerStep, follows; zero where nothing does
	Receipt   *Receipt
	Proof     []byte        // the provider's signature of the receipt
	Attested  []Attestation // its custodians, drawn after the receipt
	Audits    []Audit       // drawn with them
	Questions []Question    // open questions to its custodians
	Withheld  []string      // providers of earlier attempts whose data could not be had
	Replicas  []Replica     // who computes it beside one another, in the order of the draw; once it is received those beside Provider
	Results   []Result      // what these have shown, until one is its receipt
	Missed    []string      // who has lost a place in this attempt
	Times
}

// Times are those of a unit: protocol times in ms, 0 while they do not apply.
type Times struct {
	Due       int64 // deadline of what comes next: receipt or a step of replicas, attestations and audits, forced draw
	WindowEnd int64 // end of the unit's own window; once it is accepted, until when verdicts can be disputed; set while it is received if it lost its quorum
	HeldUntil int64 // an auditor reported a mismatch; a dispute must follow by then
	Attend    int64 // from then on a tick attends to it beside these deadlines: a draw, or bonds to let go of
	Took      int64 // how long after its round began its receipt came; 0 if it has none
}

// Past is an earlier attempt of a unit of which something still counts. Either it was
// forced, and was shown; or it was refuted or redone, and verdicts about it stand. Each is
// stored by itself: it may be large, and only disputes about it change it.
type Past struct {
	Forced   *Forced  // nil if it was refuted or redone
	Receipt  *Receipt // of an attempt that was refuted or redone
	Verdicts []Audit  // about that receipt
	Refuted  int      // segment of it over which its provider was convicted, −1 if it was not
}

// Attempt returns which attempt of its unit p is.
func (p *Past) Attempt() int {
	if p.Forced != nil {
		return p.Forced.Unit.Attempt
	}
	return p.Receipt.Attempt
}

// Audit is one drawn audit of a unit. Stake is reserved with the draw (Bonded), and stands
// behind the answer until nobody can dispute it any more.
type Audit struct {
	Auditor  string
	Done     bool
	Pass     bool
	Forfeit  bool // not answered in time
	Wrong    bool // the verdict was refuted
	Segments []int
	Digest   canon.Hash
	Bonded   bool
}

// Merge is the posted merge of a round; zero Root if there is none.
type Merge struct {
	By      string
	Root    canon.Hash
	Inputs  []canon.Hash // end roots of the round's units, by shard
	Data    File
	Attempt int
	Until   int64 // protocol time at which the windows of the round's units are over
}

// Dispute is an open dispute. Many may be open about one piece of work: they are
// played beside one another, and the first conviction ends them all.
type Dispute struct {
	ID         uint64
	Target     Target
	Attempt    int
	Segment    int // that is said to be wrong; 0 for a merge
	Defender   string
	Challenger string
	Pledge     string // auditor whose report of a mismatch stands behind it, in place of a challenger's bond
	At         int64  // protocol time in ms at which it was opened
	Void       bool   // the work was voided or redone since
	Gain       uint64 // of a unit that was: what it adds to the gains of its provider
	Holds      bool   // opened in time to keep its unit from being accepted
	Missed     bool   // the defender has missed an answer and not moved since
}

// Fault counts the units that a provider gave up.
type Fault struct {
	Provider string
	Late     int
}

// Share is an amount that an account got.
type Share struct {
	Account string
	Amount  uint64
}

// Ledger is the lease's money, in utally.
type Ledger struct {
	Escrow    uint64  // still locked
	Paid      []Share // out of escrow, by account
	Refund    uint64
	Burnt     uint64
	Tax       uint64  // to the jackpot pool
	Slashed   uint64  // taken from bonds, penalties included
	SlashPaid []Share // where it went, by account; of a lease that is known in parts, what an event adds
	Strangers int     // rewards out of it for accounts that are no parties
	Prizes    []Share // out of the jackpot pool, by account
	Insured   uint64  // out of the insurance fund, to the consumer
	Refuter   string  // who has shown that the order's cost is wrong: a part of the deposit is its, the rest is burnt
}

// Insurance is the account name under which effects and ledgers speak of the
// fund that takes what is left of slashed bonds.
const Insurance = "insurance"

// clone returns a copy that shares nothing that events change.
func (l Lease) clone() Lease {
	l.Leads = slices.Clone(l.Leads)
	l.Files.Custodians = slices.Clone(l.Files.Custodians)
	l.Files.Questions, l.Files.Unable = slices.Clone(l.Files.Questions), slices.Clone(l.Files.Unable)
	l.Asked = slices.Clone(l.Asked)
	l.Units = slices.Clone(l.Units)
	l.Past = slices.Clone(l.Past)
	l.Merges = slices.Clone(l.Merges)
	l.Disputes = slices.Clone(l.Disputes)
	l.Faults = slices.Clone(l.Faults)
	l.Queue = slices.Clone(l.Queue)
	l.Barred = slices.Clone(l.Barred)
	l.Reserve = slices.Clone(l.Reserve)
	l.Ledger.Paid = slices.Clone(l.Ledger.Paid)
	l.Ledger.SlashPaid = slices.Clone(l.Ledger.SlashPaid)
	l.Ledger.Prizes = slices.Clone(l.Ledger.Prizes)
	for i := range l.Units {
		u := &l.Units[i]
		u.Attested, u.Audits, u.Withheld, u.Questions = slices.Clone(u.Attested), slices.Clone(u.Audits), slices.Clone(u.Withheld), slices.Clone(u.Questions)
		u.Replicas, u.Results, u.Missed = slices.Clone(u.Replicas), slices.Clone(u.Results), slices.Clone(u.Missed)
		l.Past[i] = slices.Clone(l.Past[i])
		for j := range l.Past[i] {
			p := &l.Past[i][j]
			p.Verdicts = slices.Clone(p.Verdicts)
			if p.Forced != nil {
				f := *p.Forced
				f.Unit.Audits = slices.Clone(f.Unit.Audits)
				p.Forced = &f
			}
		}
	}
	return l
}

// RoundStart returns the state root that units of round r start from.
func (l *Lease) RoundStart(r int) canon.Hash {
	if r == 0 {
		return l.Order.Problem.Start
	}
	return l.Merges[r-1].Root
}

// Unit returns the index of a unit.
func (l *Lease) Unit(round, shard int) int { return round*l.Order.Problem.Shards + shard }

// round returns the units of round r.
func (l *Lease) round(r int) []Unit {
	w := l.Order.Problem.Shards
	return l.Units[r*w : (r+1)*w]
}

// FinalRoot returns the root of the last merge, zero before it is posted.
func (l *Lease) FinalRoot() canon.Hash {
	if l.Round == 0 {
		return canon.Hash{}
	}
	return l.Merges[l.Round-1].Root
}

// at returns where in a pool an account stands.
func (p Pool) at(account string) (int, bool) {
	return slices.BinarySearchFunc(p, account, func(x Party, account string) int { return strings.Compare(x.Account, account) })
}

// find returns a party of a pool, nil if account is none.
func find(p Pool, account string) *Party {
	if i, is := p.at(account); is {
		return &p[i]
	}
	return nil
}

// check returns an error unless each account is in a pool once, in order.
func (p Pool) check() error {
	for i := range p[min(1, len(p)):] {
		if p[i].Account >= p[i+1].Account {
			return fmt.Errorf("party %d of a pool is not before the next, by account", i)
		}
	}
	return nil
}

// Effect is something that the chain must do because of an event.
type Effect struct {
	Kind    Kind
	Account string
	Amount  uint64 // utally; FLOPs for Credit
	Note    string
}

// Kind says what an effect does.
type Kind uint8

// The kinds of effect.
const (
	Reserve   Kind = iota + 1 // bond of Account
	Release                   // reserved bond of Account
	Slash                     // take Amount from the reserved bond of Account
	Award                     // pay Account out of what was just slashed; Insurance names the fund
	Pay                       // Account out of escrow
	Burn                      // out of escrow
	Tax                       // out of escrow, to the jackpot pool
	Prize                     // Account out of the jackpot pool
	Refund                    // Account, the consumer, out of escrow
	Insure                    // Account out of the insurance fund
	Credit                    // Account with computing power
	Work                      // Amount FLOP of Account were timed, as far as they were credited
	Busy                      // for Amount ms Account had the work that was timed
	Vouch                     // for Amount valid units of Account
	Discredit                 // Account: its record of valid units begins anew, and its computing power
	Lock                      // money of Account, until it is unlocked
	Unlock                    // what is locked, to Account
	Jail                      // Account: no new work for as long as its Offence, Amount, takes
	Exclude                   // Account: no new work ever, nor for any peer of its owner, Note
	Falter                    // Account, as a lead: it did not do what was due
	Led                       // Account led to the end what Amount was paid for
	Emit                      // an event named by Note, about Account
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"unknown", "reserve", "release", "slash", "award", "pay", "burn", "tax", "prize", "refund", "insure", "credit", "work", "busy", "vouch", "discredit", "lock", "unlock", "jail", "exclude", "falter", "led", "emit"}[min(k, 22)]
}
