package disputer

import (
	"errors"
	"sync"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
)

// computed is a witness that is never asked.
type computed struct{ dispute.Witness }

// Games about one segment share an account, however many they are, and so do games
// about the receipt and about a verdict that repeats it.
func TestGamesOfASegmentShareAnAccount(t *testing.T) {
	var c accounts
	made := 0
	begin := func() (dispute.Witness, error) { made++; return &computed{}, nil }
	unit, verdict := keyOf(canon.Hash{1}, job.UnitTarget(2), 0, 3), keyOf(canon.Hash{1}, job.VerdictTarget(2, "a"), 0, 3)
	var all sync.WaitGroup
	for i := range 20 {
		k := unit
		if i%2 == 1 {
			k = verdict
		}
		all.Go(func() {
			if a, err := c.get(k, 1, begin); err != nil || a.witness == nil {
				t.Errorf("%v, %v", a, err)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Fatalf("%d accounts of one segment were begun", made)
	}
	for _, k := range []key{
		keyOf(canon.Hash{2}, job.UnitTarget(2), 0, 3), keyOf(canon.Hash{1}, job.UnitTarget(1), 0, 3), keyOf(canon.Hash{1}, job.MergeTarget(2), 0, 3),
		keyOf(canon.Hash{1}, job.UnitTarget(2), 1, 3), keyOf(canon.Hash{1}, job.UnitTarget(2), 0, 2),
	} {
		if _, err := c.get(k, 1, begin); err != nil {
			t.Fatal(err)
		}
	}
	if made != 6 {
		t.Fatalf("%d accounts of six segments were begun", made)
	}
}

// Small accounts are kept by the dozen, of large ones the few that were used last.
func TestAccountsTakeBoundedMemory(t *testing.T) {
	for _, x := range []struct {
		bytes uint64
		want  int
	}{{1, 64}, {maxBytes / 8, 8}, {maxBytes, always}, {1 << 63, always}} {
		var c accounts
		for i := range 64 {
			c.put(key{segment: i}, x.bytes, &computed{})
		}
		if len(c.held) != x.want || c.held[len(c.held)-1].segment != 63 || c.held[0].segment != 64-x.want {
			t.Errorf("of accounts of %d bytes %d are held, want the last %d", x.bytes, len(c.held), x.want)
		}
		c.use(c.held[0].key, x.bytes) // it is the last to go now
		c.put(key{segment: 99}, x.bytes, &computed{})
		if oldest := 64 - x.want; x.want < 64 && c.held[len(c.held)-2].segment != oldest {
			t.Errorf("segment %d is not the last but one used", oldest)
		}
	}
}

// forgetting is a witness that counts how often it is to forget.
type forgetting struct {
	computed
	forgot int
}

func (f *forgetting) Forget() { f.forgot++ }

// What a large account takes it takes while it is asked alone.
func TestLargeAccountsForget(t *testing.T) {
	for _, x := range []struct {
		bytes uint64
		want  int
	}{{1, 0}, {maxBytes / always, 0}, {maxBytes/always + 1, 1}} {
		var c accounts
		w := &forgetting{}
		a, err := c.get(key{}, x.bytes, func() (dispute.Witness, error) { return w, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.play(&dispute.Game{Stage: dispute.Over}); err == nil {
			t.Fatal("a move was made in a game that is over")
		}
		if w.forgot != x.want {
			t.Errorf("of %d bytes, the values of a step were let go of %d times, want %d", x.bytes, w.forgot, x.want)
		}
	}
}

// An account that could not be begun is begun again by who asks next.
func TestFailedAccountIsBegunAgain(t *testing.T) {
	var c accounts
	if _, err := c.get(key{}, 1, func() (dispute.Witness, error) { return nil, errors.New("it rains") }); err == nil {
		t.Fatal("no error")
	}
	if a, err := c.get(key{}, 1, func() (dispute.Witness, error) { return &computed{}, nil }); err != nil || a.witness == nil {
		t.Fatal(err)
	}
}
