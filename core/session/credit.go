package session

import (
	"fmt"
	"math/bits"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Credit says how much a consumer pays ahead: what it may lose if the provider vanishes. That grows with what the two have
// settled with each other, so that nobody has to trust a stranger with much.
type Credit struct {
	First     uint64 // utally of the first instalment between strangers
	History   uint64 // utally that the two have settled before this session, as both agree
	GrowthBps uint64 // of what was settled, that is added to an instalment; in basis points
	Cap       uint64 // utally that no instalment exceeds: what is paid and unsettled at most
}

// Instalment returns how much may be paid ahead once so much was settled in this session, rounded down.
//
//	min(cap, first + growth · (history + settled))
//
// Growth is at most 1, so who vanishes with an instalment has always settled as much as it gains, but for the first.
func (c Credit) Instalment(settled uint64) uint64 {
	known := saturated(c.History, settled)
	return min(c.Cap, saturated(c.First, money.ScaleClamped(known, c.GrowthBps, money.Bps)))
}

// saturated adds amounts that only bound others.
func saturated(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return ^uint64(0)
	}
	return sum
}

// Check returns an error that says what is wrong with c.
func (c Credit) Check() error {
	switch {
	case c.First == 0 || c.First > c.Cap:
		return fmt.Errorf("a first instalment of %d utally: want 1 to %d, the cap", c.First, c.Cap)
	case c.GrowthBps > money.Bps:
		return fmt.Errorf("instalments grow by %d basis points of what was settled: want at most %d, or vanishing would bring more than serving did", c.GrowthBps, uint64(money.Bps))
	}
	return nil
}

func (c *Credit) code(w *canon.Codec) {
	for _, v := range []*uint64{&c.First, &c.History, &c.GrowthBps, &c.Cap} {
		w.U64(v)
	}
}
