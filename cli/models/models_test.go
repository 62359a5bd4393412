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

// tally runs tally model new as the command line does.
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
	root.AddCommand(models.New(e))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
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
