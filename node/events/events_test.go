package events

import (
	"reflect"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

// An observer sees each event before Emit returns, as it was told, and under the name of the
// role that tells it, whatever the event says.
func TestEventsComeAsTheyWereTold(t *testing.T) {
	var seen []Event
	r := Recorder{Name: "provider-2", Observe: func(e Event) { seen = append(seen, e) }}
	told := []Event{
		{Kind: Computed, Order: canon.Hash{1}, Unit: 3, Step: 4, Loss: 2.5, Rate: 19, Text: "words"},
		{Role: "somebody else", Kind: Trouble, Unit: -1},
	}
	for i, e := range told {
		r.Emit(e)
		if len(seen) != i+1 {
			t.Fatalf("%d events are seen after %d were told", len(seen), i+1)
		}
		e.Role = "provider-2"
		if !reflect.DeepEqual(seen[i], e) {
			t.Errorf("seen is %+v, told was %+v", seen[i], e)
		}
	}
}

// Most roles run unobserved.
func TestNobodyNeedObserve(*testing.T) { (&Recorder{Name: "alone"}).Emit(Event{Kind: Posted}) }
