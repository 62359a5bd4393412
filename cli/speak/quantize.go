package speak

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/convert"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/quantize"
)

// Quantised is what tally model quantize --json prints.
type Quantised struct {
	File string `json:"file"`
	Type string `json:"type"`
	Base string `json:"base"`
	Same bool   `json:"same"` // the file is what the base gives
	quantize.Sizes
}

// quantize is tally model quantize.
func (e *Env) quantize() *cobra.Command {
	var to, out, base string
	cmd := &cobra.Command{
		Use: "quantize MODEL", Short: "Make a model smaller, so that anybody derives the same file again",
		Long: `Writes a GGUF file in which each matrix of MODEL, of F32, F16 or BF16, is blocks of small integers.
MODEL is a GGUF file, or a folder as Hugging Face has them. The file follows from MODEL and type
alone, bit for bit, on every machine: so others can check that a small model is what it is said to
be. llama.cpp reads it, and so do tally run and tally serve. Types: q8_0, q5_1, q5_0, q4_1, q4_0, of
8.5 to 4.5 bits a weight. Of a folder, what no GGUF file can say is refused.

With --check nothing is written: it says whether MODEL, a GGUF file, is just what BASE gives, and
fails otherwise.`,
		Example: "  tally model quantize smollm2-f16.gguf --type q8_0\n  tally model quantize smollm2-f16.gguf --type q4_0 --out small.gguf --json\n  tally model quantize small.gguf --check smollm2-f16.gguf\n  tally model quantize Qwen2.5-0.5B-Instruct --type q8_0",
		Args:    cobra.MatchAll(named("MODEL"), cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := locate(args[0])
			if err != nil {
				return err
			}
			if base != "" {
				return e.derived(path, base)
			}
			return e.writeQuantised(path, to, out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&to, "type", "q8_0", "what weights become: q8_0, q5_1, q5_0, q4_1 or q4_0")
	f.StringVar(&out, "out", "", "file to write (default MODEL's name with the type, here)")
	f.StringVar(&base, "check", "", "the file or folder that MODEL was made of: say whether it was")
	cmd.MarkFlagsMutuallyExclusive("check", "type")
	cmd.MarkFlagsMutuallyExclusive("check", "out")
	return cmd
}

// openBase opens a GGUF file, or makes one of a folder, until close.
func openBase(path string) (f *os.File, size int64, close func() error, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		f, size, err := bounded.Open(path)
		if err != nil {
			return nil, 0, nil, err
		}
		return f, size, f.Close, nil
	}
	if f, err = os.CreateTemp("", "tally-*.gguf"); err != nil {
		return nil, 0, nil, err
	}
	close = func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	if err := convert.File(f, path); err != nil {
		return nil, 0, nil, errors.Join(fmt.Errorf("%s: %w", path, err), close())
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, nil, errors.Join(err, close())
	}
	return f, info.Size(), close, nil
}

func (e *Env) writeQuantised(path, name, out string) (err error) {
	to, err := quant.Parse(name)
	if err != nil {
		return err
	}
	base, size, done, err := openBase(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if out == "" {
		out = files.NameOf(path) + "-" + strings.ToLower(to.String()) + ".gguf"
	}
	f, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%w (name another by --out)", err)
	}
	s, err := quantize.Write(f, base, size, to)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(out)) // nobody takes a part for the whole
	}
	return e.Show(Quantised{out, to.String(), path, true, s}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d weights as %v, %d as they were; %.4g MB of %.4g\n", out, s.Quantised, to, s.Kept, float64(s.Bytes)/1e6, float64(size)/1e6)
	})
}

// derived says whether a file is what a base gives.
func (e *Env) derived(path, from string) (err error) {
	file, size, err := bounded.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if from, err = locate(from); err != nil {
		return err
	}
	base, baseSize, done, err := openBase(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	to, s, err := quantize.Compare(file, size, base, baseSize)
	if err != nil && (!*e.JSON || !errors.Is(err, quantize.ErrDiffers)) {
		return fmt.Errorf("%s, of %s: %w", path, from, err)
	}
	return errors.Join(err, e.Show(Quantised{path, to.String(), from, err == nil, s}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is %s as %v, to the last bit\n", path, from, to)
	}))
}
