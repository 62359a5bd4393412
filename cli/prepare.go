package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/encoder"
	"github.com/tally-network/tally/model/search"
)

// prepared is what tally drill prepare tells.
type prepared struct {
	Task    string `json:"task_file"`
	Model   string `json:"model"`
	Bytes   int    `json:"model_bytes"`
	Records int    `json:"records"`
	Batch   int    `json:"batch"`     // records of a run
	FLOPs   uint64 `json:"run_flops"` // of a run
}

// task is where a task is prepared, and for which project.
type task struct {
	e       *env
	dir     string
	project uint64
}

func (t *task) flags(f *pflag.FlagSet) {
	f.StringVar(&t.dir, "out", "", "directory for the task, made if it is missing")
	f.Var(numbers.Within(&t.project, 1, math.MaxUint64), "project", "number of the project, which tally drill project ls shows")
}

func (t *task) check() error {
	switch {
	case t.project == 0:
		return errors.New("--project is missing: tally drill project ls shows the numbers")
	case t.dir == "":
		return errors.New("--out is missing: name a directory for the task")
	}
	return nil
}

func prepareTask(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prepare", Short: "Prepare a task of a usual kind: its model and its order file",
		Example: "  tally drill prepare search examples/search/iris.csv --project 1 --out irises\n  tally drill prepare embed --model minilm --tokens ids.npy --mask mask.npy --project 1 --out texts",
	}
	cmd.AddCommand(prepareSearch(e), prepareEmbed(e))
	return cmd
}

func prepareSearch(e *env) *cobra.Command {
	t := task{e: e}
	s := search.Trainer{Hidden: 16, Steps: 200, Seeds: 3}
	var label string
	cmd := &cobra.Command{
		Use: "search TABLE.csv", Short: "Prepare a search for the settings that learn a table best",
		Long: `Writes a model and a task to find the settings with which a small classifier learns a
table. The first line of the table names its columns. One column holds the class, as any
text, and the others hold numbers.

A run trains the classifier from the start: a perceptron with one hidden layer of tanh, by
gradient descent with momentum and weight decay. 60 % of the rows are learned, 20 %
validate and 20 % test. Features are scaled by mean and deviation of what is learned. Each
record gives train_loss, validation_loss, validation_accuracy and test_accuracy. Choose by
validation, and look at the test once.

Edit the grid of settings in task.yaml as you like. The table is part of the model, which
everybody who works on the task sees.`,
		Example: "  tally drill prepare search examples/search/iris.csv --project 1 --out irises\n  tally order validate irises/task.yaml --home tally-devnet/consumer\n  tally drill publish irises/task.yaml --home tally-devnet/consumer",
		Args:    arguments("search TABLE.csv"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.check(); err != nil {
				return err
			}
			text, err := bounded.ReadFile(args[0], search.MaxText)
			if err != nil {
				return err
			}
			if s.Table, err = search.ReadTable(text, label); err != nil {
				return fmt.Errorf("table %s: %w", args[0], err)
			}
			g, err := s.Graph()
			if err != nil {
				return err
			}
			grid, records := searchGrid(s)
			return t.write(cmd.Context(), g, grid, prepared{Records: records, Batch: 1}, nil)
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&label, "label", "", "column that holds the class (default the last)")
	cmd.Flags().Var(numbers.Within(&s.Hidden, 1, search.MaxHidden), "hidden", "most hidden units that a record may use")
	cmd.Flags().Var(numbers.Within(&s.Steps, 1, search.MaxSteps), "steps", "steps of gradient descent")
	cmd.Flags().Var(numbers.Within(&s.Seeds, 1, search.MaxSeeds), "seeds", "initial weights that a record may choose from")
	return cmd
}

// searchGrid writes settings that are worth a first look, and counts their combinations.
func searchGrid(s search.Trainer) (text string, records int) {
	var units, seeds []int
	for n := max(1, s.Hidden/4); n < s.Hidden; n *= 2 {
		units = append(units, n)
	}
	units = append(units, s.Hidden)
	for i := range min(s.Seeds, 3) {
		seeds = append(seeds, i)
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "  grid:                        # every combination is a record")
	records = 1
	for _, x := range []struct {
		name string
		of   any
		n    int
		note string
	}{
		{search.Rate, "[0.03, 0.1, 0.3, 1]", 4, "of the mean gradient"},
		{search.Momentum, "[0, 0.9]", 2, "from 0 to 1"},
		{search.Decay, "[0, 0.001, 0.01]", 3, "of weights, per step and lr"},
		{search.Hidden, inLine(units), len(units), fmt.Sprintf("units, %d at most", s.Hidden)},
		{search.Seed, inLine(seeds), len(seeds), fmt.Sprintf("of initial weights, below %d", s.Seeds)},
	} {
		fmt.Fprintf(&b, "    %-26s # %s\n", fmt.Sprintf("%s: %s", x.name, x.of), x.note)
		records *= x.n
	}
	fmt.Fprintln(&b, "  within:                      # what the model is made for; beyond it an order is refused")
	fmt.Fprintf(&b, "    {%s: [0, 1], %s: [1, %d], %s: [0, %d]}\n", search.Momentum, search.Hidden, s.Hidden, search.Seed, s.Seeds-1)
	return b.String(), records
}

// inLine writes numbers as YAML does in one line.
func inLine(numbers []int) string { return strings.ReplaceAll(fmt.Sprint(numbers), " ", ", ") }

func prepareEmbed(e *env) *cobra.Command {
	t := task{e: e}
	var folder, tokens, mask string
	batch := 0
	cmd := &cobra.Command{
		Use: "embed", Short: "Prepare the embedding of documents by a sentence encoder",
		Long: `Writes a model and a task that turns each text into a vector. The model is a BERT in a
folder of Hugging Face's: config.json and model.safetensors, such as all-MiniLM-L6-v2.
The vector is the mean of the tokens' last hidden states, of length 1.

Texts come as token ids, made beforehand by the model's own tokenizer. The file of --tokens
holds whole numbers [texts, tokens]. That of --mask holds 1 for tokens and 0 for padding; without
it, all but the model's padding token counts. docs/drilling.md shows the Python for both.`,
		Example: "  tally drill prepare embed --model minilm --tokens ids.npy --mask mask.npy --project 1 --out texts\n  tally drill publish texts/task.yaml --home tally-devnet/consumer",
		Args:    arguments("embed"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch err := t.check(); {
			case err != nil:
				return err
			case folder == "":
				return errors.New("--model is missing: name the folder of a sentence encoder, with config.json and model.safetensors")
			case tokens == "":
				return errors.New("--tokens is missing: name a .npy file of token ids [texts, tokens]")
			}
			return t.embed(cmd.Context(), folder, tokens, mask, batch)
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&folder, "model", "", "folder of the encoder")
	cmd.Flags().StringVar(&tokens, "tokens", "", ".npy file of token ids, int32 or int64 [texts, tokens]")
	cmd.Flags().StringVar(&mask, "mask", "", ".npy file of the same shape: 1 for tokens, 0 for padding")
	cmd.Flags().Var(numbers.Within(&batch, 1, encoder.MaxBatch), "batch", "texts of a run (default: as many as disputes allow, 32 at most)")
	return cmd
}

// defaultTexts is the most texts that a run takes, unless somebody chooses.
const defaultTexts = 32

func (t *task) embed(ctx context.Context, folder, tokens, mask string, batch int) error {
	ids, err := readNPY(tokens)
	if err != nil {
		return err
	}
	var given *tensor.Tensor
	if mask != "" {
		if given, err = readNPY(mask); err != nil {
			return err
		}
	}
	m, err := interrupt.Run(ctx, func() (*encoder.Encoder, error) { return encoder.Open(folder) })
	if err != nil {
		return err
	}
	texts, err := m.Texts(ids, given)
	if err != nil {
		return err
	}
	records, length := texts.IDs.Shape[0], texts.IDs.Shape[1]
	if batch == 0 {
		if batch, err = textsOfRun(ctx, m, records, length); err != nil {
			return err
		}
	}
	g, err := m.Graph(batch, length)
	if err != nil {
		return err
	}
	files := map[string]*tensor.Tensor{encoder.IDs + ".npy": texts.IDs, encoder.Mask + ".npy": texts.Mask}
	problem := fmt.Sprintf("  records: {%s: %[1]s.npy, %s: %[2]s.npy}\n  batch: %d                    # texts of a run; the model is written for it\n", encoder.IDs, encoder.Mask, batch)
	return t.write(ctx, g, problem, prepared{Records: records, Batch: batch}, files)
}

// textsOfRun returns how many texts a run takes, so that it can be disputed in time.
func textsOfRun(ctx context.Context, m *encoder.Encoder, records, length int) (int, error) {
	one, err := m.Graph(1, length)
	if err != nil {
		return 0, err
	}
	flops, err := costOf(ctx, one)
	if err != nil {
		return 0, err
	}
	n := min(records, defaultTexts)
	for n > 0 && !job.DefaultParams.Replays(flops*uint64(n), dispute.DefaultRules) {
		n /= 2
	}
	if n == 0 {
		return 0, fmt.Errorf("a text of %d tokens takes %.3g FLOP, more than a run may: cut the texts, or take a smaller model", length, float64(flops))
	}
	runs := (records-1)/n + 1
	return (records-1)/runs + 1, nil // so that the last run is full, too
}

// costOf returns the floating-point operations of a run.
func costOf(ctx context.Context, g *graph.Graph) (uint64, error) {
	return interrupt.Run(ctx, func() (uint64, error) {
		typed, err := op.Infer(g, lower.FP32)
		if err != nil {
			return 0, err
		}
		p, err := typed.Function()
		if err != nil {
			return 0, err
		}
		return p.Cost().FLOPs, nil
	})
}

// write makes the files of a task. It replaces none.
func (t *task) write(ctx context.Context, g *graph.Graph, problem string, told prepared, files map[string]*tensor.Tensor) (err error) {
	if told.FLOPs, err = costOf(ctx, g); err != nil {
		return err
	}
	if !job.DefaultParams.Replays(told.FLOPs, dispute.DefaultRules) {
		return fmt.Errorf("a run takes %.3g FLOP, more than can be disputed in time: take less data, or a smaller model or batch", float64(told.FLOPs))
	}
	model, err := interrupt.Run(ctx, func() ([]byte, error) { return onnx.Write(g) })
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	told.Task, told.Model, told.Bytes = filepath.Join(t.dir, "task.yaml"), filepath.Join(t.dir, "model.onnx"), len(model)
	if err := replace.Create(told.Model, model); err != nil {
		return err
	}
	for name, x := range files {
		var b bytes.Buffer
		if err := npy.Write(&b, x); err != nil {
			return err
		}
		if err := replace.Create(filepath.Join(t.dir, name), b.Bytes()); err != nil {
			return err
		}
	}
	if err := replace.Create(told.Task, []byte(fmt.Sprintf(taskFile, g.Name, t.project, problem))); err != nil {
		return err
	}
	return t.e.show(told, func(w io.Writer) {
		fmt.Fprintf(w, "%s has %s, %d a run; a run takes %.3g FLOP, and the model %d bytes\nEdit it, then\n  tally order validate %s --home HOME\n  tally drill publish %[1]s --home HOME\nwhere HOME is the partner's: tally-devnet/consumer on a devnet\n", told.Task, numbers.Several(told.Records, "record"), told.Batch, float64(told.FLOPs), told.Bytes, told.Task)
	})
}

// taskFile is an order file for a task, of a name, a project and what its records are.
const taskFile = `kind: BatchOrder
name: %s
project: %d
problem:
  model: model.onnx
%s  profile: fp32
conditions:
  maxPrice: 5tally             # locked now; what is not spent comes back
  providers: 2                 # at least
  assurance: {replicas: 2}     # each unit is computed by two, and compared
  custodians: 1
`
