package speak

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/serve"
)

// tally runs a verb as the command line does.
func tally(ctx context.Context, in string, out io.Writer, args ...string) error {
	asJSON := false
	e := &Env{
		In: strings.NewReader(in), Out: out, Err: io.Discard, JSON: &asJSON, Terminal: func(io.Writer) bool { return false }, AlsoRuns: "runs", Consumer: func(*pflag.FlagSet) OpenConsumer { return nil },
		Logger: func(io.Writer) (*slog.Logger, error) { return slog.New(slog.DiscardHandler), nil },
	}
	e.Show = func(v any, text func(io.Writer)) error {
		if asJSON {
			return json.NewEncoder(out).Encode(v)
		}
		text(out)
		return nil
	}
	root := &cobra.Command{Use: "tally", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().BoolVar(&asJSON, "json", false, "")
	root.AddGroup(&cobra.Group{ID: "models"})
	root.AddCommand(Commands(e)...)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// A reply is the same again for the same seed, however the prompt comes, and another for another.
func TestRun(t *testing.T) {
	tiny := lmtest.Folder(t, "tiny", nil)
	say := func(in string, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := tally(t.Context(), in, &out, append([]string{"run", tiny, "--max-tokens", "12", "--threads", "1"}, args...)...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := say("", "why?", "--seed", "5")
	if again := say("why?\n", "--seed", "5"); again != first {
		t.Errorf("%q from standard input, %q as an argument", again, first)
	}
	for _, how := range [][]string{{"--speculative", "off"}, {"--draft-model", lmtest.Folder(t, "draft", nil)}} {
		if again := say("", append([]string{"why?", "--seed", "5"}, how...)...); again != first {
			t.Errorf("%q with %v, %q without", again, how, first)
		}
	}
	var s Said
	if err := json.Unmarshal([]byte(say("", "why?", "--seed", "5", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Text+"\n" != first || s.Seed != 5 || s.Written < 1 || s.Read != len("user: why?\nassistant:") || s.Reason == "" || s.Model != "tiny" {
		t.Errorf("%+v, and as text %q", s, first)
	}
	if other := say("", "why?", "--seed", "6"); other == first {
		t.Errorf("seeds 5 and 6 both give %q", first)
	}
	if raw, told := say("", "why?", "--seed", "5", "--raw"), say("", "why?", "--seed", "5", "--system", "be brief"); raw == first || told == first {
		t.Errorf("%q raw, %q with a system prompt, %q without", raw, told, first)
	}
	bare := lmtest.Folder(t, "bare", map[string]string{"tokenizer_config.json": ""})
	if err := tally(t.Context(), "", io.Discard, "run", bare, "why?", "--max-tokens", "2"); err != nil {
		t.Errorf("a model without a template: %v", err)
	}
}

// With an adapter it is another model, which says another thing, and the same again.
func TestRunAdapted(t *testing.T) {
	tiny, adapter := lmtest.Folder(t, "tiny", nil), lmtest.Adapter(t, "llama-all")
	say := func(args ...string) (s Said) {
		t.Helper()
		var out bytes.Buffer
		if err := tally(t.Context(), "", &out, append([]string{"run", tiny, "why?", "--max-tokens", "12", "--threads", "1", "--seed", "5", "--json"}, args...)...); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	base, first, again := say(), say("--adapter", adapter), say("--adapter", adapter)
	if first.Text == base.Text || first.Text != again.Text || first.Model != "tiny+llama-all" {
		t.Errorf("%+v, %+v, and without an adapter %+v", first, again, base)
	}
	var out bytes.Buffer
	if err := tally(t.Context(), "", &out, "model", "show", adapter); err != nil || !strings.Contains(out.String(), "a LoRA adapter of rank 3") {
		t.Errorf("%q, %v", out.String(), err)
	}
	for says, args := range map[string][]string{
		"take the adapter's own base": {"run", tiny, "why?", "--adapter", lmtest.Adapter(t, "gpt2")}, "adapter_config.json": {"run", tiny, "why?", "--adapter", tiny},
		"adapter tiny+gpt2": {"run", tiny, "why?", "--network", "--adapter", lmtest.Adapter(t, "gpt2")}, "want NAME=FOLDER": {"gateway", tiny, "--adapter", "=x"},
		"adapters with 2 models": {"gateway", tiny, tiny, "--adapter", adapter}, "providers have the models": {"gateway", "--network", "--adapter", adapter},
		"adapters with 0 models": {"gateway", "--adapters", adapter}, "want ngram or off": {"run", tiny, "why?", "--speculative", "much"},
	} {
		if err := tally(t.Context(), "", io.Discard, args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A model and its adapters are several models, each with its root.
func TestServeAdapters(t *testing.T) {
	tiny := lmtest.Folder(t, "tiny", nil)
	open := func(args []string, adapters ...string) (*Service, error) {
		_, s := (&Env{Err: io.Discard}).Serve(func() int { return 1 })
		s.adapters = adapters
		t.Cleanup(s.Close)
		return s, s.Open(t.Context(), args)
	}
	s, err := open([]string{tiny}, "some="+lmtest.Adapter(t, "llama-some"), lmtest.Adapter(t, "llama-all"))
	if err != nil {
		t.Fatal(err)
	}
	roots := map[string]bool{}
	var names []string
	for _, m := range s.models {
		roots[m.Manifest.Root().String()] = true
		names = append(names, m.Listing.Name)
		last := lm.Token{}
		r := lm.Request{Prompt: []int32{3, 4}, MaxTokens: 3, Pages: true}
		var reply []int32
		for tok, err := range m.Replier.Reply(t.Context(), &r) {
			if err != nil {
				t.Fatal(err)
			}
			last, reply = tok, append(reply, tok.ID)
		}
		if v, err := m.Checker.Check(t.Context(), &r, reply); err != nil || v.Wrong >= 0 || v.Pages != last.Pages {
			t.Errorf("%s: %+v, %v", m.Listing.Name, v, err)
		}
	}
	if strings.Join(names, " ") != "tiny some llama-all" || len(roots) != 3 {
		t.Errorf("%v, %d roots", names, len(roots))
	}
	some := lmtest.Adapter(t, "llama-some")
	for says, c := range map[string][]string{
		"adapters with 2 models": {tiny + " " + tiny, some}, "named as another model, or is the same": {tiny, "a=" + some, "b=" + some}, "named as another": {tiny, "tiny=" + some},
		"take the adapter's own base": {tiny, lmtest.Adapter(t, "gpt2")}, "want NAME=FOLDER": {tiny, "a="},
	} {
		if _, err := open(strings.Fields(c[0]), c[1:]...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// settle copies an adapter into a folder, as if it had been written a while ago.
func settle(t *testing.T, dir, of string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(lmtest.Adapter(t, of))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors"} {
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// A provider serves the adapters of a folder, also those that come later, each once; one that is none is told once, and hides nothing else.
func TestServeAdaptersOfAFolder(t *testing.T) {
	tiny, dir := lmtest.Folder(t, "tiny", nil), t.TempDir()
	settle(t, filepath.Join(dir, "legal"), "llama-some")
	settle(t, filepath.Join(dir, "stranger"), "gpt2")
	var told bytes.Buffer
	_, s := (&Env{Err: &told}).Serve(func() int { return 1 })
	s.folder = dir
	t.Cleanup(s.Close)
	if err := s.Open(t.Context(), []string{tiny}); err != nil {
		t.Fatal(err)
	}
	var later []string
	add := func(m *serve.Model) error {
		later = append(later, m.Listing.Name)
		return nil
	}
	settle(t, filepath.Join(dir, "poems"), "llama-other")
	for range 2 {
		if err := s.takeUp(add); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.models) != 2 || s.models[1].Listing.Name != "legal" || strings.Join(later, " ") != "poems" || strings.Count(told.String(), "stranger is not served") != 1 {
		t.Errorf("%d models, and later %v; told %s", len(s.models), later, told.String())
	}
	_, s = (&Env{Err: io.Discard}).Serve(func() int { return 1 })
	s.folder = filepath.Join(dir, "nowhere")
	t.Cleanup(s.Close)
	if err := s.Open(t.Context(), []string{tiny}); err == nil || !strings.Contains(err.Error(), "--adapters") {
		t.Errorf("%v of a folder that is not there", err)
	}
}

// Who checks for itself finds what providers serve with an adapter that is here, and re-executes its replies.
func TestChecksOfAdaptersByThisMachine(t *testing.T) {
	tiny, some := lmtest.Folder(t, "tiny", nil), lmtest.Adapter(t, "llama-some")
	known := &roots{map[string]canon.Hash{}, map[canon.Hash]adaptedPath{}}
	if err := known.adapt(tiny, []namedAdapter{{"legal", some}}, 1); err != nil {
		t.Fatal(err)
	}
	_, s := (&Env{Err: io.Discard}).Serve(func() int { return 1 })
	s.adapters = []string{"legal=" + some}
	t.Cleanup(s.Close)
	if err := s.Open(t.Context(), []string{tiny}); err != nil {
		t.Fatal(err)
	}
	w := &weights{at: known.at, threads: 1, open: map[canon.Hash]*opened{}}
	base, legal := s.models[0], s.models[1]
	if root := legal.Manifest.Root(); known.names["legal"] != root || !w.Has(root) || w.Has(base.Manifest.Root()) || w.contest(root) == nil {
		t.Fatalf("%v, and legal is %s", known, root)
	}
	q := &lm.Request{Prompt: []int32{3, 4}, MaxTokens: 12}
	for m, right := range map[*serve.Model]bool{legal: true, base: false} {
		var reply []int32
		for tok, err := range m.Replier.Reply(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			reply = append(reply, tok.ID)
		}
		if v, err := w.Check(t.Context(), legal.Manifest.Root(), q, reply); err != nil || (v.Wrong < 0) != right {
			t.Errorf("%+v, %v of a reply by %s", v, err, m.Listing.Name)
		}
	}
	for says, a := range map[string]namedAdapter{"two models are called legal": {"legal", some}, "take the adapter's own base": {"x", lmtest.Adapter(t, "gpt2")}} {
		if err := known.adapt(tiny, []namedAdapter{a}, 1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A provider's draft model must have the tokens of what it serves; with one a reply has the tokens and pages that a check finds.
func TestServeWithDrafts(t *testing.T) {
	tiny := lmtest.Folder(t, "tiny", nil)
	for draft, says := range map[string]string{lmtest.Folder(t, "draft", nil): "", "nowhere": "--draft-model", lmtest.Drawn(t, "llama", "smollm", tensor.Float32, nil): "of the same family"} {
		_, s := (&Env{Err: io.Discard}).Serve(func() int { return 1 })
		s.drafts.draft = draft
		t.Cleanup(s.Close)
		err := s.Open(t.Context(), []string{tiny})
		if says != "" {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q", err, says)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		r := lm.Request{Prompt: []int32{3, 4}, MaxTokens: 40, Pages: true}
		var reply []int32
		last := lm.Token{}
		for tok, err := range s.models[0].Replier.Reply(t.Context(), &r) {
			if err != nil {
				t.Fatal(err)
			}
			last, reply = tok, append(reply, tok.ID)
		}
		if v, err := s.models[0].Checker.Check(t.Context(), &r, reply); err != nil || v.Wrong >= 0 || v.Pages != last.Pages || s.open[0].Stats().Drafted == 0 {
			t.Errorf("%+v, %v, %+v", v, err, s.open[0].Stats())
		}
	}
}

// The model of a receipt is the base with the adapter that it names, and no other.
func TestModelOfAReceipt(t *testing.T) {
	tiny, some := lmtest.Folder(t, "tiny", nil), lmtest.Adapter(t, "llama-some")
	f, err := openAdapted(tiny, some)
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Manifest(1)
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{}
	if _, _, err := (&receiptModel{tiny, some, 1}).open(e, m.Root()); err != nil {
		t.Error(err)
	}
	for says, x := range map[string]receiptModel{
		"the receipt is of": {tiny, "", 1}, "the receipt is of ": {tiny, lmtest.Adapter(t, "llama-other"), 1}, "name the base as well": {"", some, 1}, "adapter_config.json": {tiny, tiny, 1},
	} {
		if _, _, err := x.open(e, m.Root()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", x, err, says)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	tiny := lmtest.Folder(t, "tiny", nil)
	for says, args := range map[string][]string{
		"MODEL is missing":         {},
		"the prompt has 0 bytes":   {tiny},
		"between 0 and 100":        {tiny, "why?", "--temperature", "-1"},
		"between 1e-06 and 1":      {tiny, "why?", "--top-p", "0"},
		"no such file":             {filepath.Join(tiny, "nowhere"), "why?"},
		"no model that was pulled": {"nowhere", "why?"},
		"send less":                {tiny, strings.Repeat("why? ", 30)},
		"accepts at most 2 arg(s)": {tiny, "why?", "how?"},
	} {
		if err := tally(t.Context(), "", io.Discard, append([]string{"run"}, args...)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tally(ctx, "", io.Discard, "run", tiny, "why?"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after an interruption", err)
	}
}

// The perplexity of a text is told, of as many windows as are wanted.
func TestPerplexity(t *testing.T) {
	tiny := lmtest.Folder(t, "tiny", nil)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("the quick brown fox ", 10)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := tally(t.Context(), "", &out, "model", "perplexity", tiny, text, "--window", "32", "--windows", "3", "--json"); err != nil {
		t.Fatal(err)
	}
	var r PerplexityReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Windows != 3 || r.Counted != 3*15 || r.Window != 32 || !(r.Perplexity > 1) || !(r.Error > 0) || r.Text != text {
		t.Errorf("%+v", r)
	}
	out.Reset()
	if err := tally(t.Context(), "", &out, "model", "perplexity", tiny, text, "--window", "64"); err != nil || !strings.Contains(out.String(), "of 93 tokens in 3 windows of 64") {
		t.Errorf("%q (%v)", out.String(), err)
	}
	for says, args := range map[string][]string{
		"TEXT is missing": {tiny}, "a window of 512 tokens": {tiny, text}, "want 4 to 64": {tiny, text, "--window", "65"},
	} {
		if err := tally(t.Context(), "", io.Discard, append([]string{"model", "perplexity"}, args...)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A folder becomes the same small file for everybody who has it.
func TestQuantizeAFolder(t *testing.T) {
	dir := lmtest.Drawn(t, "qwen2", "qwen2", tensor.BFloat16, map[string]any{"hidden_size": 32, "head_dim": 8, "intermediate_size": 64})
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{dir}, {dir, "--out", "again.gguf"}, {"again.gguf", "--check", dir}, {"qwen2-q8_0.gguf", "--check", dir}} {
		if err := tally(t.Context(), "", io.Discard, append([]string{"model", "quantize"}, args...)...); err != nil {
			t.Fatal(args, err)
		}
	}
	if err := tally(t.Context(), "", io.Discard, "run", "qwen2-q8_0.gguf", "why?", "--max-tokens", "2"); err != nil {
		t.Error(err)
	}
	other := lmtest.Drawn(t, "qwen2", "qwen2", tensor.Float16, map[string]any{"hidden_size": 32, "head_dim": 8, "intermediate_size": 64})
	for says, args := range map[string][]string{
		"is not what its base gives": {"again.gguf", "--check", other}, "without bytes as its letters": {lmtest.Folder(t, "tiny", nil), "--out", "tiny.gguf"},
	} {
		if err := tally(t.Context(), "", io.Discard, append([]string{"model", "quantize"}, args...)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 2 {
		t.Errorf("%v (%v)", left, err)
	}
}

// A model that was pulled is called by its name, until it is deleted.
func TestPulledModels(t *testing.T) {
	t.Setenv("TALLY_MODELS", t.TempDir())
	do := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := tally(t.Context(), "", &out, args...); err != nil {
			t.Fatal(args, err)
		}
		return out.String()
	}
	if got := do("model", "ls"); !strings.Contains(got, "no models were pulled") {
		t.Errorf("ls says %q", got)
	}
	if got := strings.TrimSpace(do("model", "ls", "--json")); got != "[]" {
		t.Errorf("ls says %q", got)
	}
	if err := tally(t.Context(), "", io.Discard, "gateway"); err == nil || !strings.Contains(err.Error(), "there are no models to serve") {
		t.Errorf("%v: a gateway without models", err)
	}
	tiny := lmtest.Folder(t, "tiny", nil)
	if got := do("pull", tiny, "--name", "small"); !strings.Contains(got, "tally run small") {
		t.Errorf("pull says %q", got)
	}
	if got := do("model", "ls"); !strings.Contains(got, "small") || !strings.Contains(got, "4.69K") {
		t.Errorf("ls says %q", got)
	}
	if by, at := do("run", "small", "why?", "--seed", "5", "--max-tokens", "8"), do("run", tiny, "why?", "--seed", "5", "--max-tokens", "8"); by != at {
		t.Errorf("%q by its name, %q by its path", by, at)
	}
	if got := do("model", "show", "small"); !strings.Contains(got, "llama") {
		t.Errorf("show says %q", got)
	}
	do("rm", "small")
	for _, args := range [][]string{{"rm", "small"}, {"run", "small", "why?"}, {"model", "show", "small"}, {"pull", "ftp://nowhere"}} {
		if err := tally(t.Context(), "", io.Discard, args...); err == nil {
			t.Errorf("%v: nothing is wrong with a model that is not there", args)
		}
	}
}

// An encoder that was pulled is shown as one, compared with what was pulled, and cannot be talked to.
func TestPulledEncoders(t *testing.T) {
	t.Setenv("TALLY_MODELS", t.TempDir())
	for _, c := range []struct {
		says string
		args []string
	}{
		{"gives vectors", []string{"pull", lmtest.Encoder(t, "minilm", nil), "--name", "minilm"}}, {"bert", []string{"model", "ls"}},
		{"a sentence encoder", []string{"model", "show", "minilm"}}, {"are as they were pulled", []string{"model", "verify", "minilm"}},
	} {
		var out bytes.Buffer
		if err := tally(t.Context(), "", &out, c.args...); err != nil || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: %q, %v, want %q", c.args, out.String(), err, c.says)
		}
	}
	for says, args := range map[string][]string{"gives vectors, and no replies": {"run", "minilm", "why?"}, "is not here": {"model", "verify", "nowhere"}} {
		if err := tally(t.Context(), "", io.Discard, args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", args, err, says)
		}
	}
	var out bytes.Buffer
	tellListening(&out, &Listening{URL: "http://127.0.0.1:1", Models: []string{"minilm"}})
	if !strings.Contains(out.String(), "/v1/embeddings") || strings.Contains(out.String(), "/v1/chat") {
		t.Errorf("the gateway says %q", out.String())
	}
}

// A key is what its lines in a file of keys say.
func TestGatewayKey(t *testing.T) {
	var out bytes.Buffer
	if err := tally(t.Context(), "", &out, "gateway", "key", "laptop", "--json"); err != nil {
		t.Fatal(err)
	}
	var k newKey
	if err := json.Unmarshal(out.Bytes(), &k); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256([]byte(k.Key)); k.Name != "laptop" || hex.EncodeToString(sum[:]) != k.SHA256 {
		t.Errorf("%+v", k)
	}
	out.Reset()
	if err := tally(t.Context(), "", &out, "gateway", "key", "laptop"); err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(out.String(), "names:\n")
	if _, err := gateway.ReadKeys([]byte("keys:\n" + lines)); err != nil {
		t.Errorf("%v, of %q", err, lines)
	}
}

// A gateway tells where it listens, serves, is seen by ps, and ends when it is interrupted.
func TestGateway(t *testing.T) {
	t.Setenv("TALLY_MODELS", t.TempDir())
	tiny := lmtest.Folder(t, "tiny", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- tally(ctx, "", w, "gateway", tiny, "--listen", "127.0.0.1:0", "--threads", "1", "--json")
		_ = w.Close()
	}()
	var l Listening
	if err := json.NewDecoder(r).Decode(&l); err != nil {
		t.Fatal(err, <-ended)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	address := strings.TrimPrefix(l.URL, "http://")
	ps := func() string {
		var out bytes.Buffer
		if err := tally(t.Context(), "", &out, "ps", "--listen", address); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := ps(); !strings.Contains(got, "no model is ready") {
		t.Errorf("ps says %q", got)
	}
	a, err := http.Post(l.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model": "tiny", "messages": [{"role": "user", "content": "why?"}], "max_tokens": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK || !strings.Contains(string(text), `"completion_tokens"`) {
		t.Errorf("%s: %s, %v", a.Status, text, err)
	}
	if err := a.Body.Close(); err != nil {
		t.Error(err)
	}
	if got := ps(); !strings.Contains(got, "tiny") {
		t.Errorf("ps says %q", got)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the gateway goes on")
	}
	if err := tally(t.Context(), "", io.Discard, "ps", "--listen", address); err == nil {
		t.Error("nobody listens any more, and ps finds something")
	}
	if err := tally(t.Context(), "", io.Discard, "gateway", tiny, "--listen", "0.0.0.0:0"); err == nil || !strings.Contains(err.Error(), "keys") {
		t.Errorf("%v: an address for everybody, without keys", err)
	}
}
