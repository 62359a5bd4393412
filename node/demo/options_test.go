package demo

import (
	"testing"

	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
)

// The next order in a directory whose cheater was convicted is met, too.
func TestOrderDoesWithoutTheCheater(t *testing.T) {
	s := spec()
	if there := devnet.Default().Providers; s.Conditions.Providers > there-1 {
		t.Errorf("the order wants %d providers, and without the cheater there are %d", s.Conditions.Providers, there-1)
	}
}

// A provider that asked for a unit was shown as one that had merged a round, with no loss.
func TestReadyIsNoMerge(t *testing.T) {
	var lines []string
	s := newScribe(&Options{Line: func(line string) { lines = append(lines, line) }})
	s.observe(events.Event{Role: "provider-2", Kind: events.Ready, Unit: -1})
	s.observe(events.Event{Role: "provider-2", Kind: events.ProvedDraw, Unit: 3})
	if len(lines) != 0 || len(s.board.Loss) != 0 {
		t.Errorf("%q, losses %v", lines, s.board.Loss)
	}
}

func TestPrompt(t *testing.T) {
	long := "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"
	for body, want := range map[string]string{
		"A title\n\nand text": "A title\n\n", "\n\n one line ": "one line\n\n", long: string([]rune(long)[:maxPrompt]) + "\n\n",
	} {
		if got := prompt(body); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}
