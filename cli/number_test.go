package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/evidence"
)

// numeric are the types of flags that take numbers.
var numeric = map[string]bool{
	"number": true, "amount": true, "duration": true, "int": true, "int32": true, "int64": true, "uint": true, "uint32": true, "uint64": true, "float64": true,
}

// eachNumeric visits all flags of all verbs that take numbers.
func eachNumeric(t *testing.T, visit func(path string, cmd *cobra.Command, f *pflag.Flag)) {
	for path, cmd := range verbs(t) {
		if cmd.HasSubCommands() {
			continue
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if numeric[f.Value.Type()] {
				visit(path, cmd, f)
			}
		})
	}
}

func TestEveryNumberOfOursHasBounds(t *testing.T) {
	eachNumeric(t, func(path string, cmd *cobra.Command, f *pflag.Flag) {
		if verb := strings.Fields(path)[1]; sdkVerbs[verb] || cmd.Annotations[sendsTx] != "" {
			return
		}
		switch f.Value.Type() {
		case "number", "amount":
		case "duration":
			if _, ok := f.Value.(*numbers.Number[time.Duration]); !ok {
				t.Errorf("%s --%s takes any time: declare it with numbers.Within", path, f.Name)
			}
		default:
			t.Errorf("%s --%s takes any %s: declare it with numbers.Within", path, f.Name, f.Value.Type())
		}
	})
}

// TestHostileNumbersAreRefused gives every numeric flag of every verb what is no
// number that it can take.
func TestHostileNumbersAreRefused(t *testing.T) {
	home, cases := t.TempDir(), 0
	eachNumeric(t, func(path string, cmd *cobra.Command, f *pflag.Flag) {
		base := append(strings.Fields(path)[1:], "--home", home)
		var args []string
		for cmd.Args != nil && cmd.Args(cmd, args) != nil && len(args) < 5 {
			args = append(args, "1")
		}
		base = append(base, args...)
		for _, text := range []string{"-1", "1" + strings.Repeat("0", 40), "NaN", "nan", "-inf", "0x1p-2", "1e400", "", " 1", "-9223372036854775808"} {
			if cases++; f.Value.Type() == "float64" && !strings.HasPrefix(text, "-") && !strings.EqualFold(text, "nan") {
				continue // such a factor is a number
			}
			code, out, errOut := run(append(base, "--"+f.Name+"="+text)...)
			if code != exitUsage || out != "" || !strings.HasPrefix(errOut, "error: ") || !strings.Contains(errOut, f.Name) {
				t.Errorf("%s --%s=%s: exit %d\n%s%s", path, f.Name, text, code, out, errOut)
			}
		}
	})
	if cases < 500 {
		t.Errorf("only %d cases", cases)
	}
}

// TestHashIsNeverAFile leaves files in the current folder that are named like
// trust roots.
func TestHashIsNeverAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	mine, theirs := evidence.Trust(canon.Sum("mine")), evidence.Trust(canon.Sum("theirs"))
	if err := evidence.WriteTrust(".", "a-chain", theirs); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{mine.String(), strings.ToUpper(mine.String()), mine.String()[:63], "root"} {
		if err := os.Link("trust.json", name); err != nil {
			t.Fatal(err)
		}
	}
	believed := func(v *verifier) (t evidence.Trust, from string, err error) {
		v.e = &env{}
		r, err := v.trusted()
		for _, x := range []evidence.Trust{mine, theirs} {
			if err == nil && r.Named != nil && r.Named(x) {
				t = x
			}
		}
		return t, r.By, err
	}
	for text, want := range map[string]evidence.Trust{
		mine.String():                             mine,
		strings.ToUpper(mine.String()):            mine,
		"./" + mine.String():                      theirs,
		filepath.Join(t.TempDir(), "..", "x", ""): {}, // is missing
		mine.String()[:63]:                        theirs,
		"root":                                    theirs,
		"missing":                                 {},
	} {
		v := verifier{name: "proof.bundle", trust: text}
		got, from, err := believed(&v)
		if got != want || (err == nil) != (want != evidence.Trust{}) {
			t.Errorf("--trust %s: %s from %s, %v", text, got, from, err)
		}
		t.Setenv(trustVariable, text)
		if v.trust = ""; text != "" {
			if env, _, _ := believed(&v); env != want {
				t.Errorf("%s=%s: %s", trustVariable, text, env)
			}
		}
	}
}
