package beacon

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
)

func TestCalendar(t *testing.T) {
	c := Calendar{Epoch: 7, Height: 100, Length: 10}
	for _, x := range []struct {
		height int64
		epoch  uint64
	}{{0, 7}, {100, 7}, {109, 7}, {110, 8}, {1099, 106}} {
		if got := c.At(x.height); got != x.epoch {
			t.Errorf("block %d is in epoch %d, want %d", x.height, got, x.epoch)
		}
	}
	if c.Check() != nil || (Calendar{}).Check() == nil || (Calendar{Height: -1, Length: 1}).Check() == nil {
		t.Error("epochs without blocks were taken, or those with blocks refused")
	}
}

// However blocks with values fall, a draw for a whole epoch follows from the last value that
// came two epochs before or earlier.
func TestWholeEpochsFollowTheFoldBeforeLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Calendar{Epoch: rapid.Uint64Max(3).Draw(t, "epoch"), Height: 1, Length: rapid.Int64Range(1, 5).Draw(t, "length")}
		s := Begin("test")
		last := []Fold{{0, s.Value}} // value and epoch of every block that gave one
		height := int64(0)
		for range 40 {
			height += rapid.Int64Range(1, 12).Draw(t, "gap")
			want := last[0].Value
			for _, v := range last[1:] {
				if v.From+2 <= c.At(height) {
					want = v.Value
				}
			}
			if got := s.Whole(c, height); got != want {
				t.Fatalf("block %d of epoch %d: drew from %v, want %v", height, c.At(height), got.Short(), want.Short())
			}
			if rapid.Bool().Draw(t, "value") {
				if err := s.Advance(c, height, []byte{1}); err != nil {
					t.Fatal(err)
				}
				last = append(last, Fold{c.At(height), s.Value})
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAValueBindsAllBefore(t *testing.T) {
	c := Calendar{Height: 1, Length: 100}
	after := func(chain string, heights []int64, outputs ...string) canon.Hash {
		s := Begin(chain)
		for i, o := range outputs {
			if err := s.Advance(c, heights[i], []byte(o)); err != nil {
				t.Fatal(err)
			}
		}
		return s.Value
	}
	var seen []canon.Hash
	for _, v := range []canon.Hash{
		after("a", nil), after("b", nil),
		after("a", []int64{1, 2}, "x", "y"), after("a", []int64{1, 3}, "x", "y"),
		after("a", []int64{1, 2}, "x", "z"), after("a", []int64{1, 2}, "z", "y"), after("a", []int64{2}, "x"),
	} {
		if slices.Contains(seen, v) {
			t.Fatalf("two histories end in %v", v.Short())
		}
		seen = append(seen, v)
	}
}

func TestABlockHasOneValue(t *testing.T) {
	c, s := Calendar{Height: 1, Length: 4}, Begin("a")
	if err := s.Advance(c, 5, []byte("x")); err != nil {
		t.Fatal(err)
	}
	before := s.Value
	for _, height := range []int64{5, 4} {
		if s.Advance(c, height, []byte("y")) == nil || s.Value != before {
			t.Fatalf("block %d gave a value after block 5", height)
		}
	}
	t1, t2 := s.Input(6), s.Input(7)
	if slices.Equal(t1, t2) {
		t.Fatal("an old proof would hold for a later block")
	}
}

func TestStateCheck(t *testing.T) {
	for name, bend := range map[string]func(*State){
		"no value":        func(s *State) { s.Value = canon.Hash{} },
		"negative height": func(s *State) { s.Height = -1 },
		"no fold":         func(s *State) { s.Folds = nil },
		"many folds":      func(s *State) { s.Folds = []Fold{{1, s.Value}, {2, s.Value}, {3, s.Value}, {4, s.Value}} },
		"empty fold":      func(s *State) { s.Folds[0].Value = canon.Hash{} },
		"order":           func(s *State) { s.Folds = append(s.Folds, s.Folds[0]) },
	} {
		s := Begin("a")
		if bend(&s); s.Check() == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
