package replay_test

import (
	"crypto/ed25519"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/replay"
)

// continued returns an order that goes on from one of two shards by a recipe, and its files.
func continued(t testing.TB, r train.Recipe) (*replay.Job, *job.Problem, map[string][]byte) {
	t.Helper()
	was, p, files := order(t, 3, 2)
	final, err := was.UnitOf(p, 0).Play(t.Context(), was.Start, 0, p.Steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	parent := &job.Order{Contact: job.Contact{Key: make([]byte, ed25519.PublicKeySize)}, Problem: *p}
	parent.Conditions = job.Conditions{MaxPrice: 1, Expires: 1, MinProviders: 1, Custodians: 1, UnitTimeout: 1, UnitWindow: 1, Window: 1}
	in := was.Inputs
	in.Recipe, in.Parent = r, &replay.Parent{Order: parent, Final: final}
	j, err := replay.New(t.Context(), in, 3, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	q := &job.Problem{Rounds: 1, Steps: 2, Interval: 1, Seed: 8, Parent: job.Parent{Order: parent.ID(), Final: root(t, final)}}
	if err := j.Bind(q); err != nil {
		t.Fatal(err)
	}
	q.Files = append(slices.Clone(p.Files), job.File{Role: replay.RoleParent}, job.File{Role: replay.RoleStart})
	files[replay.RoleParent], files[replay.RoleStart] = canon.Marshal(parent), canon.Encode(final.Encode)
	return j, q, files
}

// bySGD is another way to train the model of these tests.
func bySGD() train.Recipe {
	r := inputs(24).Recipe
	r.Optimizer = "sgd"
	return r
}

func adapted() train.Recipe {
	r := inputs(24).Recipe
	r.Adapters = train.Adapters{Rank: 2, Alpha: 4, Of: []string{"h*"}}
	return r
}

// Whoever loads an order that goes on from another derives the state that it starts in.
func TestContinuedOrdersAreLoaded(t *testing.T) {
	for name, r := range map[string]train.Recipe{"the same": inputs(24).Recipe, "another optimizer": bySGD(), "adapters": adapted()} {
		j, p, files := continued(t, r)
		again, err := load(p, files)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if whole := p.Start == p.Parent.Final; whole != (name == "the same") {
			t.Errorf("%s: the state goes on as it is: %v", name, whole)
		}
		if again.Parent != nil {
			t.Errorf("%s: a job keeps what it went on from", name)
		}
		for _, x := range []*replay.Job{j, again} { // what is delivered has the weights that carried over
			g, err := train.Export(x.Start, x.Model, x.Recipe)
			if err != nil {
				t.Fatal(err)
			}
			final := read(t, files[replay.RoleStart], p.Parent.Final)
			for _, c := range g.Consts {
				if w := final.Find("p/" + c.Name); w != nil && !w.Equal(c.Tensor) {
					t.Errorf("%s: %s does not carry over", name, c.Name)
				}
			}
		}
	}
}

func read(t testing.TB, b []byte, root canon.Hash) *graph.State {
	t.Helper()
	s, err := replay.ReadState(b, root, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContinuedOrdersAreChecked(t *testing.T) {
	_, p, files := continued(t, bySGD())
	parent := func(f map[string][]byte, change func(*job.Order)) canon.Hash {
		var o job.Order
		if err := canon.Unmarshal(f[replay.RoleParent], &o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		f[replay.RoleParent] = canon.Marshal(&o)
		return o.ID()
	}
	final := read(t, files[replay.RoleStart], p.Parent.Final)
	tampered := final.Find("p/head").Clone()
	tampered.Set(3, tampered.At(3)^1)
	other := &graph.State{Slots: final.Slots, Tensors: slices.Clone(final.Tensors)}
	for i, s := range other.Slots {
		if s.Name == "p/head" {
			other.Tensors[i] = tampered
		}
	}
	elsewhere, _, _ := order(t, 3, 2)
	for want, change := range map[string]func(*job.Problem, map[string][]byte){
		"the start state is": func(p *job.Problem, _ map[string][]byte) { p.Start = root(t, elsewhere.Start) },
		"the start state is ": func(p *job.Problem, f map[string][]byte) {
			f[replay.RoleStart], p.Parent.Final = canon.Encode(other.Encode), root(t, other)
		},
		"start state: state has": func(_ *job.Problem, f map[string][]byte) { f[replay.RoleStart] = canon.Encode(other.Encode) },
		"not one of the earlier": func(p *job.Problem, f map[string][]byte) {
			f[replay.RoleStart], p.Parent.Final = canon.Encode((&graph.State{}).Encode), root(t, &graph.State{})
		},
		"names no parent file": func(p *job.Problem, _ map[string][]byte) { p.Files = p.Files[:2] },
		"names no start file":  func(p *job.Problem, _ map[string][]byte) { p.Files = p.Files[:3] },
		"parent: ":             func(_ *job.Problem, f map[string][]byte) { f[replay.RoleParent] = f[replay.RoleParent][1:] },
		"an order at most": func(p *job.Problem, _ map[string][]byte) {
			p.Files = slices.Clone(p.Files)
			for i := range p.Files {
				if p.Files[i].Role == replay.RoleParent {
					p.Files[i].Size = 1 << 40
				}
			}
		},
		"the parent's file is order": func(_ *job.Problem, f map[string][]byte) { parent(f, func(o *job.Order) { o.Nonce++ }) },
		"not that of the earlier": func(p *job.Problem, f map[string][]byte) {
			p.Parent.Order = parent(f, func(o *job.Order) { o.Problem.Step[0] ^= 1 })
		},
		"the maximum price is zero": func(p *job.Problem, f map[string][]byte) {
			p.Parent.Order = parent(f, func(o *job.Order) { o.Conditions.MaxPrice = 0 })
		},
		"its recipe has batches of": func(p *job.Problem, f map[string][]byte) {
			p.Parent.Order = parent(f, func(o *job.Order) { o.Problem.Batch++ })
		},
		"parent: recipe": func(p *job.Problem, f map[string][]byte) {
			p.Parent.Order = parent(f, func(o *job.Order) { o.Problem.Recipe = nil })
		},
	} {
		q, f := *p, maps.Clone(files)
		change(&q, f)
		var unfit *replay.UnfitError
		if _, err := load(&q, f); !errors.As(err, &unfit) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
