package thirds

import (
	"os"
	"testing"
)

// A third of the power cheats in every way at once, and nobody honest loses. make thirds plays a hundred thousand accounts.
func TestThird(t *testing.T) {
	s := Small
	if os.Getenv("TALLY_THIRDS") != "" {
		s = Whole
	}
	w := Begin(t, s)
	w.Play()
	t.Logf("\n%s", w.Report())
}
