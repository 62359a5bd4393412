package seat

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tally-network/tally/chain/wire"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/node/consume"
)

// Tell writes a view for people.
func (v *View) Tell(w io.Writer) {
	fmt.Fprintf(w, "Epoch %d, until block %d; an epoch has %d blocks. The last draw was in epoch %d\n", v.Epoch, v.Next-1, v.Length, v.Drawn)
	if v.Weight > 0 {
		fmt.Fprintf(w, "The set follows from %s, of which %s are missing of a base of %s and belong to the founders that are eligible\n",
			wire.UtText(v.Weight), wire.UtText(v.Missing), wire.UtText(v.Base))
	} else {
		fmt.Fprintln(w, "The set is that of the genesis")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nmember\tvotes\tshare\tpower\tbond\t")
	for _, m := range v.Members {
		note := ""
		if m.Founder {
			note = "founder"
		}
		if m.Status != "active" {
			note = strings.TrimSpace(note + " " + m.Status)
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%s\t%v\t%s\n", m.Account, m.Votes, 100*m.Share, wire.UtText(m.Power), consume.Amount(m.Bond), note)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	for _, m := range v.Members {
		if m.Why != "" {
			fmt.Fprintf(w, "%s has no seats: %s\n", m.Account, m.Why)
		}
	}
	c := &v.Third
	fmt.Fprintf(w, "A third of the votes takes bonds of %v and %s of training, for which %v are burnt, at least. ", consume.Amount(c.Bond), wire.UtText(c.Training), consume.Amount(c.Burn))
	if c.Escrow == 0 {
		fmt.Fprintln(w, "Nothing is in escrow")
		return
	}
	fmt.Fprintf(w, "Orders hold %v in escrow: a third costs %.3g times that\n", consume.Amount(c.Escrow), c.Times)
}

// why says why a member has no seats, and what it can do about that; nothing if it has some. A seat takes power of perSeat 10⁻⁶ ut.
func why(p *seatsv1.Params, m *seatsv1.Member, epoch, power, perSeat uint64) string {
	switch {
	case m.Votes > 0:
		return ""
	case m.Status == seatsv1.STATUS_TOMBSTONED:
		return "it signed twice; another account may join, with another key"
	case m.Status == seatsv1.STATUS_LEFT:
		return "it has left; tally tx seats join brings it back"
	case m.Status == seatsv1.STATUS_JAILED:
		return "it missed too many blocks; tally tx seats unjail, once its node follows the chain"
	case m.FromEpoch > epoch:
		return fmt.Sprintf("draws count it from epoch %d on", m.FromEpoch)
	case m.Bond < p.BondPerSeat:
		return fmt.Sprintf("a seat takes a bond of %v; tally tx seats bond", consume.Amount(p.BondPerSeat))
	case m.BondEpoch >= epoch && m.BondBefore < p.BondPerSeat:
		return fmt.Sprintf("draws count its bond from epoch %d on", m.BondEpoch+1)
	case power < perSeat:
		return fmt.Sprintf("a seat takes power of %s; compute, or be delegated to (tally tx seats delegate)", wire.UtText(perSeat))
	}
	return "the next draw counts its power, and moves a quarter of the votes at most"
}
