package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/consume"
)

// A task whose results cannot be read holds up none of the others, and an order that is none names no folder.
func TestOneTaskHoldsUpNoOther(t *testing.T) {
	dir := t.TempDir()
	order := func(digit string) string { return strings.Repeat(digit, 64) }
	for at, text := range map[string]string{order("1"): "no JSON\n", order("2"): "{\"a\": 1}\n", "../out": "{\"a\": 2}\n"} {
		if err := os.MkdirAll(filepath.Join(dir, "in", at), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{resultsFile: text, consume.BundleName: "a proof"} {
			if err := os.WriteFile(filepath.Join(dir, "in", at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out bytes.Buffer
	b := (&env{out: &out, json: true}).buyer()
	err := b.collectAll(t.Context(), []taskRow{{Task: 1, Order: order("1")}, {Task: 2, Order: order("2")}, {Task: 3, Order: "../out"}}, filepath.Join(dir, "in"))
	if err == nil || !strings.Contains(err.Error(), "task 1") || !strings.Contains(err.Error(), "task 3") || strings.Contains(err.Error(), "task 2") {
		t.Errorf("%v", err)
	}
	if got := out.String(); strings.Count(got, `"collected"`) != 1 || strings.Count(got, `"not collected"`) != 2 || !strings.Contains(got, `"a": 1`) || strings.Contains(got, `"a": 2`) {
		t.Error(got)
	}
}

// Results without their proof are fetched again.
func TestResultsNeedTheirProof(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{resultsFile, consume.BundleName} {
		if there, err := collected(dir); there || err != nil {
			t.Errorf("without %s: collected is %v, %v", name, there, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := collected(dir); !there || err != nil {
		t.Errorf("with both: collected is %v, %v", there, err)
	}
}
