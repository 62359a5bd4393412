package sim

import "testing"

// The claim that docs/spec makes about rounds that do not wait.
func TestWindowsHoldUpNoRound(t *testing.T) {
	const window = 10 * 60_000
	p, err := Rounds(64, window)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, ratio %.3f", p, p.Ratio())
	if p.Waits < 64*window {
		t.Errorf("rounds that wait take %d ms, less than their windows", p.Waits)
	}
	if p.Ratio() > 1.1 || p.Forced == 0 {
		t.Errorf("rounds that do not wait take %d ms, %.2f of what they may; %d attempts were forced", p.Ahead, p.Ratio(), p.Forced)
	}
}
