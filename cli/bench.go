package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/bench"
	"github.com/tally-network/tally/cli/numbers"
)

func (e *env) bench() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use: "bench NAME", GroupID: "other",
		Short: "Measure, and compare with what is wanted",
		Long: func() string {
			text := "Measures on this machine. The names:\n"
			for _, b := range bench.All {
				text += fmt.Sprintf("\n  %-10s %s", b.Name, b.Short)
			}
			return text
		}(),
		Example: "  tally bench idle\n  tally bench demo --json\n  tally bench engine --only gemm/fp32\n  tally bench hardening --only verify",
		Args:    arguments("bench NAME"),

		ValidArgsFunction: cobra.FixedCompletions(bench.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := bench.Named(args[0])
			if err != nil {
				return err
			}
			o.Tell = func(format string, a ...any) { fmt.Fprintf(e.err, format+"\n", a...) }
			rows, err := b.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				for _, r := range rows {
					fmt.Fprintln(t, r)
				}
				_ = t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&o.Only, "only", "", "of the engine and of hardening: only rows whose name has this part; of the chain: rounds, pruned, orders, sessions, year or blocks; of the market: clearing, welfare or shading; of formats: shard, tokens, csv, parquet, safetensors, import or digits; of consensus: seats, follow, blocks or sync")
	cmd.Flags().Var(numbers.Within(&o.Records, 0, 1_000_000), "records", "of a batch: how many (default 10,000)")
	cmd.Flags().StringVar(&o.Models, "models", "", "of the engine: also run the models NAME.onnx in this folder; of inference: a GGUF file; of formats: a folder for their files, 1.5 GB")
	return cmd
}
