package models

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/summary"
)

// Export is tally model export.
func Export(e *Env) *cobra.Command {
	out, batch, length := "model.onnx", uint64(4), uint64(256)
	cmd := &cobra.Command{
		Use: "export FOLDER", Short: "Write a language model of Hugging Face's layout as an ONNX file to train",
		Long: `Writes the model of a folder as an ONNX file that an order trains: it maps tokens [batch length] to
logits. Its initializers are the weights, named as Llama's are, in float32. So the model.safetensors
of the trained model, beside the folder's JSON files, is a folder again. An ONNX file has at most
2 GiB, which are half a billion weights.`,
		Example: "  tally model export smollm2 --batch 4 --length 256 --out smollm2.onnx",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := export(cmd.Context(), args[0], int(batch), int(length), out)
			if err != nil {
				return err
			}
			return e.Show(r, func(w io.Writer) {
				r.tell(w)
				fmt.Fprintf(w, "Train it: name it as problem.model, and %s as data.text.tokenizer\n", args[0])
			})
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&batch, 1, math.MaxInt32), "batch", "texts of a step, which is the order's batch")
	f.Var(numbers.Within(&length, 1, math.MaxInt32), "length", "tokens of a text")
	f.StringVar(&out, "out", out, "file to write, which is not there yet")
	return cmd
}

// export writes a folder's model to a file. It replaces none.
func export(ctx context.Context, dir string, batch, length int, name string) (*Made, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, taken(name, "--out")
	}
	r := &Made{File: name}
	b, err := interrupt.Run(ctx, func() ([]byte, error) {
		m, err := lm.Open(dir)
		if err != nil {
			return nil, err
		}
		if n := int64(m.Parameters()); 4*n > onnx.MaxBytes {
			return nil, fmt.Errorf("%s has %d weights, but an ONNX file has room for %d: take a smaller model", dir, n, int64(onnx.MaxBytes/4))
		}
		g, err := m.Training(batch, length)
		if err != nil {
			return nil, err
		}
		r.Name, r.Parameters, r.Inputs, r.Outputs = m.Family, m.Parameters(), summary.Tensors(g.Inputs), summary.Tensors(g.Outputs)
		return onnx.Write(g)
	})
	if err != nil {
		return nil, err
	}
	r.Bytes = len(b)
	return r, create(name, b, "--out")
}
