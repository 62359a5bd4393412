package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this program as tally.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tally": main})
}

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("scripts start networks")
	}
	tests, err := filepath.Abs("../../model/backend/testdata") // ONNX's, with their inputs in $NPY
	if err != nil {
		t.Fatal(err)
	}
	npy, err := filepath.Abs(filepath.Join("testdata", "npy"))
	if err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Abs("../../model/lm/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTS", tests)
			e.Setenv("NPY", npy)
			e.Setenv("MODELS", models)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TALLY_HOME", filepath.Join(e.WorkDir, "home"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": jsonValue, "save": save, "await": await, "write": write, "settle": settle, "trim": trim,
			"replace": replace, "damage": damage, "stripes": stripes,
		},
	})
}

// jsonValue checks that standard output is exactly one JSON value. With a path,
// such as .peers.0.stake, a regular expression must match what is there.
//
//	json [PATH REGEXP]
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	value, err := one(ts.ReadFile("stdout"))
	ts.Check(err)
	if len(args) == 0 {
		return
	}
	if len(args) != 2 {
		ts.Fatalf("usage: json [PATH REGEXP]")
	}
	got, err := at(value, args[0])
	ts.Check(err)
	match, err := regexp.MatchString(args[1], got)
	ts.Check(err)
	if match == neg {
		ts.Fatalf("%s is %s", args[0], got)
	}
}

// save puts what is at a path of standard output into a variable.
//
//	save VARIABLE PATH
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: save VARIABLE PATH")
	}
	value, err := one(ts.ReadFile("stdout"))
	ts.Check(err)
	got, err := at(value, args[1])
	ts.Check(err)
	ts.Setenv(args[0], got)
}

// write writes a text into a file.
//
//	write FILE TEXT
func write(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: write FILE TEXT")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[1]), 0o600))
}

// await waits until a file is there, and with an expression until that matches.
//
//	await FILE [REGEXP]
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: await FILE [REGEXP]")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && (len(args) == 1 || regexp.MustCompile(args[1]).Match(text)) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after a minute: %v\n%s", err, text)
		}
	}
}

// settle asks the chain until it answers, and until the answer is as wanted, which it leaves as standard
// output.
//
//	settle [-until REGEXP] ARGUMENTS-OF-TALLY-QUERY
func settle(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile("")
	if len(args) > 1 && args[0] == "-until" {
		want, args = regexp.MustCompile(args[1]), args[2:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: settle [-until REGEXP] ARGUMENTS-OF-TALLY-QUERY")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if ts.Exec("tally", append([]string{"query"}, args...)...) == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after a minute: no answer")
		}
	}
}

// trim puts the text of the file address into a variable.
//
//	trim VARIABLE
func trim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: trim VARIABLE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("address")))
}

// replace copies a file with other texts in it, each of which must be there.
//
//	replace FROM TO [OLD NEW]…
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || len(args)%2 != 0 {
		ts.Fatalf("usage: replace FROM TO [OLD NEW]…")
	}
	text := ts.ReadFile(args[0])
	for i := 2; i < len(args); i += 2 {
		if !strings.Contains(text, args[i]) {
			ts.Fatalf("%s has no %q", args[0], args[i])
		}
		text = strings.Replace(text, args[i], args[i+1], 1)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// stripes writes images of two classes: stripes that lie, and stripes that stand.
//
//	stripes DIR IMAGES-OF-A-CLASS
func stripes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: stripes DIR IMAGES-OF-A-CLASS")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for class, name := range []string{"lying", "standing"} {
		dir := filepath.Join(ts.MkAbs(args[0]), name)
		ts.Check(os.MkdirAll(dir, 0o755))
		for i := range n {
			picture := image.NewGray(image.Rect(0, 0, 16, 16))
			for at := range 256 {
				along := []int{at / 16, at % 16}[class]
				picture.Pix[at] = uint8((along+i)/2%2*200 + (at*7+i)%40)
			}
			var b bytes.Buffer
			ts.Check(png.Encode(&b, picture))
			ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".png")), b.Bytes(), 0o644))
		}
	}
}

// damage flips one bit of a bundle at each of so many places, and checks that
// tally verify, which takes the whole one, refuses every one of them.
//
//	damage BUNDLE PLACES TRUST
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damage BUNDLE PLACES TRUST")
	}
	places, err := strconv.Atoi(args[1])
	ts.Check(err)
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	verify := func() error { return ts.Exec("tally", "verify", name, "--segments", "1", "--trust", args[2]) }
	ts.Check(verify())
	for range places {
		at, bit := rand.IntN(len(b)), byte(1)<<rand.IntN(8)
		b[at] ^= bit
		ts.Check(os.WriteFile(name, b, 0o600))
		if verify() == nil {
			ts.Fatalf("bit %b of byte %d flipped, and it is taken", bit, at)
		}
		b[at] ^= bit
	}
	ts.Check(os.WriteFile(name, b, 0o600))
}

func one(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("standard output is no JSON: %w: %s", err, text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("standard output goes on after the JSON value: %s", text)
	}
	return value, nil
}

func at(value any, path string) (string, error) {
	for _, key := range strings.Split(strings.Trim(path, "."), ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return "", fmt.Errorf("no %s of %s in %v", key, path, v)
			}
			value = v[i]
		default:
			return "", fmt.Errorf("no %s of %s in %v", key, path, v)
		}
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}
