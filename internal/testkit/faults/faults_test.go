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

// sample is how many nodes of a step are tried otherwise.
const sample = 10

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
