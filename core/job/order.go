package job

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/record"
)

// Limits on an order, so that a lease stays small enough to load.
const (
	MaxUnits          = 4096
	MaxSegments       = 256
	MaxFiles          = 16
	MaxText           = 1 << 12
	MaxParties        = 1024 // providers, and validators drawn from, of one lease
	MaxLine           = 16   // validators drawn to take over from the first lead, one after another
	maxRole           = 32
	maxAccount        = 128
	maxAddrs          = 8
	maxAddr           = 256
	maxWindow         = 30 * 24 * 3600 * 1000 // ms
	maxQuantity       = 1 << 60               // FLOP, bytes or utally
	maxAttempt        = 1 << 16               // of a unit or a merge, as numbers
	maxAttempts       = 1 << 10               // how often rules may let one unit be given out
	maxRecords        = 1 << 14               // in lists that only slashing makes longer
	maxDisputes       = 1 << 9                // open about one lease, all of which its events carry
	reservedDisputes  = 1 << 6                // of these, for auditors that have reported what they dispute
	maxLeaseBytes     = 48 << 20              // bytes that are recorded of units, of the 64 MiB of which a reply is read
	maxCustodians     = 16
	maxAuditors       = 16
	maxKept           = MaxParties + maxCustodians   // custodians that a lease can have had, one after another
	maxBarred         = 2*MaxParties + maxCustodians // the providers, the auditors, and the first custodians
	maxProblemRecords = 1 << 40                      // that an order reads
	maxRivals         = 64                           // challengers that share a jackpot: of so many, none gets anything
	maxMissed         = maxAttempts + MaxReplicas    // places of an attempt that can be lost
)

// File says where the bytes behind a root can be fetched.
type File struct {
	Role string // model, parent, start, data, heldout, tokenizer, schema, receipt
	CID  string
	Size uint64
}

// check returns an error unless f fits in its encoding.
func (f *File) check() error {
	if len(f.Role) > maxRole || len(f.CID) > maxAccount {
		return fmt.Errorf("a file's role and CID have %d and %d bytes, limits are %d and %d", len(f.Role), len(f.CID), maxRole, maxAccount)
	}
	return nil
}

// Parent is a settled order that another goes on from, and the root of the state in which it ended (train.Earlier).
type Parent struct{ Order, Final canon.Hash }

// Problem is what shall be computed. Everything that could change the result
// is here: programs, start state, data, batch order, number of steps.
type Problem struct {
	Kind    string // Training or Batch
	Profile string // numeric profile

	Step  canon.Hash // root of the program of a step
	Merge canon.Hash // root of the program that merges a round; zero if none does
	Start canon.Hash // state root before the first round; of a batch, of its records
	Data  canon.Hash // tensor root of the training records; zero of a batch

	Parent Parent // what it goes on from; zero if it starts from the model or from a state of unknown origin

	Rounds, Shards int
	Steps          int // local steps of a unit
	Interval       int // steps between checkpoints
	Batch, Records int
	Seed           uint64

	StateBytes             uint64 // of an encoded state that a step gives
	StepFLOPs, StepBytes   uint64 // of one step
	MergeFLOPs, MergeBytes uint64 // of one merge
	Recipe                 []byte // what programs follow from beside the model: hyperparameters, or how records enter it
	Files                  []File
}

// Conditions are the terms on which the consumer buys.
type Conditions struct {
	MaxPrice      uint64 // utally; locked when the order is posted
	Expires       int64  // ms of protocol time that the order waits for an offer
	MinProviders  int
	Validator     string // only this one, if not empty
	Auditors      int    // auditors of each unit
	AuditSegments int    // segments that each of them draws and re-executes
	AuditFloor    int    // fewest of these for a provider with a long record of valid units; 0: always all
	TopSegments   int    // segments with the largest updates that each re-executes besides
	Replicas      int    // providers that compute each unit beside one another; 0: one does
	Custodians    int    // nodes that keep the data; more than half of them must attest
	CodedBytes    uint64 // of a unit's checkpoints, above which each keeps a fragment of them; 0: each keeps all
	UnitTimeout   int64  // ms from assignment to receipt
	UnitWindow    int64  // ms that a counted unit waits for disputes before it is accepted; with Speculate others go on meanwhile
	Window        int64  // ms at the end in which everything can still be challenged
	Credit        bool   // burn as much as it takes to credit providers with all that they compute
	Speculate     int    // rounds that work may be ahead of the oldest whose windows are not over; 0: it waits for them
	Auction       bool   // it takes part in the next clearing, and meets no standing offer
	Needs         match.Needs
}

// Contact says where a consumer hands over the files of its order and takes the
// result: the ed25519 key and the multiaddresses of its peer.
type Contact struct {
	Key   []byte
	Addrs []string
}

// Order is a consumer's signed request.
type Order struct {
	Chain      string
	Consumer   string
	Nonce      uint64 // makes two equal wishes two orders
	Contact    Contact
	Problem    Problem
	Conditions Conditions
	Project    uint64 // of drilling (core/drilling), of which it is a task; 0: of none
}

// ID returns the identity of the order.
func (o *Order) ID() canon.Hash { return canon.Sum(canon.DomainOrder, canon.Marshal(o)) }

// Units returns the number of units of the problem.
func (p *Problem) Units() int { return p.Rounds * p.Shards }

// Segments returns the number of segments of a unit.
func (p *Problem) Segments() int { return (p.Steps + p.Interval - 1) / p.Interval }

// Segment returns the steps of a unit before a segment, and those in it.
func (p *Problem) Segment(s int) (first, steps int) {
	first = s * p.Interval
	return first, min(p.Interval, p.Steps-first)
}

// UnitFLOPs returns the floating-point operations of one unit.
func (p *Problem) UnitFLOPs() uint64 { return p.StepFLOPs * uint64(p.Steps) }

// UnitBytes returns the bytes of a unit's checkpoints after the first.
func (p *Problem) UnitBytes() uint64 { return p.StateBytes * uint64(p.Segments()) }

// Order returns the batch order of the problem.
func (p *Problem) Order() record.Order {
	return record.Order{Seed: p.Seed, Records: p.Records, Shards: p.Shards, Batch: p.Batch}
}

// File returns the file with the given role.
func (p *Problem) File(role string) (File, bool) {
	for _, f := range p.Files {
		if f.Role == role {
			return f, true
		}
	}
	return File{}, false
}

// Bid returns what the conditions ask of an offer.
func (c *Conditions) Bid() book.Bid {
	return book.Bid{MaxPrice: c.MaxPrice, Providers: max(c.MinProviders, c.Replicas), Referees: max(c.Auditors, c.Custodians), Validator: c.Validator}
}

// Plan returns how the work of the order takes time.
func (o *Order) Plan() match.Plan {
	p, c := &o.Problem, &o.Conditions
	return match.Plan{Rounds: p.Rounds, Shards: p.Shards * c.Copies(), UnitFLOPs: p.UnitFLOPs(), Ahead: c.Speculate, Window: c.UnitWindow}
}

// Audited returns how many segments of a unit each auditor draws, of a provider
// whose last record units were all valid.
func (c *Conditions) Audited(record uint64) int {
	if c.AuditFloor == 0 {
		return c.AuditSegments
	}
	return proof.Audited(c.AuditSegments, c.AuditFloor, record)
}

// Quorum returns how many custodians must attest to a receipt.
func (c *Conditions) Quorum() int { return c.Custodians/2 + min(c.Custodians, 1) }

// Fragments returns how the checkpoints of a unit are cut among its custodians: half of a
// quorum of them make up the whole, so that the other half may fail. If the code does
// not cut, each keeps all.
func (o *Order) Fragments() erasure.Code {
	c := erasure.Code{Fragments: o.Conditions.Custodians, Needed: 1}
	if limit := o.Conditions.CodedBytes; limit > 0 && o.Problem.UnitBytes() > limit {
		c.Needed = (o.Conditions.Quorum() + 1) / 2
	}
	return c
}

// Check returns, in words for the consumer, the first thing that is wrong.
func (o *Order) Check() error {
	if err := o.checkParties(); err != nil {
		return err
	}
	if err := o.Problem.check(); err != nil {
		return err
	}
	if err := o.Conditions.check(o.Problem.Segments()); err != nil {
		return err
	}
	if n := o.Conditions.TopSegments; n > 0 && o.Problem.Independent() {
		return fmt.Errorf("%d segments with the largest updates: independent steps update nothing", n)
	}
	if err := o.checkAuction(); err != nil {
		return err
	}
	return o.checkSize()
}

// checkParties bounds what an order says of people and where they are.
func (o *Order) checkParties() error {
	switch {
	case len(o.Contact.Key) != ed25519.PublicKeySize || len(o.Contact.Addrs) > maxAddrs:
		return fmt.Errorf("the contact needs a peer key of %d bytes and at most %d addresses", ed25519.PublicKeySize, maxAddrs)
	case max(len(o.Chain), len(o.Consumer), len(o.Conditions.Validator)) > maxAccount:
		return fmt.Errorf("the name of the chain, the consumer or the validator is longer than %d bytes", maxAccount)
	}
	for _, a := range o.Contact.Addrs {
		if len(a) > maxAddr {
			return fmt.Errorf("an address of the contact has %d bytes, the limit is %d", len(a), maxAddr)
		}
	}
	return nil
}

// check returns an error unless what a problem says can be read, computed and counted.
func (p *Problem) check() error {
	if _, err := lower.ParseProfile(p.Profile); err != nil {
		return err
	}
	switch {
	case p.kindOf().name == "":
		return fmt.Errorf("problem kind %q is not known; use %s or %s", p.Kind, Training, Batch)
	case p.Step.IsZero() || p.Start.IsZero():
		return errors.New("the problem lacks the root of its step program or of its start state")
	case p.Rounds > 0 && p.Shards > MaxUnits/p.Rounds:
		return fmt.Errorf("%d rounds of %d shards are more than %d units", p.Rounds, p.Shards, MaxUnits)
	case p.StepFLOPs == 0 || p.Steps > 0 && p.StepFLOPs > maxQuantity/uint64(p.Steps) || p.StepBytes > maxQuantity/uint64(max(p.Steps, 1)) || p.MergeFLOPs > maxQuantity || p.MergeBytes > maxQuantity:
		return fmt.Errorf("the cost of a step is missing or too large")
	case p.StateBytes > maxQuantity/MaxSegments:
		return fmt.Errorf("a state of %d bytes, the limit is %d", p.StateBytes, uint64(maxQuantity/MaxSegments))
	case len(p.Recipe) > MaxText || len(p.Files) > MaxFiles:
		return fmt.Errorf("recipe of %d bytes and %d files, limits are %d and %d", len(p.Recipe), len(p.Files), MaxText, MaxFiles)
	}
	if err := p.checkFiles(); err != nil {
		return err
	}
	if err := checkBounds(
		bound{"rounds", int64(p.Rounds), 1, MaxUnits},
		bound{"shards", int64(p.Shards), 1, MaxUnits},
		bound{"steps of a unit", int64(p.Steps), 1, 1 << 20},
		bound{"checkpoint interval", int64(p.Interval), 1, int64(p.Steps)},
		bound{"batch", int64(p.Batch), 1, 1 << 20},
	); err != nil {
		return err
	}
	if err := checkBounds(bound{"segments of a unit", int64(p.Segments()), 1, MaxSegments}); err != nil {
		return err
	}
	return p.kindOf().check(p)
}

// check returns an error unless conditions suit units of so many segments.
func (c *Conditions) check(segments int) error {
	if c.MaxPrice == 0 {
		return fmt.Errorf("the maximum price is zero; nobody works for nothing")
	}
	if err := checkBounds(
		bound{"expiry (ms)", c.Expires, 1, maxWindow},
		bound{"providers", int64(c.MinProviders), 1, 1 << 10},
		bound{"auditors", int64(c.Auditors), 0, maxAuditors},
		bound{"custodians", int64(c.Custodians), 1, maxCustodians},
		bound{"unit timeout (ms)", c.UnitTimeout, 1, maxWindow},
		bound{"unit window (ms)", c.UnitWindow, 1, maxWindow},
		bound{"challenge window (ms)", c.Window, 1, maxWindow},
		bound{"audited segments", int64(c.AuditSegments), 0, int64(segments)},
		bound{"rounds ahead of those that are final", int64(c.Speculate), 0, MaxUnits},
	); err != nil {
		return err
	}
	if err := errors.Join(c.Needs.Check(), c.checkReplicas()); err != nil {
		return err
	}
	if n, least := &c.Needs, max(c.MinProviders, c.Replicas); n.Most > 0 && n.Most < least || n.Deadline > 0 && n.Deadline < c.UnitTimeout {
		return fmt.Errorf("%d providers at most and %d at least, a deadline of %d ms and a unit timeout of %d: an upper bound is below a lower one", n.Most, least, n.Deadline, c.UnitTimeout)
	}
	if (c.Auditors == 0) != (c.AuditSegments == 0) {
		return fmt.Errorf("%d auditors re-execute %d segments; give both or neither", c.Auditors, c.AuditSegments)
	}
	most := segments - c.AuditSegments
	if c.Auditors == 0 {
		most = 0
	}
	return checkBounds(
		bound{"floor of the audited segments", int64(c.AuditFloor), 0, int64(c.AuditSegments)},
		bound{"segments with the largest updates", int64(c.TopSegments), 0, int64(most)},
	)
}

// checkAuction returns an error unless an order demands what an auction sells: capacity of one tier, any of which is as good as any
// other.
func (o *Order) checkAuction() error {
	c := &o.Conditions
	others := c.Needs
	others.Tier = ""
	switch {
	case !c.Auction:
		return nil
	case o.Problem.Merges():
		return fmt.Errorf("an auction sells capacity to batches: training orders take a standing offer, without auction: true")
	case c.Replicas > 0:
		return fmt.Errorf("an auction sells each unit's capacity once: %d replicas take a standing offer, without auction: true", c.Replicas)
	case c.Validator != "":
		return fmt.Errorf("at an auction whoever takes the smallest fee leads, which may not be %.80s: an order that names a validator takes a standing offer, without auction: true", c.Validator)
	}
	asked := others.Describe()
	if c.MinProviders > 1 {
		asked = append(asked, fmt.Sprintf("%d providers at least", c.MinProviders))
	}
	if len(asked) > 0 {
		return fmt.Errorf("at an auction an order may ask for a tier and for nothing else of providers, and this one asks for %s: leave that out, or take a standing offer, without auction: true", strings.Join(asked, ", "))
	}
	return nil
}

// checkSize bounds what is recorded of a lease: every role reads it whole. Of a unit that
// is a root for each segment, what each auditor looked at, and what each custodian keeps.
func (o *Order) checkSize() error {
	const root, audit, segment, attestation, replica = 32, 128, 4, 192, 512 // bytes
	p, c := &o.Problem, &o.Conditions
	unit := root*(p.Segments()+1) + c.Auditors*(audit+segment*(c.AuditSegments+c.TopSegments)) + c.Custodians*attestation + c.Replicas*(replica+2*root*(p.Segments()+1))
	if all := unit * p.Units(); all > maxLeaseBytes {
		return fmt.Errorf("the record of %d units with %d segments, %d auditors and %d custodians may have %d bytes, the limit is %d: use fewer units, or more steps between checkpoints",
			p.Units(), p.Segments(), c.Auditors, c.Custodians, all, maxLeaseBytes)
	}
	return nil
}

// bound is a number of an order with its bounds.
type bound struct {
	what          string
	value, lo, hi int64
}

// checkBounds returns an error about the first number that is out of its bounds.
func checkBounds(all ...bound) error {
	for _, x := range all {
		if x.value < x.lo || x.value > x.hi {
			return fmt.Errorf("%s is %d, must be between %d and %d", x.what, x.value, x.lo, x.hi)
		}
	}
	return nil
}

// Code walks the fields of o.
func (o *Order) Code(w *canon.Codec) {
	w.String(&o.Chain, maxAccount)
	w.String(&o.Consumer, maxAccount)
	w.U64(&o.Nonce)
	w.Blob(&o.Contact.Key, ed25519.PublicKeySize)
	canon.Seq(w, &o.Contact.Addrs, maxAddrs, 1, func(w *canon.Codec, s *string) { w.String(s, maxAddr) })
	o.Problem.code(w)
	o.Conditions.code(w)
	w.U64(&o.Project)
}

func (p *Problem) code(w *canon.Codec) {
	w.String(&p.Kind, 32)
	w.String(&p.Profile, 32)
	for _, h := range []*canon.Hash{&p.Step, &p.Merge, &p.Start, &p.Data, &p.Parent.Order, &p.Parent.Final} {
		w.Hash(h)
	}
	for _, n := range []*int{&p.Rounds, &p.Shards, &p.Steps, &p.Interval, &p.Batch, &p.Records} {
		w.Int(n, 1<<40)
	}
	for _, n := range []*uint64{&p.Seed, &p.StateBytes, &p.StepFLOPs, &p.StepBytes, &p.MergeFLOPs, &p.MergeBytes} {
		w.U64(n)
	}
	w.Blob(&p.Recipe, MaxText)
	canon.Seq(w, &p.Files, MaxFiles, 3, func(w *canon.Codec, f *File) { f.Code(w) })
}

// Code walks the fields of f.
func (f *File) Code(w *canon.Codec) {
	w.String(&f.Role, maxRole)
	w.String(&f.CID, maxAccount)
	w.U64(&f.Size)
}

func (c *Conditions) code(w *canon.Codec) {
	w.U64(&c.MaxPrice)
	w.U64(&c.CodedBytes)
	w.String(&c.Validator, maxAccount)
	for _, n := range []*int{&c.MinProviders, &c.Auditors, &c.AuditSegments, &c.AuditFloor, &c.TopSegments, &c.Custodians, &c.Speculate, &c.Replicas} {
		w.Int(n, 1<<20)
	}
	w.Bool(&c.Credit)
	w.Bool(&c.Auction)
	for _, n := range []*int64{&c.Expires, &c.UnitTimeout, &c.UnitWindow, &c.Window} {
		w.I64(n)
	}
	c.Needs.Code(w)
}
