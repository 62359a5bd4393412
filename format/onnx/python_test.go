package onnx

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// python runs a script with the onnx package, where that is installed.
func python(t *testing.T, script string, args ...string) string {
	t.Helper()
	if err := exec.Command("python3", "-c", "import onnx").Run(); err != nil {
		t.Skip("python3 with the onnx package is not installed")
	}
	out, err := exec.Command("python3", append([]string{"-c", script}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestPythonReadsWhatIsWritten lets ONNX's own library check a model, and write
// it again: the bytes must be ours.
func TestPythonReadsWhatIsWritten(t *testing.T) {
	file, err := Write(linear(3, 2))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.onnx"), filepath.Join(dir, "out.onnx")
	if err := os.WriteFile(in, file, 0o600); err != nil {
		t.Fatal(err)
	}
	python(t, `
import sys, onnx
m = onnx.load(sys.argv[1])
onnx.checker.check_model(m, full_check=True)
open(sys.argv[2], "wb").write(m.SerializeToString(deterministic=True))
`, in, out)
	if again, err := os.ReadFile(out); err != nil || !bytes.Equal(again, file) {
		t.Fatalf("ONNX writes the same model in other bytes (%v)", err)
	}
}

func TestReadsWhatPythonWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	python(t, `
import sys, onnx, numpy
from onnx import helper, numpy_helper, TensorProto as T
w = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
m = helper.make_model(helper.make_graph(
    [helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=0, alpha=0.5),
     helper.make_node("ReduceMean", ["h"], ["y"], axes=[1], keepdims=0)],
    "made by ONNX", [helper.make_tensor_value_info("x", T.FLOAT, ["batch", 2])],
    [helper.make_tensor_value_info("y", T.FLOAT, ["batch"])],
    [numpy_helper.from_array(w, "w"), helper.make_tensor("b", T.FLOAT, [3], [1, 2, 3])],
    doc_string="doc"), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(m)
onnx.save(m, sys.argv[1])
`, path)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := read(file, Options{Dims: map[string]int{"batch": 5}})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != 2 || len(g.Consts) != 3 || g.Inputs[0].Shape[0] != 5 || g.Nodes[0].Attr("alpha").Float != 0.5 {
		t.Fatalf("got %+v", g)
	}
}

// TestEditionsAreComplete compares the table with ONNX's own record of how
// operators changed.
func TestEditionsAreComplete(t *testing.T) {
	out := python(t, `
import sys
from onnx import defs
ops = {}
for s in defs.get_all_schemas_with_history():
    if s.domain == "" and s.since_version <= int(sys.argv[2]):
        ops.setdefault(s.name, []).append(s)
def shape(s):
    attrs = sorted((a.name, str(a.type), a.required, str(a.default_value)) for a in s.attributes.values())
    return attrs, [str(i.option) for i in s.inputs], [str(o.option) for o in s.outputs]
for name, list in ops.items():
    list.sort(key=lambda s: s.since_version)
    for i, s in enumerate(list):
        if s.since_version > int(sys.argv[1]) and (i == 0 or shape(s) != shape(list[i-1])):
            print(name, s.since_version)
`, strconv.Itoa(OldestSet), strconv.Itoa(NewestSet))
	for line := range strings.Lines(out) {
		op, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		found := false
		for _, e := range editions[op] {
			found = found || strconv.Itoa(e.since) == version
		}
		if !found {
			t.Errorf("%s changed in operator set %s, which the table does not say", op, version)
		}
	}
}
