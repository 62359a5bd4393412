package demo

import (
	"testing"

	"github.com/tally-network/tally/node/devnet"
)

// The next order in a directory whose cheater was convicted is met, too.
func TestOrderDoesWithoutTheCheater(t *testing.T) {
	s := spec()
	if there := devnet.Default().Providers; s.Conditions.Providers > there-1 {
		t.Errorf("the order wants %d providers, and without the cheater there are %d", s.Conditions.Providers, there-1)
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
