package proof

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"pgregory.net/rapid"
)

func name(format string, a ...any) canon.Hash {
	return canon.Sum("replica", fmt.Appendf(nil, format, a...))
}

// truth is what a level makes of an input.
func truth(level int, in canon.Hash) canon.Hash { return name("%d %v", level, in) }

func refereed(c Claim) (right, known bool) { return c.Output == truth(c.Level, c.Input), true }

// replicas of one level that were given the same, and what each does with it.
func at(level int, in canon.Hash, lies ...int) (all []Replica) {
	for i, lie := range lies {
		r := Replica{fmt.Sprintf("p%d.%d", level, i), in, truth(level, in)}
		if lie > 0 {
			r.Output = name("lie %d", lie)
		}
		all = append(all, r)
	}
	return all
}

func TestCompare(t *testing.T) {
	in := name("input")
	first := truth(0, in)
	wrongInput := append(at(1, first, 0, 0), at(1, name("lie 1"), 0)...)
	for name, c := range map[string]struct {
		levels  [][]Replica
		decided Decided
		want    Finding
	}{
		"all equal":                        {[][]Replica{at(0, in, 0, 0, 0), at(1, first, 0, 0, 0)}, nil, Finding{Accepted: true, Levels: 2, Output: truth(1, first)}},
		"all collude":                      {[][]Replica{at(0, in, 1, 1, 1)}, nil, Finding{Accepted: true, Levels: 1, Output: at(0, in, 1)[0].Output}},
		"one is wrong":                     {[][]Replica{at(0, in, 0, 1, 0)}, refereed, Finding{Accepted: true, Levels: 1, Output: first, Wrong: []string{"p0.1"}}},
		"the majority is wrong":            {[][]Replica{at(0, in, 1, 0, 1)}, refereed, Finding{Accepted: true, Levels: 1, Output: first, Wrong: []string{"p0.0", "p0.2"}}},
		"all are wrong, differently":       {[][]Replica{at(0, in, 1, 2, 3)}, refereed, Finding{Output: in, Wrong: []string{"p0.0", "p0.1", "p0.2"}}},
		"nothing is decided yet":           {[][]Replica{at(0, in, 0, 1, 0)}, func(Claim) (bool, bool) { return false, false }, Finding{Output: in, Open: []Claim{{0, in, first}, {0, in, at(0, in, 1)[0].Output}}}},
		"too few":                          {[][]Replica{at(0, in, 0, 0)}, nil, Finding{Output: in}},
		"a replica that was given a lie":   {[][]Replica{at(0, in, 0, 0, 0), wrongInput}, refereed, Finding{Output: first, Levels: 1, Idle: []string{"p1.0"}}},
		"nobody was given the right thing": {[][]Replica{at(0, name("other"), 0, 0, 0)}, nil, Finding{Output: in, Idle: []string{"p0.0", "p0.1", "p0.2"}}},
	} {
		got := Compare(in, c.levels, 3, c.decided)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// With a referee, nobody honest is ever wrong, whatever others do and whatever
// they pass on; and what is accepted with one honest replica a level is right.
func TestHonestReplicasAreNeverWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const replicas = 3
		in := name("input")
		honest := map[string]bool{}
		right := true // some replica of every level is honest and was given the right thing
		truthful := in
		given := [replicas]canon.Hash{in, in, in}
		var levels [][]Replica
		for level := range rapid.IntRange(1, 4).Draw(t, "levels") {
			var all []Replica
			good := false
			for i := range replicas {
				r := Replica{fmt.Sprintf("p%d.%d", level, i), given[i], truth(level, given[i])}
				if lie := rapid.IntRange(0, 4).Draw(t, "lie"); lie < 2 {
					honest[r.Provider] = true
					good = good || r.Input == truthful
				} else {
					r.Output = name("lie %d", lie)
				}
				all = append(all, r)
				given[i] = r.Output // the next of its ring takes what it gives
			}
			right = right && good
			truthful = truth(level, truthful)
			levels = append(levels, all)
		}
		f := Compare(in, levels, replicas, refereed)
		for _, p := range f.Wrong {
			if honest[p] {
				t.Fatalf("%s is honest, and wrong in %+v", p, f)
			}
		}
		if f.Accepted && right && f.Output != truthful {
			t.Fatalf("accepted %v, the right output is %v", f.Output, truthful)
		}
		if len(f.Wrong) != len(slices.Compact(slices.Sorted(slices.Values(f.Wrong)))) {
			t.Fatalf("somebody is wrong twice: %v", f.Wrong)
		}
	})
}
