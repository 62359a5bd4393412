package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/board"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/node/demo"
	"github.com/tally-network/tally/node/devnet"
)

func (e *env) demo() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use: "demo", GroupID: "network", Args: cobra.NoArgs,
		Short: "Run a training and a batch on a whole network, and see cheaters convicted",
		Long: `Starts a network on this machine (4 validators, 4 providers, one challenger), and
posts two orders: train a small language model on a text, and score the held-out text
by the model as it is before. The second is a task of drilling: the validators vote its
project in. They run side by side to their settlement. In each, one
provider cheats by one unit in the last place of one accumulator; it is found, and the
chain convicts it by recomputing one fold block.

With --dir the network stays in DIR: orders that are not finished go on at the
next start, finished ones make room for others. Without it, only results and their
proofs are kept.`,
		Example: `  tally demo
  tally demo --dir demo --data book.txt
  tally demo --cheat none --json`,
		Annotations: map[string]string{alsoRuns: "yes"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return e.runDemo(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "directory of the network and its results (default: a temporary one)")
	f.StringVar(&o.Data, "data", "", "text file to train on (default: a text that comes with the program)")
	f.StringVar((*string)(&o.Cheat), "cheat", string(demo.CheatULP), "how one provider of each order cheats: ulp or none")
	f.Var(numbers.Within(&o.Threads, 0, devnet.MaxPeers), "threads", "threads of each role that computes (default 1)")
	return cmd
}

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

// logName is the file in the demo's directory that takes log lines while a board has the terminal.
const logName = "demo.log"

// watchDemo runs the demo and shows it: as a board on a terminal, as lines elsewhere.
func (e *env) watchDemo(ctx context.Context, o *demo.Options) (*demo.Report, error) {
	if !e.json && terminal(e.out) {
		return e.showBoard(ctx, o)
	}
	var err error
	if o.Log, err = e.logger(e.err); err != nil {
		return nil, err
	}
	w := e.progress()
	o.Line = func(s string) { fmt.Fprintln(w, s) }
	return demo.Run(ctx, *o)
}

func (e *env) showBoard(ctx context.Context, o *demo.Options) (*demo.Report, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(o.Dir, logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if o.Log, err = e.logger(file); err != nil {
		return nil, err
	}
	return board.Show(ctx, e.in, e.out, o)
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
		fmt.Fprintf(e.err, "The orders are not finished. They go on with:\n  tally demo --dir %s --cheat %s\n", o.Dir, o.Cheat)
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
		if x.Name() != demo.ResultsDir {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, x.Name())))
		}
	}
	return err
}

// settlement tells how an order ended.
func settlement(w io.Writer, r *demo.Report) {
	fmt.Fprintf(w, "\nTraining %s %s after %.0f s\n", r.Order[:8], r.Status, r.Seconds)
	outcome(w, &r.Outcome, r.Name)
	fmt.Fprintf(w, "  loss      %.3f → %.3f, held out %.3f → %.3f nats per character\n", r.LossFirst, r.LossLast, r.HeldOutLossFirst, r.HeldOutLossLast)
	ok := "every ledger adds up"
	if !r.SupplyOK {
		ok = "a ledger does not add up"
	}
	fmt.Fprintf(w, "  supply    %s\n", ok)
	b := r.Batch
	fmt.Fprintf(w, "\nBatch %s %s\n", b.Order[:8], b.Status)
	outcome(w, &b.Outcome, r.Name)
	fmt.Fprintf(w, "  loss      %.3f over %d held-out records, before the training\n", b.Loss, b.Records)
	fmt.Fprintf(w, "  drilled   %s, as a task of project %d\n", wire.UtText(b.Drilled), b.Project)
	fmt.Fprintf(w, "  results   %s\n  proof     tally verify %s --trust %s\n", b.Outputs[demo.ScoreSlot], b.Bundle, b.Trust)
	fmt.Fprintf(w, "\nSeats in consensus, by the power of epoch %d; each of %d began with an equal part\n", r.Seats.Drawn-min(r.Seats.Drawn, 2), len(r.Seats.Members))
	for _, m := range r.Seats.Members {
		fmt.Fprintf(w, "  %-16s %.2f %% of the votes; %s count for it now\n", r.Name(m.Account), 100*m.Share, wire.UtText(m.Power))
	}
	files(w, &r.Delivery)
	served(w, r)
}

// served tells what the trained model replies, and how anybody gets the same.
func served(w io.Writer, r *demo.Report) {
	s := r.Served
	fmt.Fprintf(w, "\nIts folder goes into any program that takes Hugging Face's, and is served by %s:\n  tally run %s\n", r.Name(s.By), s.Folder)
	fmt.Fprintf(w, "It goes on with %q, in %d tokens for %d utally:\n  %s\n", strings.TrimSpace(s.Prompt), s.Tokens, s.Price, strings.ReplaceAll(strings.TrimSpace(s.Reply), "\n", "\n  "))
	says := "WRONG"
	if s.Right {
		says = "right"
	}
	fmt.Fprintf(w, "%s has re-executed the reply for %d utally: %s. Anybody can:\n  tally session verify %s --model %s\n", r.Name(s.Checker), s.Checks, says, s.Receipt, s.Folder)
}
