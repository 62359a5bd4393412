package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/probe"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
)

// A provider whose settings ask for it has itself measured: it opens a probe, orders it from itself, once, and computes it. A process that
// ends in between and begins again goes on.
func TestProviderIsMeasured(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	const name = "provider-0"
	n := nettest.Start(t, nettest.Options{
		Probe: map[string]time.Duration{name: time.Millisecond}, // the smallest there is
		Idle:  []string{name},
		Config: func(c *devnet.Config) {
			c.UnitPrices = []uint64{1_000, 1_000}
			c.Work.Speed, c.Work.AllowanceMs = 3e10, 3_000 // short windows
		},
	})
	account, from, conn := n.Member(name).Home.Address, n.Consumer.Env.Account, n.Consumer.Env.Chain.Conn
	if _, err := from.Send(t.Context(), &banktypes.MsgSend{FromAddress: from.Address, ToAddress: account, Amount: coin.Of(100_000_000)}); err != nil {
		t.Fatal(err)
	}
	n.Begin(name)
	n.Await("a probe that is posted", func(e events.Event) bool { return e.Kind == events.Probed && e.Role == name && !e.Order.IsZero() })
	n.End(name)
	n.Begin(name)
	var speed uint64
	if err := n.EachBlock(func(client.Block) (bool, error) {
		r, err := providerv1.NewQueryClient(conn).Peer(t.Context(), &providerv1.QueryPeerRequest{Account: account})
		speed = r.GetSpeed()
		return speed == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	told := n.Await("what was shown", func(e events.Event) bool { return e.Kind == events.Probed && strings.Contains(e.Text, "has shown") })
	if want := fmt.Sprintf("%.4g GFLOP/s: tier C", float64(speed)/1e9); !strings.Contains(told.Text, want) {
		t.Errorf("%s, want %s", told.Text, want)
	}
	if most := probe.Speed(probe.Fewest*probe.RunFLOPs, 0); speed > most || speed < most/4 {
		t.Errorf("%d FLOP/s were shown by %d runs, which are %d in a minute", speed, probe.Fewest, most)
	}
	orders, err := consume.Orders(t.Context(), conn, account, 8)
	if err != nil || len(orders) != 1 || orders[0].Posting.Status != marketv1.STATUS_SETTLED {
		t.Errorf("want one order, settled: %+v, %v", orders, err)
	}
}
