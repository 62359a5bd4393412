package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func rules() Rules {
	return Rules{Base: 1000, Quorum: 300, ThresholdBps: 5000, VetoBps: 3334, Deposit: 10, MaxOpen: 4, VotingMs: MinTime, DelayMs: MinTime}
}

func TestOutcome(t *testing.T) {
	for name, x := range map[string]struct {
		tally Tally
		want  Outcome
	}{
		"nobody":              {Tally{}, NoQuorum},
		"one short of quorum": {Tally{Yes: 299}, NoQuorum},
		"all yes":             {Tally{Yes: 300}, Passed},
		"a half":              {Tally{Yes: 150, No: 150}, Rejected},
		"above a half":        {Tally{Yes: 151, No: 150}, Passed},
		"abstaining counts":   {Tally{Yes: 1, Abstain: 299}, Passed},
		"all abstain":         {Tally{Abstain: 300}, Rejected},
		"veto below a third":  {Tally{Yes: 700, Veto: 300}, Passed},
		"veto of a third":     {Tally{Yes: 6666, Veto: 3334}, Vetoed},
		"veto without quorum": {Tally{Veto: 299}, NoQuorum},
		"veto says no":        {Tally{Yes: 700, No: 401, Veto: 300}, Rejected},
		"as much as there is": {Tally{Yes: MaxPower, No: MaxPower - 1}, Passed},
	} {
		if got := rules().Outcome(x.tally); got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}

func TestCheck(t *testing.T) {
	if err := rules().Check(); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*Rules){
		"no base":            func(r *Rules) { r.Base = 0 },
		"base too large":     func(r *Rules) { r.Base = MaxPower + 1 },
		"no quorum":          func(r *Rules) { r.Quorum = 0 },
		"quorum above base":  func(r *Rules) { r.Quorum = 1001 },
		"minority":           func(r *Rules) { r.ThresholdBps = 4999 },
		"unanimity and more": func(r *Rules) { r.ThresholdBps = 10_000 },
		"veto of nobody":     func(r *Rules) { r.VetoBps = 0 },
		"veto of most":       func(r *Rules) { r.VetoBps = 5001 },
		"free":               func(r *Rules) { r.Deposit = 0 },
		"too dear":           func(r *Rules) { r.Deposit = MaxDeposit + 1 },
		"none open":          func(r *Rules) { r.MaxOpen = 0 },
		"too many open":      func(r *Rules) { r.MaxOpen = MaxOpen + 1 },
		"over at once":       func(r *Rules) { r.VotingMs = MinTime - 1 },
		"never over":         func(r *Rules) { r.VotingMs = MaxTime + 1 },
		"no delay":           func(r *Rules) { r.DelayMs = 0 },
		"endless delay":      func(r *Rules) { r.DelayMs = MaxTime + 1 },
	} {
		r := rules()
		if bend(&r); r.Check() == nil {
			t.Errorf("%s: %+v was taken", name, r)
		}
	}
}

// Whoever votes, and however often: the tally is the sum of the votes that stand.
func TestVotesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tally Tally
		stands := map[int]Option{}
		weight := func(who int) uint64 { return uint64(who)*7 + 1 }
		for range rapid.IntRange(0, 60).Draw(t, "votes") {
			who, o := rapid.IntRange(0, 9).Draw(t, "who"), Option(rapid.IntRange(0, 5).Draw(t, "option"))
			before := tally
			if old, ok := stands[who]; ok && o >= Yes && o <= Abstain {
				if err := tally.Remove(old, weight(who)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tally.Add(o, weight(who)); (err == nil) != (o >= Yes && o <= Abstain) {
				t.Fatalf("option %d: %v", o, err)
			} else if err == nil {
				stands[who] = o
			} else if tally != before {
				t.Fatal("a vote for nothing counts")
			}
		}
		var want Tally
		for who, o := range stands {
			if err := want.Add(o, weight(who)); err != nil {
				t.Fatal(err)
			}
		}
		if tally != want {
			t.Fatalf("%+v, want %+v", tally, want)
		}
	})
}

func TestTallyRefuses(t *testing.T) {
	tally := Tally{Yes: 5, No: 1<<64 - 6}
	if tally.Add(Veto, 1) == nil || tally.Remove(Yes, 6) == nil || tally.Remove(Option(9), 0) == nil {
		t.Errorf("%+v", tally)
	}
}

// What the founders vote fades as power grows, without a step, and never brings the sum above the base.
func TestFoundersFade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rules()
		r.Base = rapid.Uint64Range(1, MaxPower).Draw(t, "base")
		power := rapid.Uint64Range(0, MaxPower).Draw(t, "power")
		ws := rapid.SliceOfN(rapid.Uint64Range(1, maxWeight), 1, 9).Draw(t, "weights")
		all, err := Weights(ws)
		if err != nil {
			t.Fatal(err)
		}
		missing, sum := r.Missing(power), uint64(0)
		for _, w := range ws {
			share, err := Share(missing, w, all)
			if err != nil {
				t.Fatal(err)
			}
			sum += share
		}
		if sum > missing || missing-sum >= uint64(len(ws)) || power+missing > max(r.Base, power) {
			t.Fatalf("power %d, missing %d, shares %d, base %d", power, missing, sum, r.Base)
		}
		if more := r.Missing(power + 1); missing > 0 && more != missing-1 || missing == 0 && more != 0 {
			t.Fatalf("at power %d %d are missing, at one more %d", power, missing, more)
		}
	})
}

func TestFoundersAreBounded(t *testing.T) {
	for _, ws := range [][]uint64{{0}, {maxWeight + 1}, make([]uint64, maxFounders+1)} {
		if sum, err := Weights(ws); err == nil {
			t.Errorf("%d weights gave %d", len(ws), sum)
		}
	}
	if _, err := Share(1, 2, 1); err == nil {
		t.Error("a founder has more than all")
	}
	if _, err := Share(1, 0, 0); err == nil {
		t.Error("nobody is a founder")
	}
}

// Whoever fills all places pays as much as all doublings together.
func TestDepositDoubles(t *testing.T) {
	r := rules()
	r.Deposit = MaxDeposit
	for n, want := -1, uint64(MaxDeposit); n < MaxOpen+3; n++ {
		if n > 0 && n <= MaxOpen {
			want *= 2
		}
		if got := r.DepositOf(n); got != want {
			t.Errorf("with %d open a proposal deposits %d, want %d", n, got, want)
		}
	}
}
