package dispute

import (
	"errors"
	"testing"
)

// A side that falls silent at any of its moves misses its answer, is substituted by
// somebody who knows the truth, and the honest side wins all the same.
func TestSubstitutedSideWins(t *testing.T) {
	right, wrong := newParty(t, honest), newParty(t, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, err := Challenge(c, points, right)
	if err != nil {
		t.Fatal(err)
	}
	for from := 1; from < 20; from++ {
		g, err := Open(c, toyRules, o, 10)
		if err != nil {
			t.Fatal(err)
		}
		substituted := false
		for now := int64(10); g.Stage != Over; {
			side, w := g.Stage.Turn(), Witness(wrong)
			if side == Challenger {
				w = right
			}
			if side == Challenger && g.Moves >= from && !substituted {
				g, now = missed(t, g, side), g.Wake()+1
				left := g.Left[side-1]
				spent := now - g.Since
				if g, err = Substitute(g, side, now); err != nil {
					t.Fatal(err)
				}
				if g.Left[side-1] != left-spent || g.Since != now || g.Missed {
					t.Fatalf("the substitute has %d ms of %d, %d were spent", g.Left[side-1], left, spent)
				}
				substituted = true
			}
			m, err := Play(&g, w)
			if err != nil {
				t.Fatal(err)
			}
			if g, err = Apply(g, side, m, now); err != nil {
				t.Fatal(err)
			}
		}
		if g.Loser != Defender || g.Silent {
			t.Fatalf("silent at move %d: %v lost: %s", from, g.Loser, g.Reason)
		}
	}
}

// missed lets the side to move miss its answer, and checks when it does.
func missed(t *testing.T, g Game, side Side) Game {
	t.Helper()
	at := g.Wake()
	if at != g.Since+g.Rules.Answer {
		t.Fatalf("it wakes at %d, the answer is due by %d", at, g.Since+g.Rules.Answer)
	}
	if _, err := Substitute(g, side, at); err == nil {
		t.Fatal("a side was substituted before it missed an answer")
	}
	if before := Expire(g, at); before.Missed {
		t.Fatal("an answer was missed too early")
	}
	g = Expire(g, at+1)
	if !g.Missed || g.Stage == Over || g.Wake() != g.Deadline() {
		t.Fatalf("missed %v, stage %v", g.Missed, g.Stage)
	}
	if _, err := Substitute(g, Defender+Challenger-side, at+1); !errors.Is(err, ErrTurn) {
		t.Fatalf("the other side was substituted: %v", err)
	}
	if _, err := Substitute(g, side, g.Deadline()+1); !errors.Is(err, ErrLate) {
		t.Fatalf("a side was substituted after its clock had run out: %v", err)
	}
	return g
}

// Substitutes share the clock of their side, so however many there are, a game
// ends within two clocks.
func TestSubstitutesShareOneClock(t *testing.T) {
	right, wrong := newParty(t, honest), newParty(t, fault{3, 3, 4, 1, false})
	c, points := wrong.claim()
	o, err := Challenge(c, points, right)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Open(c, toyRules, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	substitutes := 0
	for g.Stage != Over {
		now := g.Wake() + 1
		if g = Expire(g, now); g.Missed && g.Stage != Over {
			if g, err = Substitute(g, g.Stage.Turn(), now); err != nil {
				t.Fatal(err)
			}
			substitutes++
		}
		if g.Since > 2*toyRules.Clock {
			t.Fatal("the game outlives two clocks")
		}
	}
	if g.Loser != Defender || !g.Silent || substitutes < 3 {
		t.Fatalf("%v lost after %d substitutes: %s", g.Loser, substitutes, g.Reason)
	}
}
