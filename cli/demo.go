package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/demo"
)

func (e *env) demo() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use: "demo", GroupID: "network", Args: cobra.NoArgs,
		Short: "Run one training order on a whole network, and see a cheater convicted",
		Long: `Starts a network on this machine (4 validators, 4 providers, one challenger),
orders a small language model trained on a text, and follows the order to its
settlement. One provider cheats by one unit in the last place of one accumulator;
the challenger finds it, and the chain convicts it by recomputing one fold block.

With --dir the network stays in DIR: an order that is not finished goes on at the
next start, a finished one makes room for another. Without it, only the model and
its proof are kept.`,
		Example: `  tally demo
  tally demo --dir demo --data book.txt
  tally demo --cheat none --json`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Log, err = e.logger(); err != nil {
				return err
			}
			return e.runDemo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "directory of the network and its results (default: a temporary one)")
	f.StringVar(&o.Data, "data", "", "text file to train on (default: a text that comes with the program)")
	f.StringVar((*string)(&o.Cheat), "cheat", string(demo.CheatULP), "how one provider cheats: ulp or none")
	f.IntVar(&o.Threads, "threads", 0, "threads of each role that computes (default 1)")
	return cmd
}

// resultsDir is the part of the demo's directory that outlives a temporary one.
const resultsDir = "orders"

func (e *env) runDemo(ctx context.Context, o demo.Options) error {
	temporary := o.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "tally-demo-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	r, err := e.watchDemo(ctx, &o)
	if err != nil {
		return errors.Join(err, e.unfinished(ctx, &o, temporary))
	}
	if temporary {
		if err := keepResults(o.Dir); err != nil {
			return err
		}
	}
	return e.show(r, func(w io.Writer) { settlement(w, r) })
}

// watchDemo runs the demo and shows it: as a picture on a terminal, as lines
// elsewhere.
func (e *env) watchDemo(ctx context.Context, o *demo.Options) (*demo.Report, error) {
	if !e.json && terminal(e.out) {
		return e.picture(ctx, o)
	}
	w := e.progress()
	o.Line = func(s string) { fmt.Fprintln(w, s) }
	return demo.Run(ctx, *o)
}

// unfinished says what became of a demo that did not end.
func (e *env) unfinished(ctx context.Context, o *demo.Options, temporary bool) error {
	if !demo.Begun(o.Dir) {
		if temporary {
			return os.RemoveAll(o.Dir)
		}
		return nil
	}
	if ctx.Err() != nil {
		fmt.Fprintf(e.err, "The order is not finished. It goes on with:\n  tally demo --dir %s --cheat %s\n", o.Dir, o.Cheat)
	}
	return nil
}

// keepResults removes the network and leaves what the consumer got.
func keepResults(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, x := range entries {
		if x.Name() != resultsDir {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, x.Name())))
		}
	}
	return err
}

// settlement tells how an order ended.
func settlement(w io.Writer, r *demo.Report) {
	money := func(v uint64) string { return consume.Amount(v).String() }
	fmt.Fprintf(w, "\nOrder %s %s after %.0f s\n", r.Order[:8], r.Status, r.Seconds)
	if r.Reason != "" {
		fmt.Fprintln(w, "  it stopped early:", r.Reason)
	}
	fmt.Fprintf(w, "  training  %d units, %d steps; loss %.3f → %.3f, held out %.3f → %.3f nats per character\n", r.Units, r.Steps, r.LossFirst, r.LossLast, r.HeldOutLossFirst, r.HeldOutLossLast)
	fmt.Fprintf(w, "  audits    %d drawn, %d passed, %d failed\n", r.Audits.Drawn, r.Audits.Passed, r.Audits.Failed)
	if d := r.Dispute; d != nil {
		fmt.Fprintf(w, "  dispute   %s, unit %d: step %d, node %d (%s), tile %d/%d, fold block %d; %d moves; %s lost\n",
			r.Name(d.Provider), d.Unit, d.Step, d.Node, d.Op, d.Tile[0], d.Tile[1], d.Fold, d.Moves, r.Name(d.Loser))
	}
	fmt.Fprintf(w, "  price     %s\n", money(r.Price))
	table(w, r, r.Paid)
	fmt.Fprintf(w, "    %-16s %s\n", "refund", money(r.Refund))
	fmt.Fprintf(w, "    %-16s %s\n", "burnt", money(r.Burnt))
	if r.Slashed > 0 {
		fmt.Fprintf(w, "  slashed   %s\n", money(r.Slashed))
		table(w, r, r.SlashPaid)
	}
	ok := "every ledger adds up"
	if !r.SupplyOK {
		ok = "a ledger does not add up"
	}
	fmt.Fprintf(w, "  supply    %s\n", ok)
	fmt.Fprintf(w, "  state     %s\n", r.FinalRoot)
	fmt.Fprintf(w, "\nThe model writes:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(r.Sample), "\n", "\n  "))
	fmt.Fprintf(w, "\nIt is in\n  %s\n  %s\n", r.Safetensors, r.ONNX)
	fmt.Fprintf(w, "Anybody can check it, without a network:\n  tally verify %s --trust %s\n", r.Bundle, r.Trust)
}

func table(w io.Writer, r *demo.Report, shares map[string]uint64) {
	accounts := slices.SortedFunc(maps.Keys(shares), func(a, b string) int { return strings.Compare(r.Name(a), r.Name(b)) })
	for _, a := range accounts {
		fmt.Fprintf(w, "    %-16s %s\n", r.Name(a), consume.Amount(shares[a]))
	}
}
