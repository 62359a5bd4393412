package audit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
)

// auditing returns an auditor, and a lease whose first unit has a receipt of true work.
func auditing(t *testing.T) (*auditor, *job.Lease) {
	t.Helper()
	env, n := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	roletest.Alone(t, env, n, l)
	states, roots := roletest.Unit(t, j, l, 0)
	roletest.Receive(t, env, l, 0, roots, roletest.Put(t, env, states[0]), roletest.Put(t, env, states[1]))
	return &auditor{env: env}, l
}

// Only what a consumer could be blamed for is called missing: this machine's own trouble is
// no reason to end somebody's order.
func TestWordFollowsFromWhoseTroubleItIs(t *testing.T) {
	for _, c := range []struct {
		err  error
		want workv1.Word
	}{
		{nil, workv1.WORD_HAD},
		{fmt.Errorf("order: %w", &blobs.FetchError{Role: "model", Err: errors.New("nobody has it")}), workv1.WORD_MISSING},
		{fmt.Errorf("order: %w", &replay.UnfitError{Err: errors.New("another root")}), workv1.WORD_MISSING},
		{&os.PathError{Op: "write", Path: "blob", Err: errors.New("no space left")}, workv1.WORD_CANNOT},
		{errors.New("a program of 9 GB"), workv1.WORD_CANNOT},
	} {
		if got := wordFor(c.err); got != c.want {
			t.Errorf("%v: says %v, want %v", c.err, got, c.want)
		}
	}
}

// A custodian shows a tile of whatever it attested to, and the tile is what the chain checks.
func TestCustodianShowsWhatIsAskedFor(t *testing.T) {
	a, l := auditing(t)
	if err := a.files(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if fragment, err := a.hold(t.Context(), l, 0); err != nil || fragment != nil {
		t.Fatalf("holding whole checkpoints: %v, %v", fragment, err)
	}
	asked := map[int]bool{}
	for i := range 40 {
		q := proof.SampleStates(canon.Sum("seed", []byte{byte(i)}), l.Units[0].Receipt.Checkpoints, l.Order.Problem.Data)
		asked[q.State] = true
		shown, err := a.tile(t.Context(), l, 0, q)
		if err == nil {
			err = q.Check(&shown)
		}
		if err != nil {
			t.Errorf("of state %d: %v", q.State, err)
		}
	}
	if len(asked) != 4 {
		t.Errorf("asked for states %v, want three and the records", asked)
	}
}

// What cannot be had or is wrong is not attested to.
func TestCustodianHoldsNothingThatIsWrong(t *testing.T) {
	a, l := auditing(t)
	r := l.Units[0].Receipt
	r.Checkpoints[2] = canon.Sum("another state")
	if _, err := a.hold(t.Context(), l, 0); err == nil {
		t.Error("a checkpoint of another root is held")
	}
	l.Order.Conditions.Custodians, l.Order.Conditions.CodedBytes = 4, 1
	for i := range 4 {
		l.Units[0].Attested = append(l.Units[0].Attested, job.Attestation{
			Custodian: fmt.Sprint("custodian-", i), Done: true, Fragment: &job.Fragment{Number: i},
		})
	}
	if _, err := a.hold(t.Context(), l, 0); err == nil || !strings.Contains(err.Error(), "all fragments") {
		t.Errorf("a fragment of a unit of which all are kept: %v", err)
	}
}

// Beside the segments that its VRF picks an auditor looks at those with the largest updates.
func TestLargestUpdatesAreAudited(t *testing.T) {
	a, l := auditing(t)
	for _, c := range []struct {
		wanted  int
		audited []int
		most    int
	}{{0, nil, 0}, {1, nil, 1}, {1, []int{0, 1}, 0}, {2, []int{1}, 1}} {
		l.Order.Conditions.TopSegments = c.wanted
		roletest.Lend(t, a.env, l)
		got, err := a.largest(t.Context(), l, l.Units[0].Receipt, c.audited)
		if err != nil || len(got) != c.most || slices.ContainsFunc(got, func(s int) bool { return slices.Contains(c.audited, s) }) {
			t.Errorf("%d beside %v: %v, %v", c.wanted, c.audited, got, err)
		}
	}
}
