package job

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/money"
)

// What an order makes others keep is bounded and paid for: its files have known
// roles, each once; a custodian's wage grows with bytes and time, so a price bounds
// them; and custodians fetch no more for a lease than its quota.

// The roles of an order's files.
const (
	RoleModel     = "model"     // ONNX, with the initial weights
	RoleParent    = "parent"    // order that is continued, in canonical encoding
	RoleStart     = "start"     // state to start from, if not from the initial weights: with a parent, its last; of a batch, its records
	RoleData      = "data"      // training records
	RoleCrown     = "crown"     // of these, by which parts are checked (tensor.Crown)
	RoleHeldOut   = "heldout"   // records that training never sees
	RoleTokenizer = "tokenizer" // how text becomes records
	RoleSchema    = "schema"    // what the fields of records mean
)

// Limits on what is kept.
const (
	maxKeepGB = 1 << 40          // utally for 10⁹ bytes and hour
	maxFile   = 1 << 50          // bytes of an order's file
	MaxList   = MaxSegments << 8 // bytes of the list of a unit's checkpoints, or of its fragments
	hour      = 3600 * 1000
)

// checkFiles returns an error unless the order's files have known roles, each once.
func (p *Problem) checkFiles() error {
	for i := range p.Files {
		f := &p.Files[i]
		if err := p.checkRole(f.Role); err != nil {
			return err
		}
		switch {
		case slices.ContainsFunc(p.Files[:i], func(o File) bool { return o.Role == f.Role }):
			return fmt.Errorf("two files are the order's %s; name one", f.Role)
		case f.Size > maxFile:
			return fmt.Errorf("the %s has %d bytes, the limit is %d", f.Role, f.Size, uint64(maxFile))
		}
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// FileBytes returns the bytes of the order's files.
func (p *Problem) FileBytes() (n uint64) {
	for _, f := range p.Files {
		n += f.Size
	}
	return n
}

// life returns how long a lease of these rounds and times lasts if all is done in
// time, in ms.
func life(p *Problem, c *Conditions) int64 {
	return int64(p.Rounds)*(c.UnitTimeout+c.UnitWindow) + c.Window
}

// keepWage returns what a custodian is paid, for each unit, for the bytes that it keeps:
// the unit's checkpoints, or its fragment of them, and a share of the order's files and of
// the states that rounds start from. Less than an utally is nothing.
func keepWage(p *Problem, c *Conditions, rate uint64) (uint64, error) {
	order := Order{Problem: *p, Conditions: *c}
	unit := p.UnitBytes() / uint64(order.Fragments().Needed)
	common, err := money.Times(p.StateBytes, p.Rounds)
	if err != nil {
		return 0, err
	}
	if common, err = money.Sum(common, p.FileBytes()); err != nil {
		return 0, err
	}
	bytes, err := money.Sum(unit, common/uint64(max(p.Units(), 1)))
	if err != nil {
		return 0, err
	}
	return keepPay(p, c, rate, bytes)
}

// fileWage returns what a custodian of the order's files is paid: a unit's share of what
// custodians get, and all bytes of the files as long as the lease lasts.
func (q *Quote) fileWage(p *Problem, c *Conditions, t Tariff) (uint64, error) {
	share, err := money.Scale(q.Unit, t.CustodianBps, bps*uint64(c.Custodians))
	if err != nil {
		return 0, err
	}
	kept, err := keepPay(p, c, t.KeepGB, p.FileBytes())
	if err != nil {
		return 0, err
	}
	return money.Sum(share, kept)
}

// keepPay returns what keeping bytes costs at a rate, for as long as a lease lasts.
func keepPay(p *Problem, c *Conditions, rate, bytes uint64) (uint64, error) {
	hourly, err := money.Times(rate, int((life(p, c)+hour-1)/hour))
	if err != nil {
		return 0, err
	}
	hi, lo := bits.Mul64(hourly, bytes)
	if hi >= gigaByte {
		return 0, money.ErrOverflow
	}
	q, _ := bits.Div64(hi, lo, gigaByte)
	return q, nil
}

// Quota returns the most bytes that a custodian stores for the lease: the order's files,
// the states that rounds start from and the last ends in, and for each unit what its attempts so far have
// left; twice that where fragments are made out of it. An attempt beyond the first has
// cost a penalty, a bond, or a part of the tax.
func (l *Lease) Quota() uint64 {
	p := &l.Order.Problem
	attempts := uint64(len(l.Units))
	for i := range l.Units {
		attempts += uint64(l.Units[i].Attempt)
	}
	copies := uint64(1)
	if l.Order.Fragments().Cuts() {
		copies = 2
	}
	hi, units := bits.Mul64(attempts, copies*(p.UnitBytes()+MaxList))
	_, states := bits.Mul64(p.StateBytes, uint64(p.Rounds)+1)
	total, err := money.Sum(units, states, p.FileBytes())
	if hi > 0 || err != nil {
		return ^uint64(0)
	}
	return total
}
