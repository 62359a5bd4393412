package states_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/store"
)

// A state is found by its root wherever the lease has it, and still when the
// work that it came from is void.
func TestStateIsFoundByItsRoot(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	steps, roots := roletest.Unit(t, j, l, 0)
	roletest.Receive(t, env, l, 0, roots, roletest.Put(t, env, steps[0]), roletest.Put(t, env, steps[1]))
	merged, err := j.MergeStates(t.Context(), []*graph.State{steps[1], steps[1]})
	if err != nil {
		t.Fatal(err)
	}
	root, err := merged.Root()
	if err != nil {
		t.Fatal(err)
	}
	l.Round, l.Merges[0] = 1, job.Merge{By: "lead", Root: root, Data: roletest.Put(t, env, merged)}
	roletest.Lend(t, env, l)
	all := append(slices.Clone(roots), root)
	for round := range 2 {
		for i, want := range all {
			s, err := env.States.Get(t.Context(), l, want)
			if err != nil {
				t.Fatalf("state %d, %d: %v", i, round, err)
			}
			if got, err := s.Root(); err != nil || got != want {
				t.Fatalf("state %d has root %v, %v", i, got.Short(), err)
			}
			if err := env.States.Ensure(t.Context(), l, want); err != nil {
				t.Fatal(err)
			}
		}
		// Everything is void; what was seen stays.
		l.Round, l.Merges[0], l.Units[0] = 0, job.Merge{}, job.Unit{Status: job.Open, Attempt: 1}
	}
	var missing *blobs.FetchError
	if _, err := env.States.Get(t.Context(), l, canon.Sum("nothing")); !errors.As(err, &missing) {
		t.Errorf("a root that nothing has: %v", err)
	}
}

// A receipt cannot make others fetch or believe what is no checkpoint of it.
func TestStateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		bend  func(r *job.Receipt, list *[]job.File)
		words string
	}{
		"a longer state":     {func(_ *job.Receipt, list *[]job.File) { (*list)[1].Size++ }, "is said to have"},
		"a huge state":       {func(_ *job.Receipt, list *[]job.File) { (*list)[1].Size = 1 << 40 }, "is said to have"},
		"another state":      {func(_ *job.Receipt, list *[]job.File) { (*list)[1] = (*list)[0] }, "want"},
		"too few":            {func(_ *job.Receipt, list *[]job.File) { *list = (*list)[:1] }, "2 checkpoints and data of 1"},
		"a CID that is none": {func(_ *job.Receipt, list *[]job.File) { (*list)[1].CID = "x" }, "CID"},
	} {
		env, _ := roletest.New(t, roletest.Me)
		l, j := roletest.Lease(t, env)
		steps, roots := roletest.Unit(t, j, l, 0)
		list := []job.File{roletest.Put(t, env, steps[0]), roletest.Put(t, env, steps[1])}
		c.bend(nil, &list)
		roletest.Receive(t, env, l, 0, roots, list...)
		if _, err := env.States.Get(t.Context(), l, roots[2]); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if err := env.States.Ensure(t.Context(), l, roots[2]); err == nil {
			t.Errorf("%s: held", name)
		}
	}

	env, _ := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	_, roots := roletest.Unit(t, j, l, 0)
	roletest.Receive(t, env, l, 0, roots)
	l.Units[0].Receipt.Data.Size = job.MaxList + 1
	if _, err := env.States.Get(t.Context(), l, roots[1]); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a list that is too long: %v", err)
	}
	most := states.CheckpointList{make([]job.File, job.MaxSegments)}
	for i := range most.States {
		most.States[i] = blobs.File("state", store.RefOf([]byte{byte(i)}))
	}
	if n := len(canon.Marshal(&most)); n > job.MaxList {
		t.Errorf("the longest list has %d bytes, limit %d", n, job.MaxList)
	}
}

// A merged state that nobody hands over is computed from what was merged.
func TestMergeIsComputedAgain(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	var ends []*graph.State
	for shard := range l.Order.Problem.Shards {
		steps, roots := roletest.Unit(t, j, l, shard)
		roletest.Receive(t, env, l, shard, roots, roletest.Put(t, env, steps[0]), roletest.Put(t, env, steps[1]))
		l.Merges[0].Inputs = append(l.Merges[0].Inputs, roots[len(roots)-1])
		ends = append(ends, steps[1])
	}
	merged, err := j.MergeStates(t.Context(), ends)
	if err != nil {
		t.Fatal(err)
	}
	root, err := merged.Root()
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(l.Merges[0].Inputs, root) {
		t.Fatal("the merge is one of what it merges")
	}
	nowhere := blobs.File("state", store.RefOf([]byte("nobody has it")))
	l.Round, l.Merges[0].By, l.Merges[0].Root, l.Merges[0].Data = 1, "lead", root, nowhere
	if err := env.States.Ensure(t.Context(), l, root); err != nil {
		t.Fatal(err)
	}
	// Nor is one computed that is not what the lease says, nor in a circle.
	for _, wrong := range []canon.Hash{canon.Sum("wrong"), canon.Sum("circle")} {
		l.Merges[0].Root = wrong
		if wrong == canon.Sum("circle") {
			l.Merges[0].Inputs[0] = wrong
		}
		if _, err := env.States.Get(t.Context(), l, wrong); err == nil {
			t.Error("a wrong merge was computed")
		}
	}
}

// A receipt may end in the state that its round starts from. Who had let go of that state
// and looked for it there ended with a panic, and its process with it.
func TestReceiptEndsWhereItBegins(t *testing.T) {
	for name, brief := range map[string]bool{"whole": false, "brief": true} {
		t.Run(name, func(t *testing.T) {
			env, n := roletest.New(t, roletest.Me)
			l, j := roletest.Lease(t, env)
			l.Order.Problem.Steps, l.Order.Problem.Interval = 2, 1
			roletest.Alone(t, env, n, l)
			if _, err := env.Jobs.Get(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			steps, roots := roletest.Unit(t, j, l, 0)
			end := roots[len(roots)-1]
			_, ref, err := env.States.Put(l.Order.ID(), steps[len(steps)-1])
			if err != nil {
				t.Fatal(err)
			}
			l.Round, l.Merges[0], l.Merges[1] = 1, job.Merge{Root: end, By: "lead", Data: blobs.File("state", ref)}, job.Merge{}
			for i := range l.Units {
				l.Units[i] = job.Unit{Status: job.Open}
			}
			first, all := l.Order.Problem.Shards, []canon.Hash{end, canon.Sum("other"), end}
			l.Units[first] = job.Unit{Status: job.Counted, Receipt: &job.Receipt{Unit: first, Start: end, Checkpoints: all, Data: blobs.File("checkpoints", ref)}}
			if brief {
				l.Units[first].Receipt.Checkpoints = all[2:]
			}
			n.Lists = workv1.QueryRootsResponse{Checkpoints: []workv1.Roots{{}}}
			for _, h := range all {
				n.Lists.Checkpoints[0].Roots = append(n.Lists.Checkpoints[0].Roots, h[:]...)
			}
			if err := env.Store.Unpin(blobs.Pin(l.Order.ID()), ref); err != nil {
				t.Fatal(err)
			}
			if _, err := env.Store.GC(); err != nil {
				t.Fatal(err)
			}
			if _, err := env.States.Get(t.Context(), l, end); err == nil || strings.Contains(err.Error(), "model") {
				t.Errorf("a state that nobody has: %v", err)
			}
		})
	}
}

// Receipts may lie in a circle: each ends where the other begins. Who had let go of both
// states looked for one in the other until the stack was full, and its process ended.
func TestReceiptsInACircle(t *testing.T) {
	env, n := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	l.Order.Problem.Steps, l.Order.Problem.Interval = 2, 1
	roletest.Alone(t, env, n, l)
	if _, err := env.Jobs.Get(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	steps, roots := roletest.Unit(t, j, l, 0)
	a, b := roots[len(roots)-2], roots[len(roots)-1]
	var refs []store.Ref
	for _, s := range steps[len(steps)-2:] {
		_, ref, err := env.States.Put(l.Order.ID(), s)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	l.Round, l.Merges[0], l.Merges[1] = 1, job.Merge{Root: a, By: "lead", Data: blobs.File("state", refs[0])}, job.Merge{}
	for i := range l.Units {
		l.Units[i] = job.Unit{Status: job.Open}
	}
	for i, ends := range [][]canon.Hash{{a, canon.Sum("x"), b}, {b, canon.Sum("y"), a}} {
		l.Units[i] = job.Unit{Status: job.Counted, Receipt: &job.Receipt{Unit: i, Start: ends[0], Checkpoints: ends, Data: blobs.File("checkpoints", refs[i])}}
	}
	if err := env.Store.Unpin(blobs.Pin(l.Order.ID()), refs...); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Store.GC(); err != nil {
		t.Fatal(err)
	}
	for _, root := range []canon.Hash{a, b} {
		if _, err := env.States.Get(t.Context(), l, root); err == nil || strings.Contains(err.Error(), "model") {
			t.Errorf("a state that nobody has: %v", err)
		}
	}
}
