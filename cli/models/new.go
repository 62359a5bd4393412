package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/summary"
	"github.com/tally-network/tally/model/zoo"
)

// Made is what tally model new tells.
type Made struct {
	Name       string           `json:"name"`
	File       string           `json:"file"`
	Bytes      int              `json:"bytes"`
	Seed       *uint64          `json:"seed,omitempty"` // of new weights
	Parameters int              `json:"parameters"`
	Inputs     []summary.Tensor `json:"inputs"`
	Outputs    []summary.Tensor `json:"outputs"`
}

// New is tally model new, with a verb for each architecture.
func New(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "new ARCHITECTURE", Short: "Write a model to train: gpt, mlp, lenet, resnet, vit, lstm or unet",
		Long: `Writes a model that can be trained at once, as an ONNX file. Its initial weights follow from a
seed, bit for bit, on every machine. Each architecture has settings: tally model new gpt --help
lists those of gpt, and tally model new --json all.`,
		Example:     "  tally model new resnet --out resnet.onnx\n  tally model new mlp --set inputs=13,classes=0,outputs=1\n  tally model new gpt --help\n  tally model new --json",
		Annotations: map[string]string{e.AlsoRuns: "yes"},
		Args:        known,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.Show(zoo.Architectures, func(io.Writer) { _ = cmd.Help() })
		},
	}
	cmd.SetFlagErrorFunc(func(of *cobra.Command, err error) error { // --out of what is no architecture is no flag of the group
		if of == cmd {
			err = cmp.Or(known(cmd, cmd.Flags().Args()), err)
		}
		return err
	})
	for _, a := range zoo.Architectures {
		cmd.AddCommand(e.newOf(a))
	}
	return cmd
}

// known refuses what is no architecture.
func known(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, err := zoo.Find(args[0])
	return err
}

// newOf is tally model new of an architecture.
func (e *Env) newOf(a *zoo.Architecture) *cobra.Command {
	var set []string
	out, seed := "model.onnx", uint64(1)
	cmd := &cobra.Command{
		Use: a.Name, Short: a.About,
		Long:    fmt.Sprintf("%s – %s.\nThe ONNX file that is written can be trained at once. Settings:\n\n%s", a.Name, a.About, settings(a)),
		Example: fmt.Sprintf("  tally model new %s\n  tally model new %s --set batch=16 --seed 7 --out %s.onnx", a.Name, a.Name, a.Name),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := zoo.Parse(set...)
			if err != nil {
				return err
			}
			r, err := write(cmd.Context(), a, chosen, seed, out)
			if err != nil {
				return err
			}
			return e.Show(r, r.tell)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&set, "set", nil, "settings, as name=value with commas between")
	f.Var(numbers.Within(&seed, 0, math.MaxUint64), "seed", "of the initial weights")
	f.StringVar(&out, "out", out, "file to write, which is not there yet")
	return cmd
}

// settings lists the settings of an architecture for people.
func settings(a *zoo.Architecture) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  SETTING\tDEFAULT\tRANGE\tMEANS")
	for i := range a.Settings {
		s := &a.Settings[i]
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", s.Name, s.Default, s.Range(), s.About)
	}
	t.Flush()
	return strings.TrimRight(b.String(), "\n")
}

// write makes a model and its file. It replaces none.
func write(ctx context.Context, a *zoo.Architecture, chosen map[string]string, seed uint64, name string) (*Made, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, taken(name, "--out")
	}
	r := &Made{Name: a.Name, File: name, Seed: &seed}
	b, err := interrupt.Run(ctx, func() ([]byte, error) {
		m, err := a.New(chosen, seed)
		if err != nil {
			return nil, err
		}
		r.Parameters, r.Inputs, r.Outputs = m.Parameters, summary.Tensors(m.Graph.Inputs), summary.Tensors(m.Graph.Outputs)
		return onnx.Write(m.Graph)
	})
	if err != nil {
		return nil, err
	}
	r.Bytes = len(b)
	return r, create(name, b, "--out")
}

func taken(name, flag string) error {
	return fmt.Errorf("%s is there already: remove it, or name another file with %s", name, flag)
}

func (r *Made) tell(w io.Writer) {
	fmt.Fprintf(w, "%s: %s with %s in %.4g MB\n", r.File, r.Name, numbers.Several(r.Parameters, "parameter"), float64(r.Bytes)/1e6)
	for _, t := range r.Inputs {
		fmt.Fprintf(w, "  in   %v\n", t)
	}
	for _, t := range r.Outputs {
		fmt.Fprintf(w, "  out  %v\n", t)
	}
	fmt.Fprintf(w, "Look at it: tally model show %s\n", r.File)
}

// create writes a file that is not there yet. A flag names it.
func create(name string, b []byte, flag string) error {
	err := replace.Create(name, b)
	if errors.Is(err, fs.ErrExist) {
		return taken(name, flag)
	}
	return err
}
