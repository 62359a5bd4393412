package consume

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/node/consume/tokens"
	"github.com/tally-network/tally/node/replay"
)

// A text is trained on in the tokens of a tokenizer.json as well, which is a file of the order.
func TestTokensOfAFile(t *testing.T) {
	by, err := tokens.Read(tokenizer.OfBytes())
	if err != nil {
		t.Fatal(err)
	}
	d, err := FromParts(t.Context(), small(), Origin{Model: bigram(2, 4, 256, 0.1), Tokens: by}, prose, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Of[int32](d.Job.Data)[:5]; string([]byte{byte(got[0]), byte(got[1]), byte(got[2]), byte(got[3]), byte(got[4])}) != prose[:5] {
		t.Errorf("tokens %v of %q", got, prose[:5])
	}
	if d.Unknown != 0 || d.Tokenizer != nil {
		t.Errorf("%v of the text is unknown, %v", d.Unknown, d.Tokenizer)
	}
	i := -1
	for at, f := range d.Files {
		if f.Role == replay.RoleTokenizer {
			i = at
		}
	}
	if i < 0 || string(slices.Concat(d.Files[i].Parts...)) != string(tokenizer.OfBytes()) {
		t.Error("the tokenizer is no file of the order")
	}
	if _, err := FromParts(t.Context(), small(), Origin{Model: bigram(2, 4, 20, 0.1), Tokens: by}, prose, cpu.New(1)); err == nil || !strings.Contains(err.Error(), "has 256 tokens, the model tells 20 apart") {
		t.Error(err)
	}
}

func TestTokensAreNamed(t *testing.T) {
	dir := t.TempDir()
	s := small()
	s.Folders = []string{dir}
	if got, err := s.readTokens(); got != nil || err != nil {
		t.Errorf("%v, %v of no file", got, err)
	}
	s.Problem.Tokenizer = filepath.Join(dir, "tokenizer.json")
	for _, c := range []struct{ file, want string }{{"", "no such file"}, {"{}", "tokenizer.json: "}, {string(tokenizer.OfBytes()), ""}} {
		if c.file != "" {
			if err := os.WriteFile(s.Problem.Tokenizer, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.readTokens(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.10q: %v, want %q", c.file, err, c.want)
		}
	}
	for want, problem := range map[string]string{
		"is for problem.text":   "model: m.onnx\n  data: a.csv\n",
		"of the earlier order:": "continue: a.bundle\n  text: a.txt\n",
	} {
		if _, err := ParseSpec([]byte("kind: TrainingOrder\nproblem:\n  tokenizer: t.json\n  " + problem)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
