package notes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/notes"
)

func TestNotesOfAnOrderAreForgottenTogether(t *testing.T) {
	d, mine, other := notes.Dir(t.TempDir()), canon.Sum("mine"), canon.Sum("other")
	for _, order := range []canon.Hash{mine, other} {
		for _, kind := range []string{"states", "units"} {
			if err := notes.Write(filepath.Join(d.Of(order, kind), "a"), []byte(kind)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Forget(mine); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Of(mine, "states")); !os.IsNotExist(err) {
		t.Errorf("notes of an order that was forgotten: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(d.Of(other, "units"), "a")); err != nil || string(b) != "units" {
		t.Errorf("notes of another order: %q, %v", b, err)
	}
	if err := d.Forget(mine); err != nil {
		t.Errorf("forgotten twice: %v", err)
	}
}
