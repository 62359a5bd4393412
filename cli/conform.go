package cli

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/model"
	"github.com/tally-network/tally/model/backend"
)

func (e *env) conform() *cobra.Command {
	cmd := &cobra.Command{
		Use: "conform", GroupID: "other",
		Short:   "Check this program against the tests of a standard",
		Example: "  tally conform onnx onnx/backend/test/data/node",
	}
	cmd.AddCommand(e.conformONNX())
	return cmd
}

func (e *env) conformONNX() *cobra.Command {
	var only string
	var verbose bool
	s := backend.Suite{}
	cmd := &cobra.Command{
		Use:   "onnx DIR",
		Short: "Run ONNX's backend tests",
		Long: `Runs the ONNX backend tests found below DIR: folders with model.onnx and
test_data_set_*. Outputs must be the expected ones, with a relative tolerance of
1e-3 and an absolute one of 1e-7 for floats, and both executors must give the
same bits. A model that is refused before it runs counts as unsupported. A test
counts under every operator in its model.`,
		Example: `  tally conform onnx onnx/backend/test/data/node
  tally conform onnx DIR --only 'test_(conv|gemm)_' --json`,
		Args: arguments("onnx DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Dir = args[0]
			if only != "" {
				var err error
				if s.Only, err = regexp.Compile(only); err != nil {
					return fmt.Errorf("--only: %w", err)
				}
			}
			r, err := s.Run(cmd.Context())
			if err != nil {
				return err
			}
			if err := e.show(r, func(w io.Writer) { tellConformance(w, r, verbose) }); err != nil {
				return err
			}
			if r.Failed > 0 {
				return fmt.Errorf("%d tests failed", r.Failed)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Executor, "executor", model.Executors[0], "whose outputs are compared with the expected ones: cpu or reference; the other must give the same bits")
	f.StringVar(&only, "only", "", "run tests whose path matches this regular expression")
	f.BoolVarP(&verbose, "verbose", "v", false, "list what is unsupported, and why")
	return cmd
}

func tellConformance(w io.Writer, r *backend.Report, verbose bool) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "passed\tfailed\tunsupported\toperator\t")
	for _, op := range slices.Sorted(maps.Keys(r.ByOp)) {
		c := r.ByOp[op]
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t\n", c.Passed, c.Failed, c.Unsupported, op)
	}
	fmt.Fprintf(t, "%d\t%d\t%d\tall tests\t\n", r.Passed, r.Failed, r.Unsupported)
	_ = t.Flush()
	list := func(title string, all []backend.Failure) {
		if len(all) > 0 {
			fmt.Fprintf(w, "\n%s:\n", title)
		}
		for _, f := range all {
			fmt.Fprintf(w, "  %s: %s\n", f.Test, f.Error)
		}
	}
	if verbose {
		list("Unsupported", r.Refusals)
	}
	list("Failed", r.Failures)
	fmt.Fprintf(w, "\n%d bit mismatches", r.BitMismatches)
	if r.Uncompared > 0 {
		fmt.Fprintf(w, "; %d tests were too long for the second executor", r.Uncompared)
	}
	fmt.Fprintln(w)
}
