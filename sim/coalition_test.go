package sim

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/job"
)

func search(t *testing.T, s Search, only string) []Found {
	t.Helper()
	s.Only = regexp.MustCompile(only)
	out, err := Coalitions(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Some coalitions search for what pays, briefly, and find nothing. make coalitions lets
// all of them search for longer.
func TestCoalitionsFindNothing(t *testing.T) {
	t.Parallel()
	out := search(t, Search{Budget: LeastBudget, Seed: 1}, "^provider$|^auditor . custodian$|^consumer . lead . provider . (custodian|challenger)$")
	if len(out) != 4 {
		t.Fatalf("%d coalitions", len(out))
	}
	for _, f := range out {
		t.Logf("%+v", f)
		if err := f.Check(); err != nil {
			t.Error(err)
		}
		if f.Orders < LeastBudget/2 || f.Tried < 5 || f.Strategy == "nothing" {
			t.Errorf("%+v", f)
		}
	}
}

// Who hands the order's files to its own alone is given no unit, and loses its deposit;
// with custodians that say that they have them, its units wait for accomplices.
func TestFilesToItsOwnAlone(t *testing.T) {
	friends := Coalition(1<<Consumer | 1<<Lead | 1<<Provider)
	for _, c := range []struct {
		who     Coalition
		keeping uint8
	}{{1 << Consumer, 0}, {friends, 0}, {friends | 1<<Custodian, keepsNothing}, {friends | 1<<Custodian, attestsForFriends}} {
		for chance := range uint64(8) {
			s := Strategy{chooseFiles: toItsOwn, chooseKeeping: c.keeping}
			b, err := newBout(bouts, c.who, s, chance)
			if err == nil {
				err = b.play()
			}
			if err != nil || b.lease.Reason == "" || b.value() == 1 {
				t.Fatalf("%v, %d: %v; ended by %q with a value of %v", c.who, c.keeping, err, b.lease.Reason, b.value())
			}
			if c.keeping == 0 && (b.lease.Begun() || b.lease.Files.Said != job.Missing || b.earned[consumer] >= 0) {
				t.Errorf("%v: files %v, units given out: %v, the consumer has %d", c.who, b.lease.Files.Said, b.lease.Begun(), b.earned[consumer])
			}
		}
	}
}

// By the rules under which the jackpot pool was drained, the search drains it: whose
// forced draws are known can be chosen, which costs nothing; every forced attempt is paid, out
// of what others have paid in. Four of the first five seeds find it with so few orders.
func TestSearchFindsTheDrain(t *testing.T) {
	t.Parallel()
	old := bouts
	old.rules.LateBps, old.rules.MaxLate = 0, job.MaxUnits
	old.prizes = func(b *bout) {
		pay := b.pay()
		for _, p := range b.lease.Ledger.Prizes { // those of today are not paid
			b.earned[p.Account] -= int64(p.Amount)
			b.earned["pool"] += int64(p.Amount)
		}
		for _, x := range b.shown {
			b.earned[x.provider] += 3 * pay
			b.earned["pool"] -= 3 * pay
		}
	}
	out := search(t, Search{Budget: LeastBudget + 200, Seed: 2, economy: old}, "^consumer . lead . provider . challenger$")
	f := out[0]
	t.Logf("%+v", f)
	if f.Check() == nil || f.Profit < f.UnitPay || !strings.Contains(f.Strategy, "provider") {
		t.Errorf("the drain was not found: %+v", f)
	}
}

func TestSameSeedSameSearch(t *testing.T) {
	t.Parallel()
	one, two := search(t, Search{Budget: LeastBudget, Seed: 3}, "^custodian$"), search(t, Search{Budget: LeastBudget, Seed: 3}, "^custodian$")
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%+v, then %+v", one, two)
	}
	if _, err := Coalitions(context.Background(), Search{Budget: LeastBudget - 1}); err == nil {
		t.Error("a search that decides nothing is played")
	}
}

// All of one to four of six parts, and who follows the protocol has what its work is
// worth, but for what chance gives to forced attempts.
func TestCoalitionsOfUpToFour(t *testing.T) {
	all := coalitions()
	if len(all) != 6+15+20+15 || all[0].String() != "consumer" || slices.Contains(all, 0) {
		t.Errorf("%d coalitions: %v", len(all), all)
	}
	for _, c := range all {
		b, err := newBout(bouts, c, Strategy{}, 7)
		if err == nil {
			err = b.play()
		}
		if err != nil || b.lease.Reason != "" || b.value() != 1 {
			t.Errorf("%v: %v, %q", c, err, b.lease.Reason)
		}
	}
}
