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

// model is tally model: models on this machine.
func (e *Env) model() *cobra.Command {
	ofFiles := &models.Env{Show: e.Show, AlsoRuns: e.AlsoRuns}
	cmd := &cobra.Command{
		Use: "model", GroupID: "models", Short: "Look at models, and begin new ones",
		Long:    "Looks at models as people have them: language models as folders of Hugging Face's or GGUF files,\nand any others as ONNX files. It writes models to train, too.",
		Example: "  tally model show SmolLM2-135M-Instruct\n  tally model new resnet --out resnet.onnx\n  tally model export smollm2 --out smollm2.onnx\n  tally model show resnet.onnx --svg resnet.svg",
	}
	cmd.AddCommand(show(e), e.ls(), e.verify(), e.quantize(), perplexityCommand(e), models.New(ofFiles), models.Export(ofFiles))
	return cmd
}

// show is tally model show.
func show(e *Env) *cobra.Command {
	var onnx models.Show
	cmd := &cobra.Command{
		Use: "show MODEL", Short: "Show what a model is, and what it takes",
		Long: `Of a language model it shows the family, the weights and how they are stored, the shape, and the memory
that it takes: of its weights as they are stored, and of the keys and values of each token. MODEL is a folder with config.json and weights as safetensors, a
GGUF file, or the name of a model that was pulled; no weights are read. Families that are not known are refused by name.

Of the folder of a LoRA adapter, as PEFT writes it, it shows rank, scale, and what it adapts.

Of an ONNX file it shows inputs, outputs, operators and parameters, and the floating-point operations and the memory of
a pass. Symbolic dimensions count as 1 unless --dim says another size. With --svg it draws the graph.`,
		Example: "  tally model show SmolLM2-135M-Instruct\n  tally model show smollm2.gguf --json\n  tally model show resnet.onnx --svg resnet.svg\n  tally model show exported.onnx --dim batch=8",
		Args:    cobra.MatchAll(named("MODEL"), cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if models.Takes(args[0]) {
				r, err := onnx.Run(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return e.Show(r, r.Tell)
			}
			if onnx.Any() {
				return fmt.Errorf("%s is no ONNX file, and --svg and --dim are for these: leave them out, or name a file that ends in .onnx", args[0])
			}
			path, err := locate(args[0])
			if err != nil {
				return err
			}
			if files.IsAdapter(path) {
				d, err := files.DescribeAdapter(path)
				if err != nil {
					return err
				}
				return e.Show(d, func(w io.Writer) { tellAdapter(w, args[0], d) })
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
	}
	onnx.Flags(cmd.Flags())
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

func tellAdapter(w io.Writer, path string, d *files.Adapter) {
	fmt.Fprintf(w, "%s: a LoRA adapter of rank %d with %.4g million weights in %.4g MB\n", path, d.Rank, float64(d.Parameters)/1e6, float64(d.Bytes)/1e6)
	if d.Base != "" {
		fmt.Fprintf(w, "  base      %q, as its author calls it\n", d.Base)
	}
	fmt.Fprintf(w, "  adds      %.4g times what it gives", d.Scale)
	if d.Targets != nil {
		fmt.Fprintf(w, ", to %.400q", strings.Join(d.Targets, ", "))
	}
	fmt.Fprintf(w, "\n  try it    tally run MODEL --adapter %s\n", path)
}

func tellEncoder(w io.Writer, path string, d *encoder.Description) {
	fmt.Fprintf(w, "%s: %s, a sentence encoder with %.4g million weights in %.4g MB\n", path, d.Family, float64(d.Parameters)/1e6, float64(d.Bytes)/1e6)
	fmt.Fprintf(w, "  shape     %s of width %d, %s; a vector of %d for each text\n", numbers.Several(d.Layers, "layer"), d.Width, numbers.Several(d.Heads, "head"), d.Width)
	fmt.Fprintf(w, "  tokens    %d different ones, %d at once\n  memory    %.4g MB of weights\n", d.Vocabulary, d.Context, float64(d.Memory)/1e6)
}
