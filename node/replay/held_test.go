package replay

import "testing"

// Of large states a witness holds fewer, and of huge ones two.
func TestHeldStates(t *testing.T) {
	for _, x := range []struct {
		bytes int64
		want  int
	}{{1, 16}, {heldBytes / 16, 16}, {heldBytes/16 + 1, 15}, {heldBytes / 4, 4}, {heldBytes, 2}, {1 << 40, 2}} {
		if j := (&Job{bytes: x.bytes}); j.held() != x.want {
			t.Errorf("of states of %d bytes %d are held, want %d", x.bytes, j.held(), x.want)
		}
	}
}
