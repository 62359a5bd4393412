package work_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// A consumer and its lead gave the files to providers alone, so that no custodian could
// attest, and the consumer had its training for nothing. Now custodians are asked first: no
// unit is given out, the deposit pays the lead and these custodians, and no provider loses.
func TestFilesWithheldFromCustodians(t *testing.T) {
	p := worktest.Meet(t, chaintest.New(t, worktest.Network()...), worktest.Order())
	p.Refuse(work.ErrRefused, p.Lead(), p.AssignMsg(0, "p0"))
	before := map[string]uint64{}
	for _, name := range append([]string{"v0"}, worktest.Validators...) {
		before[name] = p.Balance(chaintest.Named(name).Address)
	}
	said := p.Lease().Files.Custodians[:2]
	p.SayOfFiles(workv1.WORD_MISSING)
	p.NextBlock(time.Second)
	l := p.Lease()
	each := l.Deposit / 3
	if l.Phase != workv1.PHASE_SETTLED || !strings.Contains(l.Reason, "cannot be had") || l.Ledger.Slashed != 0 || each == 0 {
		t.Fatalf("%v (%s), %+v", l.Phase, l.Reason, l.Ledger)
	}
	for _, name := range []string{"v0", worktest.Named(t, said[0].Account).Name, worktest.Named(t, said[1].Account).Name} {
		if got := p.Balance(chaintest.Named(name).Address) - before[name]; got != each {
			t.Errorf("%s got %d of the deposit, want %d", name, got, each)
		}
	}
	if left := p.Balance(worktest.Consumer.Address); left != worktest.Purse-3*each {
		t.Errorf("the consumer has %d, lost %d, want %d", left, worktest.Purse-left, 3*each)
	}
	settlement(p)
}

// Custodians that say nothing of the files pay, and others are drawn, at most as often as
// the rules say; lead and consumer have theirs back.
func TestCustodiansSilentAboutFiles(t *testing.T) {
	p := worktest.Meet(t, chaintest.New(t, worktest.Network()...), worktest.Order())
	due := time.Duration(p.Lease().Files.Due-p.Now().UnixMilli()+1) * time.Millisecond
	for draw := uint32(1); draw <= 3; draw++ {
		if got := p.Lease().Files.Draws; got != draw {
			t.Fatalf("drawn %d times, want %d", got, draw)
		}
		p.NextBlock(due)
	}
	p.NextBlock(time.Second)
	l := p.Lease()
	if l.Phase != workv1.PHASE_SETTLED || !strings.Contains(l.Reason, "no quorum of custodians said") || reserved(&l) != 0 {
		t.Fatalf("%v (%s)", l.Phase, l.Reason)
	}
	if fee := l.Quote.Unit * l.Params.LateBps / 10_000; l.Ledger.Slashed < 9*fee || p.Balance(worktest.Consumer.Address) != worktest.Purse {
		t.Fatalf("%d slashed, the consumer has %d", l.Ledger.Slashed, p.Balance(worktest.Consumer.Address))
	}

	// With the second draw the lease goes on.
	p = worktest.Meet(t, chaintest.New(t, worktest.Network()...), worktest.Order())
	p.NextBlock(due)
	p.SayOfFiles(workv1.WORD_HAD)
	p.Finish()
	if l := p.Lease(); l.Reason != "" || l.Ledger.Refund < l.Deposit {
		t.Fatalf("%s, %d back of a deposit of %d", l.Reason, l.Ledger.Refund, l.Deposit)
	}
}

// A lead that gives up an order pays, before its files are had and after.
func TestDecliningCostsTheLead(t *testing.T) {
	for _, had := range []bool{false, true} {
		p := worktest.Meet(t, chaintest.New(t, worktest.Network()...), worktest.Order())
		if had {
			p.SayOfFiles(workv1.WORD_HAD)
		}
		p.Deliver(p.Lead(), &workv1.MsgDecline{Lead: p.Lease().Lead, Order: p.ID.String(), Reason: "the consumer refused a connection"})
		p.NextBlock(time.Second)
		l := p.Lease()
		rules := wire.ParamsFromProto(l.Params)
		if want := l.Quote.Unit * rules.LateBps / 10_000; l.Ledger.Slashed < want || want == 0 || p.Balance(worktest.Consumer.Address) != worktest.Purse {
			t.Errorf("files had: %v; the lead paid %d, want %d", had, l.Ledger.Slashed, want)
		}
	}
}

// An order may bend the deposit no more than its maximum price.
func TestDepositFollowsTheRules(t *testing.T) {
	rules := worktest.Rules(func(p *job.Params) { p.DepositBps, p.MinDeposit = 500, 7 })
	p := worktest.Begin(t, chaintest.New(t, worktest.Network(rules)...), worktest.Order())
	if got := p.Lease().Deposit; got != 10*worktest.Tally/20 {
		t.Fatalf("the deposit is %d", got)
	}
	if got := p.Balance(worktest.Consumer.Address); got != worktest.Purse-p.Lease().Quote.Price-p.Lease().Deposit {
		t.Fatalf("the consumer has %d", got)
	}
	p.Finish()
}

// reserved returns how many utally of stake a lease has reserved.
func reserved(l *workv1.Lease) (sum uint64) {
	for _, e := range l.Reserve {
		sum += e.Amount
	}
	return sum
}
