package work_test

import (
	"testing"
	"time"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// An hour without a block costs nobody a clock: it counts as five seconds.
// Afterwards every clock goes on.
func TestHaltCostsNobodyAClock(t *testing.T) {
	const gap = 5 * time.Second
	begin := func(t *testing.T) *worktest.Play {
		return worktest.Begin(t, chaintest.New(t, worktest.Network(chaintest.MaxGap(gap))...), worktest.Order())
	}
	for name, play := range map[string]func(*testing.T) (p *worktest.Play, over func() bool){
		"unit timeout": func(t *testing.T) (*worktest.Play, func() bool) {
			p := begin(t)
			p.Assign(0, "p0")
			return p, func() bool { return p.Unit(0).Status != workv1.UNIT_STATUS_ASSIGNED }
		},
		"custodians' time": func(t *testing.T) (*worktest.Play, func() bool) {
			p := begin(t)
			p.Assign(0, "p0")
			p.Submit(0)
			return p, func() bool { return p.Unit(0).Status != workv1.UNIT_STATUS_RECEIVED }
		},
		"window": func(t *testing.T) (*worktest.Play, func() bool) {
			p := begin(t)
			p.Compute(0, "p0")
			return p, func() bool { return p.Unit(0).Status == workv1.UNIT_STATUS_ACCEPTED }
		},
		"answer": func(t *testing.T) (*worktest.Play, func() bool) {
			a := beginAskedOf(t, func(*job.Order) {}, chaintest.MaxGap(gap))
			a.Compute(0, "p0")
			a.Deliver(worktest.Challenger, a.askMsg(a.custodian()))
			a.NextBlock(time.Second)
			return a.Play, func() bool { return len(a.Unit(0).Questions) == 0 }
		},
		"lead": func(t *testing.T) (*worktest.Play, func() bool) {
			p := begin(t)
			next := worktest.Named(t, p.Lease().Leads[1].Account)
			return p, func() bool {
				p.Queue(next, &workv1.MsgTakeLead{Validator: next.String(), Order: p.ID.String()})
				p.NextBlock(0)
				return p.Lease().Lead == next.String()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, over := play(t)
			if over() {
				t.Fatal("over before the halt")
			}
			if p.NextBlock(time.Hour); over() {
				t.Fatal("a halt of an hour ended it")
			}
			for range 200 {
				if p.NextBlock(gap); over() {
					return
				}
			}
			t.Fatal("it never ends")
		})
	}
}
