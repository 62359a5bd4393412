package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An order that somebody hands on is tried within limits, and judged by the rules of a new
// chain, where there is no home.
func TestOrderValidateHasLimits(t *testing.T) {
	dir := t.TempDir()
	text, mine, home := filepath.Join(dir, "book.txt"), filepath.Join(dir, "mine"), filepath.Join(dir, "none")
	t.Setenv("TALLY_HOME", home)
	if err := os.WriteFile(text, []byte(strings.Repeat("a tally is a stick that two people split. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := run("order", "new", mine, "--text", text, "--batch", "8"); code != 0 {
		t.Fatal(out, errOut)
	}
	order := filepath.Join(mine, "order.yaml")
	whole, err := os.ReadFile(order)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errOut := run("order", "validate", order, "--json")
	var v validated
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || v.Memory < v.StateSize || v.Declined {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errOut)
	}
	if code, _, errOut := run("order", "validate", order, "--home", home); code == 0 || !strings.Contains(errOut, "no home") {
		t.Errorf("a home that is named, and is none, is passed over: %s", errOut)
	}
	if code, _, errOut := run("order", "validate", order, "--memory-mb", "1"); code == 0 || !strings.Contains(errOut, "the limit here is 1 MB") {
		t.Errorf("exit %d: %s", code, errOut)
	}
	for old, c := range map[string][2]string{
		"unitTimeout: 10m": {"unitTimeout: 1ms", "by the rules of a new chain: honest providers would lose"},
		"steps: 16":        {"steps: -5", "steps of a unit is -5"},
		"custodians: 3":    {"custodians: 9223372036854775807", "must be between 1 and 16"},
		"checkpoint: 8":    {"checkpoint: -8", "checkpoint interval is -8"},
	} {
		changed := strings.Replace(string(whole), old, c[0], 1)
		if err := os.WriteFile(order, []byte(changed), 0o600); err != nil || changed == string(whole) {
			t.Fatal(old, err)
		}
		if code, out, errOut := run("order", "validate", order); code == 0 || !strings.Contains(errOut, c[1]) {
			t.Errorf("%s: exit %d, %s%s", c[0], code, out, errOut)
		}
	}
}
