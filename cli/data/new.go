package data

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/format/images"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/sharing"
)

// maxNew bounds the parameters of a model that is written here: it is made in
// memory.
const maxNew = 1 << 28

// ExampleOrder is an order file with everything that a person may want to choose.
//
//go:embed order.yaml
var ExampleOrder string

// ofText is what tally order new tells of a text.
type ofText struct {
	Order      string `json:"order_file"`
	Model      string `json:"model"`
	Parameters int    `json:"parameters"`
	Vocabulary int    `json:"vocabulary"`
}

// NewOrder returns tally order new. What it fetches it tells on progress.
func NewOrder(show Show, progress io.Writer) *cobra.Command {
	g := zoo.NewGPT(0, 1)
	var body string
	var of Sketch
	batch := consume.Default().Problem.Batch
	cmd := &cobra.Command{
		Use: "new DIR", Short: "Begin an order: a small model for a text, a table or images, and an order file to edit",
		Long: `Writes an order file, and beside it an ONNX model and a copy of the data. Of a text
the model is a character-level GPT; of a table or a folder of images it is one that
fits them and the column to predict, and the file says why; of chats, or texts, in the
data it is a GPT over the tokens of --tokenizer. A column that numbers the records from
0 or 1 on, or a text that never recurs, is ignored unless --keep names it. Any other ONNX
model in the supported operators does as well.`,
		Example: "  tally order new shakespeare --text shakespeare.txt\n  tally order new flowers --data flowers.csv --target species\n  tally train flowers/order.yaml --wait --home tally-devnet/consumer",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("DIR is missing: the order and its model are written there")
			} else if len(args) > 1 {
				return fmt.Errorf("%q is too much: want one DIR", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if of.Source != "" {
				of.Seed = g.Seed
				return proposed(cmd.Context(), show, progress, args[0], of)
			}
			r, err := beginOrder(cmd.Context(), args[0], body, g, batch)
			if err != nil {
				return err
			}
			return show(r, func(w io.Writer) {
				fmt.Fprintf(w, "%s has %d parameters for %d characters\nEdit %s, then\n  tally order validate %s --home HOME\nwhere HOME is the consumer's: tally-devnet/consumer on a devnet\n", r.Model, r.Parameters, r.Vocabulary, r.Order, r.Order)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&body, "text", "", "UTF-8 text to train on")
	f.StringVar(&of.Source, "data", "", "in its place: a table, chats in JSONL, or a folder of images; https://HOST/FILE, hf:OWNER/NAME, s3://BUCKET/KEY, ipfs:CID and tally:CID are fetched")
	f.StringVar(&of.Target, "target", "", "column of the data to predict; or that holds texts or chats")
	f.StringArrayVar(&of.Ignore, "ignore", nil, "column of the data that nothing reads, once for each")
	f.StringArrayVar(&of.Keep, "keep", nil, "column to learn from though it looks like an id, once for each")
	f.Var(numbers.Within(&of.Size[0], 0, images.MaxExtent), "height", "pixels to which images are resized (default: as they are)")
	f.Var(numbers.Within(&of.Size[1], 0, images.MaxExtent), "image-width", "pixels to which images are resized")
	f.StringVar(&of.Text.Tokenizer, "tokenizer", "", "of texts in the data: a tokenizer.json, or a model's folder (default: bytes)")
	f.Var(numbers.Within(&g.Context, 1, zoo.MaxExtent), "context", "characters that the model reads at once")
	f.Var(numbers.Within(&g.Width, 1, zoo.MaxExtent), "width", "width of the model")
	f.Var(numbers.Within(&g.Layers, 0, zoo.MaxLayers), "layers", "layers of the model")
	f.Var(numbers.Within(&g.Heads, 1, zoo.MaxExtent), "heads", "attention heads")
	f.Var(numbers.Within(&batch, 1, zoo.MaxExtent), "batch", "records of a training step")
	f.Var(numbers.Within(&g.Seed, 0, math.MaxUint64), "seed", "of the initial weights")
	for _, ofText := range []string{"text", "context", "width", "layers", "heads", "batch"} {
		cmd.MarkFlagsMutuallyExclusive("data", ofText)
		cmd.MarkFlagsMutuallyExclusive("target", ofText)
		cmd.MarkFlagsMutuallyExclusive("ignore", ofText)
		cmd.MarkFlagsMutuallyExclusive("keep", ofText)
	}
	return cmd
}

// beginOrder writes the files of a new order. It replaces none.
func beginOrder(ctx context.Context, dir, textFile string, g zoo.GPT, batch int) (*ofText, error) {
	if textFile == "" {
		return nil, errors.New("--text or --data is missing: name a text file to train on, or a table, chats or a folder of images")
	}
	file, _, err := bounded.Open(textFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := text.Read(file, consume.MaxText)
	if err != nil {
		return nil, fmt.Errorf("text %s: %w", textFile, err)
	}
	if g.Vocab, err = text.Vocabulary(body); err != nil {
		return nil, err
	}
	if err := g.Check(); err != nil {
		return nil, err
	}
	if n := g.Parameters(); n > maxNew {
		return nil, fmt.Errorf("the model would have %d parameters, limit %d: give a smaller --width or fewer --layers", n, maxNew)
	}
	b, err := interrupt.Run(ctx, func() ([]byte, error) {
		model, err := g.Graph(batch)
		if err != nil {
			return nil, err
		}
		return onnx.Write(model)
	})
	if err != nil {
		return nil, err
	}
	r := &ofText{Order: filepath.Join(dir, "order.yaml"), Model: filepath.Join(dir, "model.onnx"), Parameters: g.Parameters(), Vocabulary: g.Vocab}
	order := strings.NewReplacer("my-model", filepath.Base(dir), "book.txt", "text.txt", "batch: 8", fmt.Sprintf("batch: %d", batch)).Replace(ExampleOrder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return r, errors.Join(replace.Create(r.Model, b), replace.Create(filepath.Join(dir, "text.txt"), []byte(body)), replace.Create(r.Order, []byte(order+"\n")))
}

// proposed begins an order for data.
func proposed(ctx context.Context, show Show, progress io.Writer, dir string, of Sketch) error {
	p, err := Begin(ctx, dir, of, Progress(progress))
	if err != nil {
		return err
	}
	return show(p, func(w io.Writer) {
		for _, reason := range p.Reasons {
			fmt.Fprintln(w, reason)
		}
		allow := ""
		switch {
		case p.Outside:
			allow = " --allow " + filepath.Dir(filepath.Clean(of.Source))
		case strings.HasPrefix(of.Source, sharing.Scheme): // whose peers may be of the user's own network
			allow = " --allow '" + of.Source + "'"
		}
		fmt.Fprintf(w, "%s has %d parameters\nEdit %s, then\n  tally order validate %s%s --home HOME\nwhere HOME is the consumer's: tally-devnet/consumer on a devnet\n", p.Model, p.Parameters, p.File, p.File, allow)
	})
}
