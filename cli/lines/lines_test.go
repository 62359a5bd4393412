package lines

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/events"
)

func TestLines(t *testing.T) {
	var b bytes.Buffer
	l := To(&b)
	order := canon.Sum("an order")
	for i := range 3 { // the second and third are too soon to be told
		l.Event(events.Event{Role: "provider-1", Kind: events.Computed, Order: order, Unit: 3, Step: 12 + i, Loss: 2.5, Rate: 4.25})
	}
	l.Event(events.Event{Role: "provider-1", Kind: events.Posted, Order: order, Unit: 3}) // after how far it came
	l.Event(events.Event{Role: "provider-2", Kind: events.Computed, Order: order, Unit: 4})
	l.Event(events.Event{Role: "v", Kind: events.Trouble, Unit: -1, Text: "no power"})
	got := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(got) != 5 || !strings.HasSuffix(got[0], "unit 3 step 12 loss 2.5000 at 4.2 steps/s") || !strings.Contains(got[1], "unit 3 step 14") || !strings.HasSuffix(got[4], "trouble   no power") {
		t.Fatalf("%s", b.String())
	}
}
