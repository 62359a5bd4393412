package quantity_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/node/consume/quantity"
)

// written are quantities as an order file has them.
type written struct {
	Memory quantity.Bytes
	Speed  quantity.Speed
	Power  quantity.Power
}

// What is written of a quantity is read as the same.
func TestQuantitiesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "n")
		was := written{quantity.Bytes(n), quantity.Speed(n), quantity.Power(n)}
		text, err := json.Marshal(was)
		if err != nil {
			t.Fatal(err)
		}
		var back written
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, was) {
			t.Fatalf("%s came back as %+v, %v", text, back, err)
		}
	})
}
