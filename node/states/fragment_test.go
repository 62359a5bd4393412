package states_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/store"
)

// newCut returns a lease whose first unit is kept in fragments by eight custodians, of whom
// three make up the whole. The role is all of them; the checkpoints themselves nobody
// has.
func newCut(t *testing.T) (*role.Env, *job.Lease) {
	t.Helper()
	env, n := roletest.New(t, custodian(0))
	l, j := roletest.Lease(t, env)
	l.Order.Conditions.Custodians, l.Order.Conditions.CodedBytes = 8, 1
	roletest.Alone(t, env, n, l, custodians(8)...)
	steps, roots := roletest.Unit(t, j, l, 0)
	nowhere := blobs.File("state", store.RefOf([]byte("nobody has it")))
	roletest.Receive(t, env, l, 0, roots, nowhere, nowhere)
	for _, s := range steps {
		if _, _, err := env.States.Put(l.Order.ID(), s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range l.Order.Conditions.Custodians {
		p, err := env.States.PutFragments(t.Context(), l, 0, i)
		if err != nil {
			t.Fatal(err)
		}
		u := &l.Units[0]
		u.Attested = append(u.Attested, job.Attestation{Custodian: custodian(i), Done: true, Fragment: p})
	}
	if err := env.NewPruner().Block(t.Context(), 1, []leases.Lease{{Lease: l}}); err != nil { // a custodian lets go of the whole
		t.Fatal(err)
	}
	for _, root := range roots[1:] {
		if ref, ok := env.States.Noted(l.Order.ID(), root); !ok || env.Store.Has(ref) {
			t.Fatal("a whole checkpoint stays")
		}
	}
	return env, l
}

// Who keeps fragments lets go of the whole even if it has no fragment of a unit, once it
// can attest to none any more, and of what comes again later.
func TestCustodianWithoutAFragmentKeepsNothing(t *testing.T) {
	env, n := roletest.New(t, custodian(0))
	l, j := roletest.Lease(t, env)
	l.Order.Conditions.Custodians, l.Order.Conditions.CodedBytes = 8, 1
	roletest.Alone(t, env, n, l, custodians(8)...)
	steps, roots := roletest.Unit(t, j, l, 0)
	nowhere := blobs.File("state", store.RefOf([]byte("nobody has it")))
	roletest.Receive(t, env, l, 0, roots, nowhere, nowhere)
	l.Units[0].Attested = []job.Attestation{{Custodian: custodian(0)}} // drawn, and too late
	c := env.NewPruner()
	kept := func() (n int) {
		t.Helper()
		if err := c.Block(t.Context(), 1, []leases.Lease{{Lease: l}}); err != nil {
			t.Fatal(err)
		}
		for _, root := range roots[1:] {
			if ref, ok := env.States.Noted(l.Order.ID(), root); ok && env.Store.Has(ref) {
				n++
			}
		}
		return n
	}
	fetch := func() {
		t.Helper()
		for _, s := range steps {
			if _, _, err := env.States.Put(l.Order.ID(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	fetch()
	l.Units[0].Status = job.Accepted
	if n := kept(); n != len(roots)-1 {
		t.Fatalf("%d checkpoints stay while a fragment can be made", n)
	}
	for range 2 {
		l.Phase = job.Closing
		if n := kept(); n != 0 {
			t.Fatalf("%d checkpoints stay", n)
		}
		fetch()
	}
}

func custodian(i int) string { return fmt.Sprint("custodian-", i) }

func custodians(n int) (out []string) {
	for i := range n {
		out = append(out, custodian(i))
	}
	return out
}

// spoil makes a custodian's fragments of the first unit others, of which it keeps what it
// attested to.
func spoil(t *testing.T, env *role.Env, l *job.Lease, i int) {
	t.Helper()
	var wrong states.FragmentList
	a := &l.Units[0].Attested[i]
	right, err := env.States.Fragments(t.Context(), l, 0, *a)
	if err != nil {
		t.Fatal(err)
	}
	for at := range right.Roots {
		s, err := env.States.Fragment(t.Context(), l, *a, right, at+1)
		if err != nil {
			t.Fatal(err)
		}
		s.Tensors[0].Bytes()[0] ^= 1
		root, ref, err := env.States.Put(l.Order.ID(), s)
		if err != nil {
			t.Fatal(err)
		}
		wrong.Roots, wrong.Files = append(wrong.Roots, root), append(wrong.Files, blobs.File("fragment", ref))
	}
	ref, err := env.Store.PutBytes(blobs.Pin(l.Order.ID()), canon.Marshal(&wrong))
	if err != nil {
		t.Fatal(err)
	}
	a.Fragment = &job.Fragment{Number: a.Fragment.Number, Root: canon.Root(wrong.Roots), Data: blobs.File("fragments", ref)}
}

// A checkpoint is rebuilt from fragments though some of their custodians are gone and others
// hand over what is wrong.
func TestRebuildLeavesOutWrongFragments(t *testing.T) {
	for _, c := range []struct {
		gone, wrong []int
		ok          bool
	}{
		{nil, nil, true},
		{[]int{0, 1, 2, 3, 4}, nil, true},
		{nil, []int{0, 1, 2, 3, 4}, true},
		{[]int{0, 6, 7}, []int{1, 3}, true},
		{[]int{0, 1, 2, 3, 4, 5}, nil, false},
		{[]int{0, 1, 2}, []int{3, 4, 5}, false},
	} {
		t.Run(fmt.Sprint(c.gone, c.wrong), func(t *testing.T) {
			env, l := newCut(t)
			for _, i := range c.wrong {
				spoil(t, env, l, i)
			}
			for _, i := range c.gone {
				a := &l.Units[0].Attested[i]
				a.Fragment = &job.Fragment{Number: a.Fragment.Number, Root: a.Fragment.Root, Data: blobs.File("fragments", store.RefOf([]byte(a.Custodian)))}
			}
			j, err := env.Jobs.Get(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			for at, root := range l.Units[0].Receipt.Checkpoints[1:] {
				s, err := env.States.Find(t.Context(), l, j, root)
				if (err == nil) != c.ok {
					t.Fatalf("checkpoint %d: %v", at+1, err)
				}
				if c.ok {
					if got, err := s.Root(); err != nil || got != root {
						t.Fatalf("checkpoint %d has root %v, %v", at+1, got.Short(), err)
					}
				}
			}
		})
	}
}

// A custodian that has lost its fragments makes them anew from those of others.
func TestFragmentIsMadeAnew(t *testing.T) {
	env, l := newCut(t)
	a := l.Units[0].Attested[0]
	p, err := env.States.Fragments(t.Context(), l, 0, a)
	if err != nil {
		t.Fatal(err)
	}
	lost := func() (refs []store.Ref) {
		for _, f := range append(p.Files, a.Fragment.Data) {
			ref, err := blobs.RefOf(f)
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		return refs
	}()
	if err := env.Store.Unpin(blobs.Pin(l.Order.ID()), lost...); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Store.GC(); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= 2; at++ {
		s, roots, err := env.States.OwnFragment(t.Context(), l, 0, at)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Root(); err != nil || got != roots[at-1] || canon.Root(roots) != a.Fragment.Root {
			t.Fatalf("fragment %d: %v", at, err)
		}
	}
	if _, _, err := env.States.OwnFragment(t.Context(), l, 1, 1); err == nil {
		t.Error("a fragment of a unit to which it has not attested")
	}
}

// What a custodian lists cannot make others fetch or believe what is no fragment.
func TestFragmentsRefuse(t *testing.T) {
	for name, bend := range map[string]func(p *states.FragmentList, a *job.Attestation){
		"another root":  func(_ *states.FragmentList, a *job.Attestation) { a.Fragment.Root = canon.Hash{1} },
		"too few files": func(p *states.FragmentList, _ *job.Attestation) { p.Files = p.Files[:1] },
		"no fragments":  func(p *states.FragmentList, _ *job.Attestation) { *p = states.FragmentList{} },
		"fewer fragments": func(p *states.FragmentList, a *job.Attestation) {
			p.Files, p.Roots = p.Files[:1], p.Roots[:1]
			a.Fragment.Root = canon.Root(p.Roots)
		},
		"more fragments": func(p *states.FragmentList, a *job.Attestation) {
			p.Files, p.Roots = append(p.Files, p.Files[0]), append(p.Roots, p.Roots[0])
			a.Fragment.Root = canon.Root(p.Roots)
		},
		"another fragment": func(p *states.FragmentList, _ *job.Attestation) { p.Files[0] = p.Files[1] },
		"a huge fragment":  func(p *states.FragmentList, _ *job.Attestation) { p.Files[0].Size = 1 << 40 },
		"no CID":           func(p *states.FragmentList, _ *job.Attestation) { p.Files[0].CID = "x" },
	} {
		env, l := newCut(t)
		a := l.Units[0].Attested[5]
		p, err := env.States.Fragments(t.Context(), l, 0, a)
		if err != nil {
			t.Fatal(err)
		}
		bend(&p, &a)
		ref, err := env.Store.PutBytes(blobs.Pin(l.Order.ID()), canon.Marshal(&p))
		if err != nil {
			t.Fatal(err)
		}
		a.Fragment = &job.Fragment{Number: 5, Root: a.Fragment.Root, Data: blobs.File("fragments", ref)}
		if p, err = env.States.Fragments(t.Context(), l, 0, a); err == nil {
			_, err = env.States.Fragment(t.Context(), l, a, p, 1)
		}
		if err == nil {
			t.Errorf("%s: believed", name)
		}
	}
	env, l := newCut(t)
	a := l.Units[0].Attested[5]
	a.Fragment.Data.Size = job.MaxList + 1
	if _, err := env.States.Fragments(t.Context(), l, 0, a); err == nil {
		t.Error("a list that is too long")
	}
}

// A fragment is no longer than its slots say.
func TestBytesBoundFragments(t *testing.T) {
	env, _ := roletest.New(t, custodian(0))
	_, j := roletest.Lease(t, env)
	for _, c := range []erasure.Code{{Fragments: 4, Needed: 2}, {Fragments: 16, Needed: 5}} {
		p, err := c.Fragment(j.Start, 3)
		if err != nil {
			t.Fatal(err)
		}
		if n, most := uint64(len(canon.Encode(p.Encode))), c.Bytes(j.Start.Slots); n > most || most > n+uint64(len(p.Slots))*80+16 {
			t.Errorf("%d bytes, at most %d", n, most)
		}
	}
}

// What another custodian lists is read without a panic, and as it was written.
func FuzzFragments(f *testing.F) {
	f.Add(canon.Marshal(&states.FragmentList{}))
	f.Add(canon.Marshal(&states.FragmentList{Roots: []canon.Hash{{1}}, Files: []job.File{{Role: "fragment", CID: "bafy", Size: 9}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p states.FragmentList
		if canon.Unmarshal(b, &p) == nil && !bytes.Equal(canon.Marshal(&p), b) {
			t.Fatalf("%x was read otherwise", b)
		}
	})
}
