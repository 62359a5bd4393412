package module_test

import (
	"math"
	"slices"
	"testing"

	"github.com/cosmos/gogoproto/proto"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// An event is what the SDK makes of it, whatever stands in its fields.
func TestEventsAreTyped(t *testing.T) {
	for _, event := range []proto.Message{
		&workv1.EventProgress{},
		&workv1.EventProgress{Order: "ab", What: "drawn for files", Account: "tally1", Number: math.MaxUint64},
		&workv1.EventStuck{Order: "\x00\x7f\u2028", Reason: `"<&>\` + "\xff\n"},
		&workv1.EventPhase{Phase: workv1.PHASE_CLOSING, Reason: "é"},
		&providerv1.EventSlashed{Account: "a", Amount: 1, Payouts: []providerv1.Payout{{Account: "b", Amount: 2}}},
		&providerv1.EventSlashed{Account: "a", Payouts: []providerv1.Payout{{Account: "b"}, {Account: "<c>", Amount: math.MaxUint64}}},
		&providerv1.EventSlashed{},
		&providerv1.EventJailed{Account: "a", Until: math.MinInt64},
	} {
		ctx := sdk.Context{}.WithEventManager(sdk.NewEventManager())
		if err := module.Emit(ctx, event); err != nil {
			t.Fatal(err)
		}
		want, err := sdk.TypedEventToEvent(event)
		if err != nil {
			t.Fatal(err)
		}
		got := ctx.EventManager().Events()
		if len(got) != 1 || got[0].Type != want.Type || !slices.Equal(got[0].Attributes, want.Attributes) {
			t.Errorf("%v\nbecame %v\nwant   %v", event, got, want)
		}
	}
}

func BenchmarkEmit(b *testing.B) {
	ctx := sdk.Context{}.WithEventManager(sdk.NewEventManager())
	event := &workv1.EventProgress{Order: "ddfed649c9f6ff574144dfca0a5d17bfd00cb2359b44da493bbd9a12e03ef4fb", What: "drawn for files", Account: "tally1duk6qn5jhxv964wtpe2lpet9aayewavkcnqy0y", Number: 3}
	b.ReportAllocs()
	for b.Loop() {
		if err := module.Emit(ctx.WithEventManager(sdk.NewEventManager()), event); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSDKEmit(b *testing.B) {
	event := &workv1.EventProgress{Order: "ddfed649c9f6ff574144dfca0a5d17bfd00cb2359b44da493bbd9a12e03ef4fb", What: "drawn for files", Account: "tally1duk6qn5jhxv964wtpe2lpet9aayewavkcnqy0y", Number: 3}
	b.ReportAllocs()
	for b.Loop() {
		if err := sdk.NewEventManager().EmitTypedEvent(event); err != nil {
			b.Fatal(err)
		}
	}
}
