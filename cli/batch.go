package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/outputs"
	"github.com/tally-network/tally/node/consume/split"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/evidence"
)

// exampleBatch is an order file for a batch with everything that a person may want to choose.
const exampleBatch = `kind: BatchOrder
name: embed
problem:
  model: encoder.onnx        # its weights may lie in files beside it
  records:                   # for each input of the model a file; its first axis counts records
    input_ids: ids.npy
    attention_mask: mask.npy
  # records: tokens.npz      # or one file that has all inputs by name
  # grid: {lr: [0.1, 0.01], depth: [1, 2, 3]} # in place of records: every combination is one, in order
                             # of the inputs' names, of which the last varies fastest
  # within: {depth: [1, 8]}  # the least and the greatest value of an input: others are refused
  # dims: {sequence: 128}    # values of symbolic dimensions that the records leave open
  profile: fp32              # or mixed (factors of matrix products as bfloat16), int8
  # batch: 32                # records that a run of the model takes
  # steps: 16                # runs of a unit, at most 256
conditions:
  maxPrice: 5tally           # locked now, with a deposit; what is not spent comes back
  providers: 2               # at least
  assurance: {audit: {rate: 5%}} # of each unit's runs, executed again by a drawn auditor
  # assurance: {replicas: 2} # or each unit is computed by as many providers, and compared
  # assurance: {watched: true} # or all runs are executed again
  custodians: 3              # that keep the data
  # auction: true            # the next clearing in place of a standing offer: leave out the line of providers,
  #                          # and replicas. maxPrice is a bid then: half of what it leaves above the asks may be paid
  # bid: 3tally              # likewise, where bids are sealed: secret until then, and at most maxPrice
  # split: 3                 # nobody who computes sees all: in parts, each an order under another validator, of another
  #                          # owner; or split: [tally1…, tally1…]. Judges may see several parts; all see the model
  # and as for tally train: expires, validator, regions, tags, tier and what else providers must
  # have, deadline, unitTimeout, unitWindow, window, speculate, credit`

func (e *env) batch() *cobra.Command {
	b := e.buyer()
	f := batchFlags{}
	var allow []string
	cmd := &cobra.Command{
		Use: "batch ORDER.yaml", GroupID: "orders",
		Short: "Have a model applied to many records",
		Long: `Posts an order for a batch and locks its price. The network applies an ONNX model to
every record of a dataset, or to every point of a grid. With --wait it returns when
the order is settled and the results are here, with a proof of them: one .npy file
for each output, in the order of the records, or --format safetensors or jsonl.

Records are read from .npy, .npz, .safetensors, .jsonl and .csv. A line of JSON is an
object with a number, or nested lists of one shape, for each input: {"ids": [5, 2, 0]}.
Of a .csv file, named for an input, all columns make one row; as the one file of all
inputs, its first line names them. Text is refused: turn it into numbers first, as a
tokenizer does.

Each run of the model is a checkpoint of its own, so that one wrong result can be
disputed. The same order gives the same bits, and is taken up where it stands, as with
tally train. Everybody who works on the order sees the model and the records. With split,
whoever computes one part sees no other. Results are joined, and proofs are in part-1,
part-2 and so on. The same command posts anew what has failed.

An order file, with paths relative to it:

` + indent(exampleBatch),
		Example: "  tally batch order.yaml --wait --home tally-devnet/consumer\n  tally batch split.yaml --wait --json --home tally-devnet/consumer # conditions: {split: 3}\n  tally batch order.yaml --wait --format jsonl --out results --home tally-devnet/consumer",
		Args:    arguments("batch ORDER.yaml"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := consume.ReadBatchSpec(args[0], allow...)
			if err != nil {
				return err
			}
			if err := f.check(); err != nil {
				return err
			}
			if f.wait && f.out != "" { // before anything is paid for it
				if err := consume.CanDeliverResults(f.out, f.force); err != nil {
					return err
				}
			}
			if err := b.start(cmd); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.close()) }()
			return b.batch(cmd.Context(), s, f)
		},
	}
	flags := cmd.Flags()
	allowFlag(cmd, &allow)
	flags.BoolVar(&f.wait, "wait", false, "wait until the order is settled, and fetch results and proof")
	f.flags(flags, "results")
	flags.BoolVar(&f.again, "again", false, "post the order, and pay for it, though it was posted before")
	b.peer(flags)
	return cmd
}

// batchFlags are the flags of tally batch.
type batchFlags struct {
	target
	again, wait bool
}

// target is where and how what an order gave is written.
type target struct {
	out, format string // of results; a model has one form
	force       bool
}

func (t *target) flags(f *pflag.FlagSet, what string) {
	f.StringVar(&t.out, "out", "", "directory for "+what+" and proof (default order-ID)")
	f.StringVar(&t.format, "format", outputs.Formats[0], "of the results of a batch: npy, safetensors or jsonl")
	f.BoolVar(&t.force, "force", false, "overwrite the "+what+" and proof that are in the --out directory")
}

func (t *target) check() error {
	if !slices.Contains(outputs.Formats, t.format) {
		return fmt.Errorf("--format %q: results are written as one of %v", t.format, outputs.Formats)
	}
	return nil
}

// batched is what tally batch tells in the end.
type batched struct {
	consume.Outcome
	Records int `json:"records"`
	*consume.Results
}

func (b *buyer) batch(ctx context.Context, s consume.BatchSpec, f batchFlags) error {
	b.tell("trying one run of %s", s.Problem.Model)
	if split.Splits(s) {
		return b.inParts(ctx, s, f)
	}
	d, err := interrupt.Run(ctx, func() (*consume.Draft, error) { return consume.NewBatchDraft(ctx, s, b.role.Jobs.Exec) })
	if err != nil {
		return err
	}
	p := &d.Problem
	warn(b.tell, d.NotFinite, d.Unused(), p.Records)
	b.tell("%d records, %d a run, %d runs a unit; a run takes %.3g FLOP", p.Records, p.Batch, p.Steps, float64(p.StepFLOPs))
	id, err := b.place(ctx, d, f.again)
	if err != nil {
		return err
	}
	last, err := b.follow(ctx, id, func(p consume.Progress) bool { return !f.wait && p.HandedOver })
	if err != nil {
		return err
	}
	if !f.wait {
		t := batched{Records: p.Records}
		if t.Outcome, err = consume.NewOutcome(ctx, b.role, last.Lease); err != nil {
			return err
		}
		return b.e.show(t, func(w io.Writer) {
			stands := "The network has the order's files and goes on alone. Fetch the results within a quarter of an hour of its end: custodians let them go then."
			if last.Ended() {
				stands = "The order is settled. Fetch the results, as long as custodians keep them:"
			}
			fmt.Fprintf(w, "%s\n  tally order watch %s --home %s\n", stands, id, b.e.home)
		})
	}
	return b.gather(ctx, last.Lease, f.target)
}

// inParts has a batch computed in parts.
func (b *buyer) inParts(ctx context.Context, s consume.BatchSpec, f batchFlags) error {
	d, err := interrupt.Run(ctx, func() (*split.Drafted, error) { return split.Read(ctx, s, b.role.Jobs.Exec) })
	if err != nil {
		return err
	}
	warn(b.tell, d.Whole.NotFinite, d.Whole.Unused(), d.Whole.Problem.Records)
	defer b.watchNode(ctx)()
	o := split.Options{Home: b.e.home, Wait: f.wait, Again: f.again, Out: f.out, Format: f.format, Force: f.force, Tell: b.tell}
	r, err := split.Run(ctx, split.At(b.role, b.desk, b.as, b.place), d.Split, o)
	if r != nil {
		err = errors.Join(b.e.show(r, r.Tell), err)
	}
	return err
}

// warn tells of records that are taken, and are hardly meant.
func warn(tell func(string, ...any), notFinite, unused, records int) {
	if notFinite > 0 {
		tell("WARNING: NaN or infinite elements are in %s, and so mostly in what they give", numbers.Several(notFinite, "record"))
	}
	if unused > records {
		tell("WARNING: most of what is paid for computes nothing: runs could take %d records, and there are %d. Lower problem.batch", records+unused, records)
	}
}

// gather fetches what a settled batch gave, and tells of it.
func (b *buyer) gather(ctx context.Context, l *job.Lease, to target) (err error) {
	t := batched{Records: l.Order.Problem.Records}
	if t.Outcome, err = consume.NewOutcome(ctx, b.role, l); err != nil {
		return err
	}
	if l.Round == 0 {
		return errors.Join(b.e.show(t, func(w io.Writer) { t.tell(w) }), errNoResults)
	}
	dir, err := filepath.Abs(delivery(to.out, l.Order.ID()))
	if err != nil {
		return err
	}
	if err := consume.CanDeliverResults(dir, to.force); err != nil {
		return err
	}
	b.tell("fetching the results and their proof")
	got, err := b.desk.Deliver(ctx, desk.DeliveryRequest{Order: l.Order.ID(), Dir: dir, Format: to.format})
	if err != nil {
		return err
	}
	t.Results = got.Results
	trust, err := evidence.ParseTrust(t.Results.Trust)
	if err != nil {
		return err
	}
	return errors.Join(evidence.Remember(b.e.home, trust), b.e.show(t, func(w io.Writer) { t.tell(w) }))
}

// errNoResults is returned for a batch that ended before all its units were accepted.
var errNoResults = errors.New("the order ended before all its records had results: there are none")

func (t *batched) tell(w io.Writer) {
	outcome(w, &t.Outcome, func(account string) string { return account })
	if t.Results == nil {
		return
	}
	fmt.Fprintf(w, "\nThe results of %d records are in\n", t.Records)
	for _, file := range slices.Sorted(maps.Values(t.Outputs)) {
		fmt.Fprintf(w, "  %s\n", file)
	}
	fmt.Fprintf(w, "Anybody can check them, without a network:\n  tally verify %s --trust %s\n", t.Bundle, t.Trust)
}
