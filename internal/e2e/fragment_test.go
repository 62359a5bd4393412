package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/p2p"
)

// cut makes an order whose four custodians keep a fragment each.
func cut(s *consume.Spec) { s.Conditions.Custodians, s.Conditions.CodedBytes = 4, 1 }

// When provider, lead, consumer and one custodian are gone, the fragments of the others make
// up all that a proof needs, though none of them has a whole checkpoint.
func TestBundleFromFragmentsAlone(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators = 5 },
		Spec: func(s *consume.Spec) {
			cut(s)
			s.Conditions.Window = consume.Duration(5 * time.Second) // until then all is let go of that is not kept
		},
		Idle: []string{"challenger-0"}, // has seen nothing
	})
	id := n.Post(nil)
	l := n.Lease(id, "the last merge", func(l *job.Lease) bool { return l.Phase == job.Closing })
	checkpoints := checkpointFiles(t, n, l)
	err := n.EachBlock(func(client.Block) (bool, error) {
		for _, p := range l.Files.Custodians {
			if kept := holds(t, n.Member(n.Name(p.Account)).Env, checkpoints); kept > 0 {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("custodians keep whole checkpoints: %v", err)
	}
	for _, p := range l.Files.Custodians {
		t.Logf("%s keeps %d bytes of %d", n.Name(p.Account), fragmentBytes(t, n.Member(n.Name(p.Account)).Env, l), l.Order.Problem.UnitBytes()*uint64(len(l.Units)))
	}
	l = n.Settle(id)
	gone := []string{"validator-0", "provider-0", "provider-1", "consumer", n.Name(l.Units[0].Attested[0].Custodian)}
	for _, name := range gone {
		if err := n.Member(name).Env.Host.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if slices.ContainsFunc(l.Files.Custodians, func(p job.FileCustodian) bool { return n.Name(p.Account) == gone[0] }) {
		t.Fatal("the lead keeps")
	}
	collected(t, n, l)
}

// states returns the files of all checkpoints of a lease after the first.
func checkpointFiles(t *testing.T, n *nettest.Network, l *job.Lease) (out []job.File) {
	t.Helper()
	for i := range l.Units {
		c, err := n.Member(n.Name(l.Units[i].Provider)).Env.States.Checkpoints(t.Context(), l, l.Units[i].Receipt)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c.States...)
	}
	return out
}

// holds counts the files that are in a role's store.
func holds(t *testing.T, env *role.Env, files []job.File) (n int) {
	t.Helper()
	for _, f := range files {
		ref, err := blobs.RefOf(f)
		if err != nil {
			t.Fatal(err)
		}
		if env.Store.Has(ref) {
			n++
		}
	}
	return n
}

// fragmentBytes returns the bytes of the fragments that a custodian has of a lease.
func fragmentBytes(t *testing.T, env *role.Env, l *job.Lease) (n uint64) {
	t.Helper()
	for i := range l.Units {
		for _, a := range l.Units[i].Attested {
			if a.Custodian != env.Account.Address {
				continue
			}
			p, err := env.States.Fragments(t.Context(), l, i, a)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Files {
				n += f.Size
			}
		}
	}
	return n
}

// A custodian that attests to a wrong fragment is exposed by a challenger, which makes it too.
// It loses its bond and its place; who is drawn in its place makes the fragment anew, and the
// order ends as it should.
func TestCustodianOfAWrongFragmentIsSlashed(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	names, held := []string{"validator-1", "validator-2", "validator-3", "validator-4", "validator-5"}, newPause()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators = 6 },
		Bend:   held.bend(),
		Spec: func(s *consume.Spec) {
			cut(s)
			s.Conditions.Assurance.Audit = &consume.SpecAudit{}
			s.Conditions.UnitWindow = consume.Duration(10 * time.Second) // until then it is found
		},
	})
	id := n.Post(nil)
	held.end(t, n, 2, names...)
	l := n.Lease(id, "drawn custodians", func(l *job.Lease) bool { return len(l.Units[0].Attested) > 2 })
	faker := n.Name(l.Units[0].Attested[2].Custodian)
	env := n.Member(faker).Env
	var fragment *job.Fragment
	if err := n.EachBlock(func(client.Block) (again bool, err error) { // until the provider knows who is drawn
		fragment, err = wrongFragment(t, env, l)
		if errors.Is(err, p2p.ErrRefused) {
			return true, nil
		}
		return false, err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := env.Account.Send(t.Context(), &workv1.MsgAttest{Custodian: env.Account.Address, Order: id.String(), Fragment: wire.FragmentToProto(fragment)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names { // the faker hands over what it has, and answers
		n.Begin(name)
	}
	n.Await("the conviction", func(e events.Event) bool { return e.Kind == events.Exposed })
	l = n.Settle(id)
	bond := l.Params.KeepFactor * (l.Quote.Unit + l.Quote.Keep)
	if l.Ledger.Slashed != bond || !slices.Equal(barred(n, l), []string{faker}) || paid(n, l.Ledger.SlashPaid, "challenger-0") == 0 {
		t.Errorf("%d utally of %d were slashed, barred are %v, paid %+v", l.Ledger.Slashed, bond, barred(n, l), l.Ledger.SlashPaid)
	}
	u := &l.Units[0]
	anew := slices.IndexFunc(u.Attested, func(a job.Attestation) bool { return a.Stands() && a.Fragment.Number == fragment.Number })
	if u.Attempt != 0 || len(u.Attested) != 5 || anew < 0 || n.Name(u.Attested[anew].Custodian) == faker {
		t.Errorf("unit 0, attempt %d: attested %+v, fragment %d made anew by %d", u.Attempt, u.Attested, fragment.Number, anew)
	}
}

// wrongFragment stores what a custodian attests to in place of its fragment of the first unit:
// one bit of the second checkpoint's is another.
func wrongFragment(t *testing.T, env *role.Env, l *job.Lease) (*job.Fragment, error) {
	t.Helper()
	number, ok := l.FreeFragment(0, env.Account.Address)
	if !ok {
		return nil, fmt.Errorf("all are kept")
	}
	var list states.FragmentList
	for i, root := range l.Units[0].Receipt.Checkpoints[1:] {
		s, err := env.States.Get(t.Context(), l, root)
		if err != nil {
			return nil, err
		}
		if s, err = l.Order.Fragments().Fragment(s, number); err != nil {
			return nil, err
		}
		if i == 1 {
			s.Tensors[len(s.Tensors)-1].Bytes()[0] ^= 1
		}
		root, ref, err := env.States.Put(l.Order.ID(), s)
		if err != nil {
			return nil, err
		}
		list.Roots, list.Files = append(list.Roots, root), append(list.Files, blobs.File("fragment", ref))
	}
	ref, err := env.Store.PutBytes(blobs.Pin(l.Order.ID()), canon.Marshal(&list))
	return &job.Fragment{Number: number, Root: canon.Root(list.Roots), Data: blobs.File("fragments", ref)}, err
}
