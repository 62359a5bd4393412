package market_test

import (
	"testing"

	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// An order that passes its check can be stored and read again, and keeps its id
// on the way: what the book could not read it must not take.
func FuzzOrder(f *testing.F) {
	o := worktest.Order()
	m := market.OrderToProto(&o)
	b, err := proto.Marshal(&m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m marketv1.Order
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		o, err := market.OrderFromProto(&m)
		if err != nil || o.Check() != nil {
			return
		}
		var back job.Order
		if err := canon.Unmarshal(canon.Marshal(&o), &back); err != nil {
			t.Fatal(err)
		}
		again := market.OrderToProto(&back)
		same, err := market.OrderFromProto(&again)
		if err != nil || back.ID() != o.ID() || same.ID() != o.ID() {
			t.Fatalf("an order changed: %v", err)
		}
	})
}
