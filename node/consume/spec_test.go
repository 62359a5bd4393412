package consume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const minimal = "kind: TrainingOrder\nproblem: {model: m.onnx, text: t.txt}\n"

func TestParseSpec(t *testing.T) {
	s, err := ParseSpec([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Problem.Model, want.Problem.Text = "m.onnx", "t.txt"
	if s.Problem.Model != "m.onnx" || !reflect.DeepEqual(s.Conditions, want.Conditions) || s.Problem.Optimizer != want.Problem.Optimizer || s.Problem.Rounds != want.Problem.Rounds {
		t.Errorf("%+v, want the defaults", s)
	}
	s, err = ParseSpec([]byte(minimal + "conditions: {maxPrice: 2.5tally, unitWindow: 90s, validator: " + chaintest.Named("v0").String() + "}\n"))
	if err != nil || s.Conditions.MaxPrice != 2_500_000 || s.Conditions.UnitWindow != Duration(90*time.Second) || s.Terms().UnitWindow != 90_000 {
		t.Errorf("%+v, %v", s.Conditions, err)
	}
	for text, want := range map[string]string{
		"":                     "kind",
		"kind: InferenceOrder": `kind is "InferenceOrder"`,
		"kind: TrainingOrder":  "problem.model is missing",
		strings.Replace(minimal, ", text: t.txt", "", 1):                                         "problem.text or problem.data",
		minimal + "colour: red":                                                                  "colour",
		minimal + "conditions: {maxPrice: 5}x":                                                   "line 2",
		minimal + "conditions: {validator: v0}":                                                  "conditions.validator: account \"v0\" is not a tally1… address",
		minimal + "conditions: {maxPrice: 5 euros}":                                              "write it like 2.5tally",
		minimal + "conditions: {maxPrice: 2}":                                                    "line 3: conditions.maxPrice: 2 has no unit: write 2tally",
		minimal + "conditions: {window: 5 minutes}":                                              "line 3: conditions.window: duration \"5 minutes\": write it like 90s",
		minimal + "conditions: {assurance: {audit: {rate: 5}}}":                                  "share \"5\": write it like 5%",
		minimal + "conditions: {assurance: {audit: {rates: 5%}}}":                                "rates",
		minimal + "conditions: {assurance: {watch: true}}":                                       "watch",
		minimal + "conditions: {assurance: {audit: {rate: 5%}, watched: true}}":                  "write one of audit",
		minimal + "conditions: {assurance: {replicas: 2, watched: true}}":                        "write one of audit",
		minimal + "conditions: {assurance: {replicas: two}}":                                     "whole number",
		strings.Replace(minimal, "t.txt}", "t.txt, best: {metric: beauty}}", 1):                  "problem.best: there is no metric \"beauty\": choose by loss, perplexity",
		strings.Replace(minimal, "t.txt}", "t.txt, best: {patience: 3}}", 1):                     "name it, such as loss",
		strings.Replace(minimal, "text: t.txt", "data: {source: d.csv, heldOut: {share: 0}}", 1): "line 2: problem.data.heldOut.share: a share of 0: each order holds out",
		minimal + minimal:              "already",
		minimal + "name: [1,2]":        "name",
		strings.Repeat(" ", maxSpec+1): "at most",
	} {
		if _, err := ParseSpec([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
}

func TestStatedKind(t *testing.T) {
	for text, want := range map[string]string{
		"kind: BatchOrder\n": "BatchOrder", "problem: {}\nkind:  \"BatchOrder\" # of records\n": "BatchOrder", "kind: 'x'": "x", "problem: {kind: y}\n": "",
	} {
		if got := statedKind([]byte(text)); got != want {
			t.Errorf("%q states %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"kind: Batchorder\nproblem:\n  records: {X: x.csv}\n": `kind is "Batchorder", write kind: TrainingOrder or kind: BatchOrder`, "problem:\n  records: {X: x.csv}\n": `kind is ""`} {
		name := filepath.Join(t.TempDir(), "order.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadOrder(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestReadSpecNamesFilesBesideIt(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "order.yaml")
	if err := os.WriteFile(name, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSpec(name)
	if err != nil || s.Problem.Model != filepath.Join(dir, "m.onnx") || s.Problem.Text != filepath.Join(dir, "t.txt") {
		t.Errorf("%+v, %v", s.Problem, err)
	}
	if _, err := ReadSpec(dir + "/none.yaml"); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := os.WriteFile(name, []byte("kind: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSpec(name); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("%v does not name the file", err)
	}
}

// An order file may be somebody else's, and those who work on it see what it names.
func TestFilesOutsideTheFolderAreRefused(t *testing.T) {
	top := t.TempDir()
	mine, order := filepath.Join(top, "mine"), filepath.Join(top, "order")
	for name, body := range map[string]string{"mine/diary.txt": prose, "order/.hidden/t.txt": prose, "order/deep/t.txt": prose, "order/t.txt": prose} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"file": "../mine/diary.txt", "folder": "../mine", "inside": "deep/t.txt"} {
		if err := os.Symlink(to, filepath.Join(order, link)); err != nil {
			t.Skip(err)
		}
	}
	file := filepath.Join(order, "order.yaml")
	read := func(text string, allow ...string) error {
		if err := os.WriteFile(file, []byte(strings.Replace(minimal, "t.txt", text, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSpec(file, allow...)
		if err == nil {
			_, err = s.readText()
		}
		return err
	}
	diary := filepath.Join(mine, "diary.txt")
	for _, text := range []string{"../mine/diary.txt", diary, "file", "folder/diary.txt", ".hidden/t.txt", "deep/../../mine/diary.txt"} {
		if err := read(text); !errors.Is(err, bounded.ErrOutside) || !strings.Contains(err.Error(), "--allow") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"t.txt", "deep/t.txt", "inside", filepath.Join(order, "t.txt"), "../order/t.txt"} {
		if err := read(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{diary, "file", "../mine/diary.txt"} {
		if err := read(text, mine); err != nil {
			t.Errorf("%s, allowed: %v", text, err)
		}
	}
	if err := read(".hidden/t.txt", filepath.Join(order, ".hidden")); err != nil {
		t.Error(err)
	}
	for file, says := range map[string]string{diary: "problem.continue: " + diary + " is outside", filepath.Join(order, "t.txt"): "problem.continue " + filepath.Join(order, "t.txt") + ": it is no proof bundle"} {
		s := Spec{Problem: SpecProblem{Continue: file}, Folders: []string{order}}
		if _, err := s.readOrigin(t.Context(), nil); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if err := os.Truncate(filepath.Join(order, "t.txt"), 1<<40); err != nil {
		t.Skip(err)
	}
	if err := read("t.txt"); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a sparse file of a terabyte: %v", err)
	}
}

// Where an order lies says the disk: above a link by letters is another folder.
func TestFoldersToAllowAreThere(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "order.yaml")
	if err := os.WriteFile(name, []byte("kind: TrainingOrder\nproblem: {model: a, text: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{dir: "", filepath.Join(dir, "none"): "the folder to allow", name: "is a file"} {
		if _, err := ReadSpec(name, folder); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

func TestOrderBehindALinkKeepsToItsFolder(t *testing.T) {
	top := t.TempDir()
	mine, order := filepath.Join(top, "mine"), filepath.Join(top, "order")
	for name, body := range map[string]string{"mine/t.txt": "my diary", "order/deep/t.txt": "no text", "order/t.txt": prose, "order/order.yaml": minimal} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(mine, "link")
	if err := os.Symlink(filepath.Join(order, "deep"), link); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ stand, order string }{{link, "../order.yaml"}, {mine, "link/../order.yaml"}, {order, "order.yaml"}, {top, link + "/../order.yaml"}} {
		t.Chdir(c.stand) // sets PWD, as a shell does
		s, err := ReadSpec(c.order)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{s.Problem.Text, filepath.Join(order, "t.txt")} {
			s.Problem.Text = name
			if body, err := s.readText(); err != nil || string(body) != prose {
				t.Errorf("%s, named by %s from %s: %.20q, %v", name, c.order, c.stand, body, err)
			}
		}
		s.Problem.Text = filepath.Join(mine, "t.txt")
		if _, err := s.readText(); !errors.Is(err, bounded.ErrOutside) {
			t.Errorf("%s from %s: %v", c.order, c.stand, err)
		}
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]Amount{
		"5tally": 5_000_000, "0.000001tally": 1, "2.5tally": 2_500_000, "7utally": 7, "18446744073709551615utally": 1<<64 - 1,
		"18446744073709.551615tally": 1<<64 - 1, "0tally": 0, "3 tally": 3_000_000,
	} {
		if got, err := ParseAmount(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "tally", ".5tally", "1.0000001tally", "-1tally", "1e3tally", "18446744073709.551616tally", "18446744073709551616utally", "1.2.3tally", "5euro"} {
		if got, err := ParseAmount(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := Amount(rapid.Uint64().Draw(t, "a"))
		text, err := a.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := ParseAmount(string(text)); err != nil || b != a {
			t.Fatalf("%d written as %s and read as %d (%v)", a, text, b, err)
		}
		shown := strings.ReplaceAll(strings.ToLower(a.String()), " ", "")
		if b, err := ParseAmount(shown); err != nil || b != a {
			t.Fatalf("%d shown as %v and read as %d (%v)", a, a, b, err)
		}
	})
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte("kind: TrainingOrder\nproblem: {continue: p.bundle, data: more.csv}\n"))
	f.Add([]byte(minimal + "conditions: {maxPrice: 2.5tally, unitWindow: 90s}\nname: x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSpec(b)
		if err == nil && (s.Kind != Kind || s.Problem.Model == "" && s.Problem.Continue == "" || s.Problem.Text == "" && s.Problem.Data == nil) {
			t.Fatalf("%+v", s)
		}
	})
}

// How much is audited is the consumer's choice: a number of segments, or a share.
func TestAuditTerms(t *testing.T) {
	for text, want := range map[string][3]int{ // segments, floor, largest; of a unit with 16 steps
		"": {1, 0, 0}, // nothing asked for
		"conditions: {assurance: {audit: {segments: 3}}}":                 {3, 0, 0},
		"conditions: {assurance: {audit: {rate: 5%}}}":                    {1, 0, 0},
		"conditions: {assurance: {audit: {rate: 50%, floor: 1, top: 2}}}": {4, 1, 2},
		"conditions: {assurance: {audit: {rate: 100%}}}":                  {8, 0, 0},
		"conditions: {assurance: {audit: {rate: 51%}}}":                   {5, 0, 0},
		"conditions: {assurance: {watched: true}}":                        {8, 0, 0},
	} {
		s, err := ParseSpec([]byte(minimal + text + "\n"))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		s.Problem.Steps, s.Problem.Interval = 16, 2
		if c := s.Terms(); [3]int{c.AuditSegments, c.AuditFloor, c.TopSegments} != want {
			t.Errorf("%s: %d segments, floor %d, %d largest", text, c.AuditSegments, c.AuditFloor, c.TopSegments)
		}
	}
	for _, rate := range []string{"5", "101%", "-1%", "NaN%", "five%"} {
		if _, err := ParseSpec([]byte(minimal + "conditions: {assurance: {audit: {rate: " + rate + "}}}\n")); err == nil {
			t.Errorf("an audit rate of %s was taken", rate)
		}
	}
}

// A batch alone is split, and only where no one could see all of it nevertheless.
func TestSplitsThatAreRefused(t *testing.T) {
	const batch = "kind: BatchOrder\n%sproblem: {model: m.onnx, grid: {x: [1, 2, 3]}}\nconditions: {%s}\n"
	a, b := chaintest.Named("v0").String(), chaintest.Named("v1").String()
	for text, want := range map[string]string{
		fmt.Sprintf(batch, "", "split: 2"):                             "",
		fmt.Sprintf(batch, "", "split: ["+a+", "+b+"]"):                "",
		fmt.Sprintf(batch, "", "split: 2, assurance: {watched: true}"): "",
		fmt.Sprintf(batch, "", "split: 2, validator: "+a):              "leave validator out",
		fmt.Sprintf(batch, "", "split: 2, auction: true"):              "leave one of the two out",
		fmt.Sprintf(batch, "", "split: 2, assurance: {replicas: 2}"):   "watched: true",
		fmt.Sprintf(batch, "", "split: 1"):                             "write 2 to 64",
		fmt.Sprintf(batch, "", "split: ["+a+", "+a+"]"):                "twice",
		fmt.Sprintf(batch, "project: 1\n", "split: 2"):                 "leave split out, or the project",
	} {
		if _, err := ParseBatchSpec([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	training := "kind: TrainingOrder\nproblem: {model: m.onnx, text: t.txt}\nconditions: {split: 2}\n"
	if _, err := ParseSpec([]byte(training)); err == nil || !strings.Contains(err.Error(), "a batch alone is split") {
		t.Errorf("training: %v", err)
	}
	s, err := ParseBatchSpec([]byte(fmt.Sprintf(batch, "", "split: 2")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewBatchDraft(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "tally batch alone") {
		t.Errorf("posted whole: %v", err)
	}
}

// A source on another machine may be allowed beside folders.
func TestAllowedSources(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "order.yaml")
	if err := os.WriteFile(name, []byte("kind: TrainingOrder\nproblem:\n  model: m.onnx\n  data: {source: 's3://data/a.csv'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSpec(name, dir, "s3://data")
	if err != nil || len(s.Trusted) != 1 || s.Trusted[0] != "s3://data" || len(s.Folders) != 2 || s.Problem.Data.Source != "s3://data/a.csv" {
		t.Errorf("%q %q %v", s.Trusted, s.Folders, err)
	}
	if s, err = ReadSpec(name); err != nil || len(s.Trusted) != 0 {
		t.Errorf("%q %v", s.Trusted, err)
	}
}
