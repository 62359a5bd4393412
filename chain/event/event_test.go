package event

import (
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"

	sdk "github.com/cosmos/cosmos-sdk/types"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

func TestRoundTrip(t *testing.T) {
	want := providerv1.EventSlashed{
		Account: "tally1x", Amount: 1 << 60, Insurance: 3,
		Payouts: []providerv1.Payout{{Account: "tally1y", Amount: 7}, {Account: "tally1z", Amount: 8}},
	}
	e, err := sdk.TypedEventToEvent(&want)
	if err != nil {
		t.Fatal(err)
	}
	raw := abci.Event(e)
	raw.Attributes = append(raw.Attributes,
		abci.EventAttribute{Key: "mode", Value: "EndBlock"}, abci.EventAttribute{Key: "msg_index", Value: "0"})
	got, err := Of[*providerv1.EventSlashed]([]abci.Event{{Type: "transfer"}, raw})
	if err != nil || len(got) != 1 || got[0].String() != want.String() {
		t.Fatalf("%v, %v", got, err)
	}
	if none, err := Of[*providerv1.EventJailed]([]abci.Event{raw}); err != nil || len(none) != 0 {
		t.Fatalf("%v, %v", none, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("tally.provider.v1.EventJailed", "until", `"5"`)
	f.Add("tally.provider.v1.EventSlashed", "payouts", `[{"amount":"1"}]`)
	f.Add("transfer", "amount", "5utally")
	f.Fuzz(func(t *testing.T, kind, key, value string) {
		m, err := Parse(abci.Event{Type: kind, Attributes: []abci.EventAttribute{{Key: key, Value: value}}})
		if err != nil && m != nil {
			t.Fatal("both a message and an error")
		}
	})
}
