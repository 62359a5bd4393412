package histories

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Counts says what histories came to.
type Counts struct {
	Blocks, Epochs, Txs, Refused int
	Settled, Disputes, Votes     int            // leases and disputes that ended, and votes that changed something
	Sets                         int            // of who runs consensus
	Sent, Executed               map[string]int // transactions with a message of a type
}

// Count counts what is in a history.
func (h *History) Count(tb testing.TB) Counts {
	tb.Helper()
	enc, err := app.NewEncoding()
	if err != nil {
		tb.Fatal(err)
	}
	c := Counts{Blocks: len(h.Blocks), Epochs: 1 + int((h.Last()-1)/h.epoch), Sent: map[string]int{}, Executed: map[string]int{}}
	for _, b := range h.Blocks {
		for i, r := range b.Results() {
			c.Txs++
			if r.Code != 0 {
				c.Refused++
			}
			tx, err := enc.Tx.TxDecoder()(b.Request.Txs[i])
			if err != nil {
				continue
			}
			for _, m := range tx.GetMsgs() {
				if c.Sent[sdk.MsgTypeURL(m)]++; r.Code == 0 {
					c.Executed[sdk.MsgTypeURL(m)]++
				}
			}
		}
		for _, e := range chaintest.Events[*workv1.EventPhase](tb, b) {
			if e.Phase == workv1.PHASE_SETTLED {
				c.Settled++
			}
		}
		c.Disputes += len(chaintest.Events[*disputev1.EventClosed](tb, b))
		for _, e := range chaintest.Events[*policyv1.EventDecided](tb, b) {
			if e.Status == policyv1.STATUS_EXECUTED {
				c.Votes++
			}
		}
		c.Sets += len(chaintest.Events[*seatsv1.EventSeated](tb, b))
	}
	return c
}

// Add counts those of another history, too.
func (c *Counts) Add(o Counts) {
	c.Blocks, c.Epochs, c.Txs, c.Refused = c.Blocks+o.Blocks, c.Epochs+o.Epochs, c.Txs+o.Txs, c.Refused+o.Refused
	c.Settled, c.Disputes, c.Votes, c.Sets = c.Settled+o.Settled, c.Disputes+o.Disputes, c.Votes+o.Votes, c.Sets+o.Sets
	c.Sent, c.Executed = sum(c.Sent, o.Sent), sum(c.Executed, o.Executed)
}

func sum(a, b map[string]int) map[string]int {
	out := map[string]int{}
	for _, m := range []map[string]int{a, b} {
		for k, n := range m { // order: sums
			out[k] += n
		}
	}
	return out
}

// String describes the counts in a line.
func (c Counts) String() string {
	return fmt.Sprintf("%d blocks in %d epochs, %d transactions, of them %d refused; messages of %d types, of them %d executed; %d leases settled, %d disputes decided, %d votes executed, %d sets of members",
		c.Blocks, c.Epochs, c.Txs, c.Refused, len(c.Sent), len(c.Executed), c.Settled, c.Disputes, c.Votes, c.Sets)
}

// Missing returns the types of messages that people send, and of which none was executed.
func (c Counts) Missing(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(name string) bool { return c.Executed[name] > 0 })
}

// Brief lists types of messages without what all of them have.
func Brief(types map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(types)) {
		out = append(out, fmt.Sprintf("%s %d", strings.TrimPrefix(strings.TrimPrefix(name, "/"), "tally."), types[name]))
	}
	return strings.Join(out, ", ")
}
