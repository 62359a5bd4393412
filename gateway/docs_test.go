package gateway_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/internal/testkit/replytest"
)

// Every curl of the docs is answered.
func TestDocs(t *testing.T) {
	for _, tool := range []string{"curl", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	text, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, gateway.Config{}, map[string]replytest.Script{"smollm2": scripts["hello"]})
	ran := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		ran++
		here := strings.NewReplacer("http://127.0.0.1:8411", s.url, "minilm", replytest.Embedder).Replace(line)
		out, err := exec.Command("sh", "-c", strings.Replace(here, "curl ", "curl -sS --fail-with-body ", 1)).CombinedOutput()
		if err != nil || strings.Contains(string(out), `"error":{`) || len(out) == 0 {
			t.Errorf("%s%v\n%s", line, err, out)
		}
	}
	if ran < 30 {
		t.Errorf("only %d lines are there", ran)
	}
}
