package data_test

import (
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/cli/data"
)

// run plays a command line, and returns what it shows as text and as JSON.
func run(args ...string) (text, asJSON string, err error) {
	var b strings.Builder
	cmd := data.Command(func(value any, tell func(io.Writer)) error {
		tell(&b)
		j, err := json.Marshal(value)
		asJSON = string(j)
		return err
	}, new(string))
	cmd.GroupID = ""
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"inspect"}, args...))
	err = cmd.Execute()
	return b.String(), asJSON, err
}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(file, []byte("x,label,note\n1,b,\"a\x1b[31m\"\n2.5,b,?\nNA,a,b\n4,a,c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, asJSON, err := run(file, "--missing", "?", "--kind", "note=text")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 records", "x       real      1        3         1 to 4, mean 2.5", "label   category  0        2         a 2, b 2", `note    text      1        3         "a\x1b[31m", b`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q has no %q", text, want)
		}
	}
	if !strings.HasPrefix(asJSON, `{"records":4,"columns":[{"name":"x","kind":"real","type":"float64","count":3,"missing":1,"distinct":3,"min":1,"mean":2.5,"max":4`) {
		t.Error(asJSON)
	}
	for want, args := range map[string][]string{
		"requires at least 1 arg": {}, "take yes or no": {file, "--header", "x"}, "take comma, semicolon": {file, "--separator", "|"}, "is no kind": {file, "--kind", "x=float"},
		"has no images": {file, "--sheet", filepath.Join(dir, "s.png")}, "one by one": {file, file, "--kind", "x=real"}, "two columns are called": {file, file},
	} {
		if _, _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestSheet(t *testing.T) {
	dir := t.TempDir()
	for i, class := range []string{"cat", "cat", "dog"} {
		m := image.NewGray(image.Rect(0, 0, 3, 2))
		m.Pix[0] = byte(50 + i)
		f, err := os.Create(filepath.Join(dir, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, m); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, "pets", class)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "x"), filepath.Join(folder, string(rune('a'+i))+".png")); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "sheet.png")
	text, _, err := run(filepath.Join(dir, "pets"), "--sheet", out)
	if err != nil || !strings.Contains(text, "image uint8[2 3 1]") {
		t.Fatal(text, err)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[image.Point]byte{{X: 2, Y: 2}: 50, {X: 7, Y: 2}: 51, {X: 2, Y: 6}: 52, {X: 0, Y: 0}: 128, {X: 7, Y: 6}: 128} {
		if got := color.GrayModel.Convert(m.At(at.X, at.Y)).(color.Gray).Y; got != want {
			t.Errorf("%v is %d, want %d", at, got, want)
		}
	}
}
