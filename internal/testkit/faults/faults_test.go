package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/lower"
)

// all asks for a fault in every node, not in a sample.
const all = "TALLY_FAULTS"

// Otherwise so many nodes are tried of a step, or of a part of one.
const (
	sample = 10
	few    = 3
)

// A fault in any node of a training step, in any profile, is found at this very
// node, and its author loses: as the defender, and as the challenger.
func TestFaultInEveryNodeIsFound(t *testing.T) {
	var total Cost
	there, tried := map[string]int{}, map[string]int{} // by function
	nodes, swallowed := 0, 0
	for _, m := range Models {
		for _, name := range lower.Profiles() {
			p, err := lower.ParseProfile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(m, p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Nodes {
				there[s.Nodes[i].Fn.String()]++
			}
			r := rand.New(rand.NewPCG(uint64(p), 1))
			which := r.Perm(len(s.Nodes))
			if os.Getenv(all) == "" {
				which = which[:min(sample, len(which))]
			}
			var cost Cost
			for _, node := range which {
				f, c, err := s.Hunt(r, node)
				if err != nil {
					t.Fatalf("%v, %s: %v", m, name, err)
				}
				if f.Swallowed {
					swallowed++
				}
				cost.Add(c)
				tried[s.Nodes[node].Fn.String()]++
			}
			nodes += len(which)
			total.Add(cost)
			t.Logf("%-12v %-5s %4d of %4d nodes, %v", m, name, len(which), len(s.Nodes), cost)
		}
	}
	var by []string
	for _, fn := range slices.Sorted(maps.Keys(there)) {
		by = append(by, fmt.Sprintf("%s %d of %d", fn, tried[fn], there[fn]))
	}
	t.Logf("found %d of %d faults, %d of them swallowed by later nodes; %v", nodes, nodes, swallowed, total)
	t.Logf("functions: %s", strings.Join(by, ", "))
	if len(there) < 20 || swallowed == 0 || swallowed == nodes {
		t.Errorf("the models are not what they are meant to be")
	}
}

// A false value in any part of a step is found at its node, whatever kind of work it is, and its author loses
// on either side. Augmentations, Dropout and running statistics are such parts.
func TestFaultInEachPartOfEachKindIsFound(t *testing.T) {
	for _, m := range Kinds {
		t.Run(m.Name, func(t *testing.T) {
			s, err := New(m, lower.FP32)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(5, 8))
			for _, part := range m.Parts {
				nodes, err := s.Part(part)
				if err != nil {
					t.Error(err)
					continue
				}
				which := r.Perm(len(nodes))
				if os.Getenv(all) == "" {
					which = which[:min(few, len(which))]
				}
				var total Cost
				for _, i := range which {
					_, cost, err := s.Hunt(r, nodes[i])
					if err != nil {
						t.Errorf("%s: %v", part, err)
					}
					total.Add(cost)
				}
				t.Logf("%s: %d nodes of %d, of %d in a step; %v", part, len(which), len(nodes), len(s.Nodes), total)
			}
			if _, err := s.Part("lottery"); err == nil {
				t.Error("a part that no step has was found")
			}
		})
	}
}
