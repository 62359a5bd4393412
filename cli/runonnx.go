package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/weights"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model"
	"github.com/tally-network/tally/node/home"
)

func (e *env) runONNX() *cobra.Command {
	r := onnxRun{e: e, memory: defaultMemoryMB}
	cmd := &cobra.Command{
		Use: "run-onnx MODEL", GroupID: "other",
		Short: "Run an ONNX model on this machine",
		Long: `Runs an ONNX model for inputs in NumPy's .npy files, and writes its outputs to
such files, NAME.npy for each. Types and shapes of the inputs must be those of the
model; symbolic extents follow from them. External data may lie in the model's
directory. The same inputs give the same bits on every machine: each output is
shown with the root by which the network knows it.

With --explain it runs the model twice, and shows how the second run was computed:
for each group of nodes that runs as one its time, its speed, its kernel with
blocking and packing, and what is fused with it. --trace writes the same for
https://ui.perfetto.dev and other viewers of Chrome's trace events. "8 blocks, 9 worth
a thread" means that no thread takes fewer than nine: one runs them all.

Weights are packed once, into the form in which kernels read them. With --packed
each also becomes a file in a directory, which later runs and other processes map.
It takes no more than --memory-mb allows; the files used longest ago go first.
Who may write to that directory can change results: let nobody else.`,
		Example: `  tally run-onnx mnist.onnx --input Input3=digit.npy
  tally run-onnx encoder.onnx --input ids=ids.npy --input mask=mask.npy --out results --json
  tally run-onnx resnet.onnx --input image=cat.npy --explain --trace resnet.json`,
		Args: arguments("run-onnx MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.model = args[0]
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&r.inputs, "input", nil, "an input and the .npy file that holds it, as NAME=FILE; once for each input")
	f.StringVar(&r.out, "out", ".", "directory for the outputs, made if it is missing")
	f.StringVar(&r.executor, "executor", model.Executors[0], "what computes: cpu, or reference, which is slow and defines the result")
	f.TextVar(&r.profile, "profile", lower.FP32, "arithmetic of matrix products: fp32, mixed (factors as bfloat16) or int8")
	f.BoolVar(&r.explain, "explain", false, "show what ran, by which kernel, and how long it took")
	f.StringVar(&r.trace, "trace", "", "file for a trace of the run, as trace events in JSON")
	f.StringVar(&r.packed, "packed", "", "directory for packed weights, which later runs map instead of packing them again")
	f.Var(numbers.Within(&r.memory, 1, maxMemoryMB), "memory-mb", "refuse models that need more memory than this")
	return cmd
}

// What one run of a program may take, in MiB.
const (
	defaultMemoryMB = 8192
	maxMemoryMB     = home.MaxMemoryGB << 10
)

type onnxRun struct {
	e        *env
	model    string
	inputs   []string
	out      string
	executor string
	profile  lower.Profile
	memory   uint64
	explain  bool
	trace    string
	packed   string
}

// ranModel is what tally run-onnx tells.
type ranModel struct {
	Model      string        `json:"model"`
	Executor   string        `json:"executor"`
	Profile    lower.Profile `json:"profile"`
	Inputs     []ranTensor   `json:"inputs"`
	Outputs    []ranTensor   `json:"outputs"`
	Operators  []string      `json:"operators"`
	Primitives int           `json:"primitives"`
	FLOPs      uint64        `json:"flops"`
	Seconds    float64       `json:"seconds"`
	Tasks      []engine.Task `json:"tasks,omitempty"` // of --explain
	Trace      string        `json:"trace,omitempty"` // the file of it
}

type ranTensor struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
	File  string `json:"file"`
	Fixed bool   `json:"fixed,omitempty"` // shapes follow from its value
	Root  string `json:"root,omitempty"`
}

func (r *onnxRun) run(ctx context.Context) error {
	store, err := weights.New(weights.Options{Bytes: int(r.memory) << 20, Dir: r.packed, DirBytes: int(r.memory) << 20})
	if err != nil {
		return err
	}
	exec, err := model.Executor(r.executor, cpu.Options{Weights: store})
	if err != nil {
		return err
	}
	file, size, err := bounded.Open(r.model)
	if err != nil {
		return err
	}
	defer file.Close()
	summary, err := onnx.Inspect(file, size)
	if err != nil {
		return err
	}
	in, files, err := r.read(summary.Inputs)
	if err != nil {
		return err
	}
	m, err := interrupt.Run(ctx, func() (*model.Model, error) {
		return model.Load(file, size, onnx.Options{Files: bounded.Beside(r.model)}, r.profile, in)
	})
	if left := len(summary.Inputs) - len(in); left > 0 && errors.As(err, new(*onnx.SymbolError)) {
		return fmt.Errorf("%d of the model's inputs have no value, and their shapes are open: name a file for each of %q, as in --input %s=FILE.npy", left, summary.Inputs, summary.Inputs[0])
	}
	if err != nil {
		return err
	}
	begun := time.Now()
	out, tasks, err := r.compute(ctx, m, engine.Bounded(exec, r.memory<<20), in)
	if err != nil {
		return err
	}
	told := ranModel{
		Model: r.model, Executor: exec.Name(), Profile: r.profile, Inputs: []ranTensor{}, Outputs: []ranTensor{}, Operators: summary.Operators,
		Primitives: len(m.Program.Nodes), FLOPs: m.Program.Cost().FLOPs, Seconds: float64(time.Since(begun).Milliseconds()) / 1000, Tasks: tasks,
		Trace: r.trace,
	}
	for _, name := range summary.Inputs {
		t := in[name]
		read := slices.ContainsFunc(m.Inputs, func(v graph.Value) bool { return v.Name == name })
		told.Inputs = append(told.Inputs, ranTensor{Name: name, Type: t.Type.String(), Shape: t.Shape, File: files[name], Fixed: !read})
	}
	if told.Outputs, err = r.write(m, out); err != nil {
		return err
	}
	return r.e.show(told, func(w io.Writer) { told.tell(w) })
}

// compute runs the model, and explains it where that is wanted.
func (r *onnxRun) compute(ctx context.Context, m *model.Model, exec engine.Executor, in model.Values) (model.Values, []engine.Task, error) {
	p, err := m.Prepare(exec)
	if err != nil {
		return nil, nil, err
	}
	if !r.explain && r.trace == "" {
		out, err := p.Run(ctx, in)
		return out, nil, err
	}
	out, tasks, err := p.Explain(ctx, in)
	if err == nil && r.trace != "" {
		err = writeTrace(r.trace, tasks)
	}
	if !r.explain {
		tasks = nil
	}
	return out, tasks, err
}

// read reads the files that --input names.
func (r *onnxRun) read(names []string) (model.Values, map[string]string, error) {
	in, files := model.Values{}, map[string]string{}
	for _, arg := range r.inputs {
		// Names may have an equals sign; the longest that the model knows counts.
		name, path := "", ""
		for _, known := range names {
			if rest, ok := strings.CutPrefix(arg, known+"="); ok && len(known) >= len(name) {
				name, path = known, rest
			}
		}
		switch {
		case path == "" && !strings.Contains(arg, "="):
			return nil, nil, fmt.Errorf("--input %q is no NAME=FILE", arg)
		case path == "":
			return nil, nil, fmt.Errorf("--input %q names no input of the model: it has %q", arg, names)
		case in[name] != nil:
			return nil, nil, fmt.Errorf("input %q is given twice", name)
		}
		t, err := readNPY(path)
		if err != nil {
			return nil, nil, fmt.Errorf("input %q: %w", name, err)
		}
		in[name], files[name] = t, path
	}
	return in, files, nil
}

func readNPY(path string) (*tensor.Tensor, error) {
	f, size, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := npy.Read(f, size, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// write writes the outputs. What a model names them decides about files in the
// directory alone.
func (r *onnxRun) write(m *model.Model, out model.Values) (told []ranTensor, err error) {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(r.out)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var names []string
	for _, v := range m.Outputs {
		names = append(names, v.Name)
	}
	files := npy.FileNames(names)
	for i, v := range m.Outputs {
		f, err := dir.Create(files[i])
		if err != nil {
			return nil, err
		}
		if err := errors.Join(npy.Write(f, out[v.Name]), f.Close()); err != nil {
			return nil, err
		}
		t := out[v.Name]
		told = append(told, ranTensor{Name: v.Name, Type: t.Type.String(), Shape: t.Shape, File: filepath.Join(r.out, files[i]), Root: t.Root().String()})
	}
	return told, nil
}

func (r *ranModel) tell(w io.Writer) {
	fmt.Fprintf(w, "%s ran in %.3f s: %s, %d FLOP, profile %v, executor %s\n", r.Model, r.Seconds, numbers.Several(r.Primitives, "primitive"), r.FLOPs, r.Profile, r.Executor)
	for _, t := range r.Inputs {
		note := ""
		if t.Fixed {
			note = ", fixes shapes"
		}
		fmt.Fprintf(w, "  in   %s %s%v%s\n", t.Name, t.Type, t.Shape, note)
	}
	for _, t := range r.Outputs {
		fmt.Fprintf(w, "  out  %s %s%v, root %s, in %s\n", t.Name, t.Type, t.Shape, t.Root, t.File)
	}
	if len(r.Tasks) > 0 {
		explain(w, r.Tasks)
	}
	if r.Trace != "" {
		fmt.Fprintf(w, "\nThe trace is in %s: open it at https://ui.perfetto.dev\n", r.Trace)
	}
}
