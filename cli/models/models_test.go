package models_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/models"
)

// tally runs tally model new and show as the command line does.
func tally(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	asJSON := false
	e := &models.Env{AlsoRuns: "runs", Show: func(v any, text func(io.Writer)) error {
		if asJSON {
			return json.NewEncoder(&out).Encode(v)
		}
		text(&out)
		return nil
	}}
	root := &cobra.Command{Use: "tally", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&out)
	root.PersistentFlags().BoolVar(&asJSON, "json", false, "")
	var show models.Show
	shown := &cobra.Command{Use: "show", RunE: func(cmd *cobra.Command, args []string) error {
		r, err := show.Run(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return e.Show(r, r.Tell)
	}}
	show.Flags(shown.Flags())
	root.AddCommand(models.New(e), models.Export(e), shown)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// A folder's model becomes a file to train, whose initializers are the weights by their names.
func TestExport(t *testing.T) {
	folder, file := filepath.Join("..", "..", "model", "lm", "testdata", "llama"), filepath.Join(t.TempDir(), "m.onnx")
	got, err := tally(t, "export", folder, "--batch", "2", "--length", "8", "--out", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var m models.Made
	if err := json.Unmarshal([]byte(got), &m); err != nil || m.Parameters == 0 || m.Inputs[0].String() != "tokens int32[2 8]" {
		t.Errorf("%+v, %v", m, err)
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) != m.Bytes || !strings.Contains(string(b), "model.layers.0.self_attn.q_proj.weight") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for want, args := range map[string][]string{
		"is there already": {folder, "--out", file}, "config.json": {t.TempDir()}, "with a context of": {folder, "--length", "1000000", "--out", file + "2"}, "between 1 and": {folder, "--batch", "0"},
	} {
		if _, err := tally(t, append([]string{"export"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

func TestNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.onnx")
	got, err := tally(t, "new", "mlp", "--set", "inputs=3,width=4", "--set", "batch=2", "--out", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var m models.Made
	if err := json.Unmarshal([]byte(got), &m); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || m.Name != "mlp" || m.Parameters != 3*4+4+4*4+4+4*10+10 || m.Bytes != len(b) || m.Inputs[0].String() != "features float32[2 3]" || m.Outputs[0].String() != "logits float32[2 10]" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := tally(t, "new", "mlp", "--out", file); err == nil || !strings.Contains(err.Error(), "is there already: remove it, or name another file with --out") {
		t.Errorf("%v: a file is replaced", err)
	}
	other := filepath.Join(filepath.Dir(file), "other.onnx")
	if got, err := tally(t, "new", "mlp", "--set", "inputs=3,width=4,batch=2", "--seed", "1", "--out", other); err != nil || !strings.Contains(got, "with 86 parameters") {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := os.ReadFile(other); err != nil || !bytes.Equal(again, b) {
		t.Errorf("the same settings give another file, %v", err)
	}
	if got, err := tally(t, "new", "--json"); err != nil || !strings.HasPrefix(got, `[{"name":"gpt","about":`) {
		t.Errorf("%.80q, %v", got, err)
	}
	if got, err := tally(t, "new", "unet", "--help"); err != nil || !strings.Contains(got, "halvings; 2 to this power divides the size") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		`no architecture "alexnet": there are gpt`:          {"alexnet", "--set", "width=3"},
		"width=0: give a whole number from 1 to 65536":      {"mlp", "--set", "width=0"},
		`"width" is no name=value: write width=256`:         {"mlp", "--set", "width"},
		"batch is given twice: give it once":                {"mlp", "--set", "batch=2", "--set", "batch=3"},
		`unknown command "x"`:                               {"mlp", "x", "--seed", "1"},
		"no such file or directory":                         {"mlp", "--out", filepath.Join(dir, "nowhere", "m.onnx")},
		"would have 4295557120 parameters, limit 268435456": {"mlp", "--set", "inputs=65535,width=65535,layers=1"},
	} {
		if args[len(args)-2] != "--out" {
			args = append(args, "--out", filepath.Join(dir, "m.onnx"))
		}
		if _, err := tally(t, append([]string{"new"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestShow(t *testing.T) {
	dir := t.TempDir()
	file, picture := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "m.svg")
	if _, err := tally(t, "new", "lenet", "--set", "batch=2", "--out", file); err != nil {
		t.Fatal(err)
	}
	got, err := tally(t, "show", file, "--svg", picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"m.onnx: 61706 parameters, 12 nodes, ", "written by tally", "in   image float32[2 1 28 28]", "out  logits float32[2 10]", "parameters  0.2468 MB", "a pass      1.",
		"  Conv\n", "48000  float32  fc1.weight [120 400]", "drawn in " + picture,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if b, err := os.ReadFile(picture); err != nil || !bytes.HasPrefix(b, []byte("<svg ")) || !bytes.Contains(b, []byte("5 × 5, to 16")) {
		t.Errorf("%.80q, %v", b, err)
	}
	if got, err = tally(t, "show", file, "--json"); err != nil {
		t.Fatal(err)
	}
	var r models.Shown
	if err := json.Unmarshal([]byte(got), &r); err != nil || r.Parameters != 61706 || r.Pass.FLOPs == 0 || len(r.Tensors) != 10 || r.Producer != "tally" || r.SVG != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := tally(t, "show", file, "--svg", picture); err == nil || !strings.Contains(err.Error(), "is there already: remove it, or name another file with --svg") {
		t.Errorf("%v: a picture is replaced", err)
	}
}

// Symbolic dimensions count as 1, unless they are given; licences are told, and no words of strangers command the terminal.
func TestShowOthers(t *testing.T) {
	field := func(n int, b ...byte) []byte { return append([]byte{byte(n<<3 | 2), byte(len(b))}, b...) }
	number := func(n, v int) []byte { return []byte{byte(n << 3), byte(v)} }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	value := func(n int, name string) []byte {
		dim := field(1, field(2, []byte("batch")...)...)
		tensor := field(1, join(number(1, 1), field(2, dim...))...)
		return field(n, join(field(1, []byte(name)...), field(2, tensor...))...)
	}
	node := field(1, join(field(1, []byte("x")...), field(2, []byte("y")...), field(4, []byte("Exp")...))...)
	model := join(number(1, 10), field(8, number(2, 21)...), field(14, join(field(1, []byte("License")...), field(2, []byte("MIT\x1b[2J")...))...),
		field(7, join(node, value(11, "x"), value(12, "y"))...))
	file := filepath.Join(t.TempDir(), "m.ONNX")
	if err := os.WriteFile(file, model, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := tally(t, "show", file)
	if err != nil || !strings.Contains(got, "licence MIT[2J\n") || !strings.Contains(got, "with batch=1, which --dim sets") || !strings.Contains(got, "x float32[1]") {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = tally(t, "show", file, "--dim", "batch=8"); err != nil || !strings.Contains(got, "x float32[8]") {
		t.Errorf("%s, %v", got, err)
	}
	for want, dim := range map[string]string{"give a name and a number above zero, as batch=8": "batch=0", "give a name": "=3", "above zero": "batch"} {
		if _, err := tally(t, "show", file, "--dim", dim); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--dim %s: %v, want %q", dim, err, want)
		}
	}
	if err := os.WriteFile(file, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tally(t, "show", file); err == nil || !strings.Contains(err.Error(), "m.ONNX: ") {
		t.Errorf("%v of a file that is no model", err)
	}
	if !models.Takes(file) || models.Takes("m.gguf") {
		t.Error("which files are ONNX goes by their ends")
	}
}
