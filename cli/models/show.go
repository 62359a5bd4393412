package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/lines"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/diagram"
	"github.com/tally-network/tally/model/summary"
)

// Shown is what tally model show tells of an ONNX file.
type Shown struct {
	File     string            `json:"file"`
	Bytes    int64             `json:"file_bytes"`
	Producer string            `json:"producer,omitempty"`
	License  string            `json:"license,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Dims     map[string]int    `json:"dimensions,omitempty"` // symbolic ones, as they are counted here
	SVG      string            `json:"svg,omitempty"`
	*summary.Summary
}

// Show is how an ONNX file is shown. Its zero value is the default.
type Show struct {
	svg  string
	dims []string
}

// Flags adds the flags that say how.
func (s *Show) Flags(f *pflag.FlagSet) {
	f.StringVar(&s.svg, "svg", "", "of an ONNX file: draw the graph into this file")
	f.StringArrayVar(&s.dims, "dim", nil, "of an ONNX file: the size of a symbolic dimension, as batch=8 (default 1)")
}

// Any reports whether some flag is set, which other models do not take.
func (s *Show) Any() bool { return s.svg != "" || len(s.dims) > 0 }

// Takes reports whether a file is shown by this package.
func Takes(path string) bool { return strings.EqualFold(filepath.Ext(path), ".onnx") }

// Run reads a file, draws it if that is asked for, and says what it is.
func (s *Show) Run(ctx context.Context, path string) (*Shown, error) {
	dims := map[string]int{}
	for _, text := range s.dims {
		name, number, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || name == "" {
			return nil, fmt.Errorf("--dim %s: give a name and a number above zero, as batch=8", text)
		}
		dims[name] = n
	}
	return interrupt.Run(ctx, func() (*Shown, error) {
		r, g, err := read(path, dims)
		if err != nil || s.svg == "" {
			return r, err
		}
		picture, err := diagram.Draw(g, diagram.Options{Title: filepath.Base(path), Note: r.headline(), Shape: r.Shape})
		if err != nil {
			return nil, err
		}
		r.SVG = s.svg
		return r, create(s.svg, picture, "--svg")
	})
}

// read reads a file. Symbolic dimensions that have no size count as 1.
func read(path string, dims map[string]int) (*Shown, *graph.Graph, error) {
	file, size, err := bounded.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	told, err := onnx.Inspect(file, size)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	o := onnx.Options{Files: bounded.Beside(path), Dims: dims}
	g, err := onnx.Read(file, size, o)
	for open := new(onnx.SymbolError); errors.As(err, &open); open = new(onnx.SymbolError) {
		before := len(dims)
		for _, name := range open.Symbols {
			if dims[name] == 0 {
				dims[name] = 1
			}
		}
		if len(dims) == before {
			break
		}
		g, err = onnx.Read(file, size, o)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &Shown{File: path, Bytes: size, Producer: told.Producer, Dims: dims, Summary: summary.Of(g)}
	for _, e := range told.Metadata {
		if r.Metadata == nil {
			r.Metadata = map[string]string{}
		}
		r.Metadata[e.Key] = e.Value
		if key := strings.ToLower(e.Key); key == "license" || key == "licence" {
			r.License = e.Value
		}
	}
	return r, g, nil
}

// headline is a model in one line.
func (r *Shown) headline() string {
	text := fmt.Sprintf("%s, %s", numbers.Several(r.Parameters, "parameter"), numbers.Several(r.Nodes, "node"))
	if r.Pass != nil {
		text += fmt.Sprintf(", %s MFLOP a pass", numbers.Text(float64(r.Pass.FLOPs)/1e6))
	}
	return text
}

// mostLines bounds the parameters that people are shown; --json has all.
const mostLines = 60

// Tell writes r for people. Names are those of strangers.
func (r *Shown) Tell(out io.Writer) {
	var text strings.Builder
	defer func() { _, _ = io.WriteString(out, lines.Printable(text.String())) }()
	fmt.Fprintf(&text, "%s: %s\n", r.File, r.headline())
	if r.License != "" {
		fmt.Fprintf(&text, "  licence %s\n", r.License)
	}
	if r.Producer != "" {
		fmt.Fprintf(&text, "  written by %s\n", r.Producer)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Dims)) {
		fmt.Fprintf(&text, "  with %s=%d, which --dim sets\n", name, r.Dims[name])
	}
	for _, t := range r.Inputs {
		fmt.Fprintf(&text, "  in   %v\n", t)
	}
	for _, t := range r.Outputs {
		fmt.Fprintf(&text, "  out  %v\n", t)
	}
	fmt.Fprintf(&text, "  parameters  %.4g MB", float64(r.ParameterBytes)/1e6)
	if r.Statistics > 0 {
		fmt.Fprintf(&text, "; beside them %s of running statistics", numbers.Several(r.Statistics, "number"))
	}
	if p := r.Pass; p != nil {
		fmt.Fprintf(&text, "\n  a pass      %s MFLOP; %.4g MB of values, %.4g MB moved if nothing is fused\n",
			numbers.Text(float64(p.FLOPs)/1e6), float64(p.Memory)/1e6, float64(p.Bytes)/1e6)
	} else {
		fmt.Fprintf(&text, "\n  a pass      not known: %s\n", r.Unknown)
	}
	r.tables(&text)
	if r.SVG != "" {
		fmt.Fprintf(&text, "\nThe graph is drawn in %s: open it with a browser\n", r.SVG)
	}
}

// tables lists operators and parameters.
func (r *Shown) tables(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nNODES\tMFLOP\t  OPERATOR")
	for _, o := range r.Operators {
		fmt.Fprintf(t, "%d\t%s\t  %s\n", o.Nodes, numbers.Text(float64(o.FLOPs)/1e6), o.Name)
	}
	fmt.Fprintln(t, "\nNUMBERS\tTYPE\t  PARAMETER")
	for i, p := range r.Tensors {
		if i == mostLines {
			fmt.Fprintf(t, "\t\t  and %d more, which --json tells\n", len(r.Tensors)-i)
			break
		}
		fmt.Fprintf(t, "%d\t%s\t  %s %v\n", p.Shape.Elements(), p.Type, p.Name, p.Shape)
	}
	_ = t.Flush()
}
