package role

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// newKit returns a kit that has a store and an executor, and nobody to ask.
func newKit(t *testing.T) *Kit {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(dir+"/store", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return &Kit{Name: "test", Dir: dir, Store: s, Exec: cpu.New(1), Log: slog.New(slog.DiscardHandler)}
}

// newLease returns a lease of two rounds whose files are in the kit's store.
func newLease(t *testing.T, k *Kit) (*job.Lease, *replay.Job) {
	t.Helper()
	b := graph.NewBuilder("bigram")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{2, 4})
	b.Output(b.Op("Gather", b.Init("table", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{8, 8}))), tokens), tensor.Float32, tensor.Shape{2, 4, 8})
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{12, 5}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(uint32(i+1)*2654435761>>29)) // scattered, so that no two shards are alike
	}
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.5}, Batch: 2}
	j, err := replay.New(replay.Inputs{Model: b.Graph(), Recipe: recipe, Data: data}, 2, k.Exec)
	if err != nil {
		t.Fatal(err)
	}
	l := &job.Lease{Leads: []job.Leader{{Account: "lead"}}, Units: make([]job.Unit, 4), Merges: make([]job.Merge, 2)}
	p := &l.Order.Problem
	p.Rounds, p.Steps, p.Interval = 2, 2, 1
	if err := j.Bind(p); err != nil {
		t.Fatal(err)
	}
	model, err := onnx.Write(j.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		role  string
		bytes []byte
	}{{replay.RoleModel, model}, {replay.RoleData, canon.Encode(data.Encode)}} {
		ref, err := k.Store.PutBytes("files", f.bytes)
		if err != nil {
			t.Fatal(err)
		}
		p.Files = append(p.Files, File(f.role, ref))
	}
	lend(t, k, l)
	return l, j
}

// lend keeps what a test has put for a lease, as if its parties had handed it over.
func lend(t *testing.T, k *Kit, l *job.Lease) {
	t.Helper()
	id := l.Order.ID()
	for from, to := range map[string]string{"files": Pin(id), "state": Pin(id), "list": ListPin(id)} {
		put, err := filepath.Glob(filepath.Join(k.Dir, "store", "pins", from, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range put {
			ref, err := store.ParseRef(filepath.Base(name))
			if err == nil {
				err = k.Store.Pin(to, ref)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// unit computes a unit of the first round: its states after each step.
func unit(t *testing.T, j *replay.Job, l *job.Lease, i int) (states []*graph.State, roots []canon.Hash) {
	t.Helper()
	roots = []canon.Hash{l.Order.Problem.Start}
	_, err := j.UnitOf(&l.Order.Problem, i).Play(t.Context(), j.Training.Start, 0, l.Order.Problem.Steps, func(_ int, s *graph.State) error {
		root, err := s.Root()
		if err != nil {
			return err
		}
		roots = append(roots, root)
		return canon.Decode(canon.Encode(s.Encode), func(d *canon.Decoder) { states = append(states, graph.DecodeState(d)) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return states, roots
}

// receive gives a unit a receipt whose checkpoints are the given files.
func receive(t *testing.T, k *Kit, l *job.Lease, i int, roots []canon.Hash, files ...job.File) {
	t.Helper()
	ref, err := k.Store.PutBytes("list", canon.Marshal(&Checkpoints{files}))
	if err != nil {
		t.Fatal(err)
	}
	l.Units[i] = job.Unit{Status: job.Received, Provider: "p", Receipt: &job.Receipt{Unit: i, Provider: "p", Checkpoints: roots, Data: File("checkpoints", ref)}}
	lend(t, k, l)
}

// put stores a state where other roles would look for it.
func put(t *testing.T, k *Kit, s *graph.State) job.File {
	t.Helper()
	ref, err := k.Store.PutBytes("state", canon.Encode(s.Encode))
	if err != nil {
		t.Fatal(err)
	}
	return File("state", ref)
}

func TestWorkIsLoadedOnce(t *testing.T) {
	k := newKit(t)
	l, j := newLease(t, k)
	if k.HasWork(l) {
		t.Fatal("it has work that it has not loaded")
	}
	first, err := k.Work(t.Context(), l)
	if err != nil || first.Step.Commitment.Root() != j.Step.Commitment.Root() {
		t.Fatal(err)
	}
	if again, err := k.Work(t.Context(), l); err != nil || again != first || !k.HasWork(l) {
		t.Fatalf("loaded again, %v", err)
	}
	if pins := k.Store.Pins(); !slices.Contains(pins, Pin(l.Order.ID())) {
		t.Errorf("the files are not kept: %v", pins)
	}

	other := *l
	other.Order.Problem.StepFLOPs++
	lend(t, k, &other)
	var missing *FetchError
	if _, err := k.Work(t.Context(), &other); err == nil || errors.As(err, &missing) || !strings.Contains(err.Error(), "do not match") {
		t.Errorf("another order: %v", err)
	}
}

// A state is found by its root wherever the lease has it, and still when the
// work that it came from is void.
func TestStateIsFoundByItsRoot(t *testing.T) {
	k := newKit(t)
	l, j := newLease(t, k)
	states, roots := unit(t, j, l, 0)
	receive(t, k, l, 0, roots, put(t, k, states[0]), put(t, k, states[1]))
	merged, err := j.MergeStates(t.Context(), []*graph.State{states[1], states[1]})
	if err != nil {
		t.Fatal(err)
	}
	root, err := merged.Root()
	if err != nil {
		t.Fatal(err)
	}
	l.Round, l.Merges[0] = 1, job.Merge{By: "lead", Root: root, Data: put(t, k, merged)}
	lend(t, k, l)
	all := append(slices.Clone(roots), root)
	for round := range 2 {
		for i, want := range all {
			s, err := k.State(t.Context(), l, want)
			if err != nil {
				t.Fatalf("state %d, %d: %v", i, round, err)
			}
			if got, err := s.Root(); err != nil || got != want {
				t.Fatalf("state %d has root %v, %v", i, got.Short(), err)
			}
			if err := k.HoldState(t.Context(), l, want); err != nil {
				t.Fatal(err)
			}
		}
		// Everything is void; what was seen stays.
		l.Round, l.Merges[0], l.Units[0] = 0, job.Merge{}, job.Unit{Status: job.Open, Attempt: 1}
	}
	var missing *FetchError
	if _, err := k.State(t.Context(), l, canon.Sum("nothing")); !errors.As(err, &missing) {
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
		k := newKit(t)
		l, j := newLease(t, k)
		states, roots := unit(t, j, l, 0)
		list := []job.File{put(t, k, states[0]), put(t, k, states[1])}
		c.bend(nil, &list)
		receive(t, k, l, 0, roots, list...)
		if _, err := k.State(t.Context(), l, roots[2]); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if err := k.HoldState(t.Context(), l, roots[2]); err == nil {
			t.Errorf("%s: held", name)
		}
	}

	k := newKit(t)
	l, j := newLease(t, k)
	_, roots := unit(t, j, l, 0)
	receive(t, k, l, 0, roots)
	l.Units[0].Receipt.Data.Size = job.MaxList + 1
	if _, err := k.State(t.Context(), l, roots[1]); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a list that is too long: %v", err)
	}
	most := Checkpoints{make([]job.File, job.MaxSegments)}
	for i := range most.States {
		most.States[i] = File("state", store.RefOf([]byte{byte(i)}))
	}
	if n := len(canon.Marshal(&most)); n > job.MaxList {
		t.Errorf("the longest list has %d bytes, limit %d", n, job.MaxList)
	}
}

// alone gives a kit a host that is everybody whom the lease names, so that it can
// ask nobody else.
func alone(t *testing.T, k *Kit, l *job.Lease) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if k.Host, err = p2p.New(p2p.Options{Key: key}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Host.Close() })
	k.Chain, l.Order.Contact.Key = &client.Client{}, public
	k.peers.known = map[string]registered{}
	for _, account := range []string{"lead", "p"} {
		k.peers.known[account] = registered{peer: providerv1.Peer{Account: account, PeerKey: public}}
	}
	lend(t, k, l)
}

// What the policy does not keep goes once the unit is accepted, and comes back by
// computing it again.
func TestCheckpointsAreThinnedAndDerived(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		stays  []int
	}{
		{"", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{KeepAll, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{Thin, []int{4, 8, 10}},
		{Derive, []int{10}},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			k := newKit(t)
			k.Checkpoints = c.policy
			l, j := newLease(t, k)
			l.Order.Problem.Steps = 10
			alone(t, k, l)
			states, roots := unit(t, j, l, 0)
			var files []job.File
			for _, s := range states {
				_, ref, err := k.KeepState(l.Order.ID(), s)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, File("state", ref))
			}
			receive(t, k, l, 0, roots, files...)
			keep := k.NewKeep()
			for height, at := range []job.Status{job.Counted, job.Accepted, job.Accepted} {
				var stays []int
				l.Units[0].Status = at
				if err := keep.Block(t.Context(), 1, []Lease{{l, uint64(height)}}); err != nil {
					t.Fatal(err)
				}
				for i, f := range files {
					if ref, err := RefOf(f); err == nil && k.Store.Has(ref) {
						stays = append(stays, i+1)
					}
				}
				if want := c.stays; at == job.Accepted && !slices.Equal(stays, want) || at == job.Counted && len(stays) != 10 {
					t.Fatalf("of a unit that is %v, %v stays, want %v", at, stays, want)
				}
			}
			for i, root := range roots {
				s, err := k.State(t.Context(), l, root)
				if err != nil {
					t.Fatalf("checkpoint %d: %v", i, err)
				}
				if got, err := s.Root(); err != nil || got != root {
					t.Fatalf("checkpoint %d has root %v, %v", i, got.Short(), err)
				}
			}
		})
	}
}

// Keep lets go of a lease some time after it has ended, and of nothing else.
func TestKeep(t *testing.T) {
	k := newKit(t)
	l, j := newLease(t, k)
	if _, err := k.Work(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	states, _ := unit(t, j, l, 0)
	root, ref, err := k.KeepState(l.Order.ID(), states[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Store.Unpin("files"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Store.PutBytes("draft", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	keep := k.NewKeep()
	block := func(now int64, live ...Lease) {
		t.Helper()
		if err := keep.Block(t.Context(), now, live); err != nil {
			t.Fatal(err)
		}
	}
	here := func() bool {
		_, err := os.Stat(k.noteFile(l.Order.ID(), root))
		return k.Store.Has(ref) && k.HasWork(l) && err == nil
	}
	block(0, Lease{Lease: l})
	block(1)
	block(keepFor) // not long enough
	if !here() {
		t.Fatal("it was let go too early")
	}
	block(keepFor+1, Lease{Lease: l}) // a verdict has brought it back
	block(2*keepFor + 2)
	block(3*keepFor + 2)
	if !here() {
		t.Fatal("it was let go though it had lived again")
	}
	block(3*keepFor + 3)
	if k.Store.Has(ref) || k.HasWork(l) || here() {
		t.Fatal("it is still here")
	}
	if pins := k.Store.Pins(); !slices.Equal(pins, []string{"draft"}) {
		t.Errorf("pins %v", pins)
	}
}

func TestTasksWriteOneFileAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "note")
	var writers errgroup.Group
	for i := range 8 {
		writers.Go(func() (err error) {
			for range 50 {
				err = errors.Join(err, WriteFile(name, bytes.Repeat([]byte{byte(i)}, 4096)))
			}
			return err
		})
	}
	if err := writers.Wait(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil || len(b) != 4096 || len(slices.Compact(b)) != 1 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
}

// A merged state that nobody hands over is computed from what was merged.
func TestMergeIsComputedAgain(t *testing.T) {
	k := newKit(t)
	l, j := newLease(t, k)
	var ends []*graph.State
	for shard := range l.Order.Problem.Shards {
		states, roots := unit(t, j, l, shard)
		receive(t, k, l, shard, roots, put(t, k, states[0]), put(t, k, states[1]))
		l.Merges[0].Inputs = append(l.Merges[0].Inputs, roots[len(roots)-1])
		ends = append(ends, states[1])
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
	nowhere := File("state", store.RefOf([]byte("nobody has it")))
	l.Round, l.Merges[0].By, l.Merges[0].Root, l.Merges[0].Data = 1, "lead", root, nowhere
	if err := k.HoldState(t.Context(), l, root); err != nil {
		t.Fatal(err)
	}
	// Nor is one computed that is not what the lease says, nor in a circle.
	for _, wrong := range []canon.Hash{canon.Sum("wrong"), canon.Sum("circle")} {
		l.Merges[0].Root = wrong
		if wrong == canon.Sum("circle") {
			l.Merges[0].Inputs[0] = wrong
		}
		if _, err := k.State(t.Context(), l, wrong); err == nil {
			t.Error("a wrong merge was computed")
		}
	}
}

// Whoever checks what was shown of a forced attempt finds its checkpoints, though the
// unit is done again: with the provider and custodians of that attempt.
func TestCheckpointsOfForcedAttemptsAreFound(t *testing.T) {
	end := canon.Sum("end")
	receipt := func(attempt int, provider string) *job.Receipt {
		return &job.Receipt{Attempt: attempt, Provider: provider, Checkpoints: []canon.Hash{{}, canon.Sum(canon.Domain(provider))}}
	}
	kept := func(by string) []job.Attestation { return []job.Attestation{{Custodian: by, Done: true}} }
	old := receipt(0, "p0")
	old.Checkpoints[1] = end
	l := &job.Lease{
		Order: job.Order{Problem: job.Problem{Steps: 1, Interval: 1}},
		Units: []job.Unit{{Attempt: 1, Receipt: receipt(1, "p1"), Attested: kept("v1")}},
		Past:  [][]job.Past{{{Forced: &job.Forced{Unit: job.Unit{Receipt: old, Attested: kept("v0")}}}}},
	}
	at := places(l, end)
	if len(at) != 1 || at[0].receipt != old || at[0].at != 1 {
		t.Fatalf("found at %+v", at)
	}
	if got := HoldersOf(l, old); !slices.Equal(got, []string{"p0", "v0"}) {
		t.Errorf("asked of %v", got)
	}
	if got := HoldersOf(l, l.Units[0].Receipt); !slices.Equal(got, []string{"p1", "v1"}) {
		t.Errorf("the next attempt's are asked of %v", got)
	}
}

// A receipt may end in the state that its round starts from. Who had let go of that state
// and looked for it there ended with a panic, and its process with it.
func TestReceiptEndsWhereItBegins(t *testing.T) {
	for name, brief := range map[string]bool{"whole": false, "brief": true} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			l, j := newLease(t, k)
			l.Order.Problem.Steps, l.Order.Problem.Interval = 2, 1
			alone(t, k, l)
			if _, err := k.Work(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			states, roots := unit(t, j, l, 0)
			end := roots[len(roots)-1]
			_, ref, err := k.KeepState(l.Order.ID(), states[len(states)-1])
			if err != nil {
				t.Fatal(err)
			}
			l.Round, l.Merges[0], l.Merges[1] = 1, job.Merge{Root: end, By: "lead", Data: File("state", ref)}, job.Merge{}
			for i := range l.Units {
				l.Units[i] = job.Unit{Status: job.Open}
			}
			first, all := l.Order.Problem.Shards, []canon.Hash{end, canon.Sum("other"), end}
			l.Units[first] = job.Unit{Status: job.Counted, Receipt: &job.Receipt{Unit: first, Start: end, Checkpoints: all, Data: File("checkpoints", ref)}}
			if brief {
				l.Units[first].Receipt.Checkpoints = all[2:]
			}
			n := &ledger{lists: workv1.QueryRootsResponse{Checkpoints: []workv1.Roots{{}}}}
			for _, h := range all {
				n.lists.Checkpoints[0].Roots = append(n.lists.Checkpoints[0].Roots, h[:]...)
			}
			n.serve(t, k)
			if err := k.Store.Unpin(Pin(l.Order.ID()), ref); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Store.GC(); err != nil {
				t.Fatal(err)
			}
			if _, err := k.State(t.Context(), l, end); err == nil || strings.Contains(err.Error(), "model") {
				t.Errorf("a state that nobody has: %v", err)
			}
		})
	}
}

// One lease whose checkpoints cannot be had does not keep the others from being let go of.
func TestOneLeaseWithoutRootsStopsNobody(t *testing.T) {
	k := newKit(t)
	k.Checkpoints = Derive
	n := &ledger{lists: workv1.QueryRootsResponse{Checkpoints: []workv1.Roots{{}}}} // voided since it was read
	n.serve(t, k)
	l := &job.Lease{Phase: job.Active, Units: make([]job.Unit, 1), Past: make([][]job.Past, 1), Merges: make([]job.Merge, 1)}
	p := &l.Order.Problem
	p.Rounds, p.Shards, p.Steps, p.Interval = 1, 1, 2, 1
	l.Units[0] = job.Unit{Status: job.Accepted, Receipt: &job.Receipt{Checkpoints: []canon.Hash{{1}}}}
	if _, err := k.Store.PutBytes(Pin(canon.Sum("ended")), []byte("x")); err != nil {
		t.Fatal(err)
	}
	keep := k.NewKeep()
	for at := range int64(3) {
		if err := keep.Block(t.Context(), at*(keepFor+1), []Lease{{l, uint64(at)}}); err != nil {
			t.Errorf("block %d: %v", at, err)
		}
	}
	if pins := k.Store.Pins(); len(pins) > 0 {
		t.Errorf("an order that ended long ago is still kept: %v", pins)
	}
}

// Receipts may lie in a circle: each ends where the other begins. Who had let go of both
// states looked for one in the other until the stack was full, and its process ended.
func TestReceiptsInACircle(t *testing.T) {
	k := newKit(t)
	l, j := newLease(t, k)
	l.Order.Problem.Steps, l.Order.Problem.Interval = 2, 1
	alone(t, k, l)
	(&ledger{}).serve(t, k)
	if _, err := k.Work(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	states, roots := unit(t, j, l, 0)
	a, b := roots[len(roots)-2], roots[len(roots)-1]
	var refs []store.Ref
	for _, s := range states[len(states)-2:] {
		_, ref, err := k.KeepState(l.Order.ID(), s)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	l.Round, l.Merges[0], l.Merges[1] = 1, job.Merge{Root: a, By: "lead", Data: File("state", refs[0])}, job.Merge{}
	for i := range l.Units {
		l.Units[i] = job.Unit{Status: job.Open}
	}
	for i, ends := range [][]canon.Hash{{a, canon.Sum("x"), b}, {b, canon.Sum("y"), a}} {
		l.Units[i] = job.Unit{Status: job.Counted, Receipt: &job.Receipt{Unit: i, Start: ends[0], Checkpoints: ends, Data: File("checkpoints", refs[i])}}
	}
	if err := k.Store.Unpin(Pin(l.Order.ID()), refs...); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Store.GC(); err != nil {
		t.Fatal(err)
	}
	for _, root := range []canon.Hash{a, b} {
		if _, err := k.State(t.Context(), l, root); err == nil || strings.Contains(err.Error(), "model") {
			t.Errorf("a state that nobody has: %v", err)
		}
	}
}
