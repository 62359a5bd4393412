package watch

import (
	"context"
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/roletest"
)

// A custodian is looked at until that is noted, once it has been asked on chain no more, and
// never after the lease's last window.
func TestCustodiansAreLookedAtOnce(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	c := &challenger{env: env, looks: env.NewTasks(4)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is begun ends at once: only whether it is counts
	defer c.looks.Wait()
	l := lease()
	for i := range l.Units {
		l.Units[i].Attested = []job.Attestation{{Custodian: "whole", Done: true}}
	}
	l.Files.Custodians = []job.FileCustodian{{Account: "files", Says: job.Had}, {Account: "silent"}}
	if !c.custodians(ctx, l, 0) {
		t.Fatal("nobody is looked at")
	}
	if err := c.note(l, asked(l, 0, "whole")); err != nil { // of one unit stands for all
		t.Fatal(err)
	}
	if !c.custodians(ctx, l, 0) {
		t.Fatal("the custodian of the files is not looked at")
	}
	if err := c.note(l, asked(l, job.OfFiles, "files")); err != nil {
		t.Fatal(err)
	}
	if c.custodians(ctx, l, 0) {
		t.Error("who was asked on chain is looked at again")
	}
	l.Barred = []string{"whole"} // convicted: it is asked about every unit
	if !c.custodians(ctx, l, 0) {
		t.Error("who was convicted is not looked at again")
	}
	l.Phase, l.Windows.End = job.Closing, 10
	if !c.custodians(ctx, l, 9) || c.custodians(ctx, l, 10) {
		t.Error("the last window does not end it")
	}
}
