package speak

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/models"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/model/encoder"
	"github.com/tally-network/tally/model/files"
)

// model is tally model: language models on this machine.
func (e *Env) model() *cobra.Command {
	cmd := &cobra.Command{
		Use: "model", GroupID: "models", Short: "Look at language models",
		Long:    "Looks at language models as people download them: folders as Hugging Face has them, and\nGGUF files.",
		Example: "  tally model show SmolLM2-135M-Instruct",
	}
	cmd.AddCommand(&cobra.Command{
		Use: "show MODEL", Short: "Show what a language model is, and what it takes",
		Long: `Shows a model's family, its weights and how they are stored, its shape, and the memory
that it takes: of its weights as they are stored, and of the keys and values of each token. MODEL is a folder with config.json and weights as safetensors, a
GGUF file, or the name of a model that was pulled; no weights are read. Families that are not known are refused by name.`,
		Example: "  tally model show SmolLM2-135M-Instruct\n  tally model show smollm2.gguf --json",
		Args:    cobra.MatchAll(named("MODEL"), cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := locate(args[0])
			if err != nil {
				return err
			}
			all, err := local.Describe(path)
			if err != nil {
				return err
			}
			if d := all.Encoder; d != nil {
				return e.Show(d, func(w io.Writer) { tellEncoder(w, args[0], d) })
			}
			d := all.Language
			return e.Show(d, func(w io.Writer) { tellModel(w, args[0], d) })
		},
	})
	cmd.AddCommand(e.ls(), e.verify(), e.quantize(), models.New(&models.Env{Show: e.Show, AlsoRuns: e.AlsoRuns}))
	return cmd
}

func tellModel(w io.Writer, path string, d *files.Description) {
	fmt.Fprintf(w, "%s: %s with %.4g million weights in %.4g MB\n", path, d.Family, float64(d.Parameters)/1e6, float64(d.Bytes)/1e6)
	if d.Name != "" || d.License != "" {
		fmt.Fprintf(w, "  name      %q, licence %q\n", d.Name, d.License)
	}
	var stored []string
	for _, s := range d.Stored {
		stored = append(stored, fmt.Sprintf("%.4g million as %s", float64(s.Weights)/1e6, s.Type))
	}
	if stored != nil {
		fmt.Fprintf(w, "  stored    %s\n", strings.Join(stored, ", "))
	}
	fmt.Fprintf(w, "  shape     %s of width %d, %s of %d elements, which share %s of keys; %d hidden\n",
		numbers.Several(d.Layers, "layer"), d.Width, numbers.Several(d.Heads, "head"), d.HeadSize, numbers.Several(d.Shared, "head"), d.Hidden)
	fmt.Fprintf(w, "  tokens    %d different ones, %d at once", d.Vocabulary, d.Context)
	if d.Windowed > 0 {
		fmt.Fprintf(w, "; %s look back no further than a window", numbers.Several(d.Windowed, "layer"))
	}
	fmt.Fprintf(w, "\n  memory    %.4g MB of weights, and %.4g KB for each token\n", float64(d.Memory)/1e6, float64(d.TokenBytes)/1e3)
}

func tellEncoder(w io.Writer, path string, d *encoder.Description) {
	fmt.Fprintf(w, "%s: %s, a sentence encoder with %.4g million weights in %.4g MB\n", path, d.Family, float64(d.Parameters)/1e6, float64(d.Bytes)/1e6)
	fmt.Fprintf(w, "  shape     %s of width %d, %s; a vector of %d for each text\n", numbers.Several(d.Layers, "layer"), d.Width, numbers.Several(d.Heads, "head"), d.Width)
	fmt.Fprintf(w, "  tokens    %d different ones, %d at once\n  memory    %.4g MB of weights\n", d.Vocabulary, d.Context, float64(d.Memory)/1e6)
}
