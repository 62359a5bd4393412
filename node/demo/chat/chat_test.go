package chat_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/node/demo/chat"
)

// Three strangers serve a model. The cheater is found, nobody else is blamed, and the money adds up.
func TestStrangersServeAndTheCheaterIsFound(t *testing.T) {
	dir := t.TempDir()
	if err := chat.Random(filepath.Join(dir, "random")); err != nil {
		t.Fatal(err)
	}
	var lines []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked *http.Response
	r, err := chat.Run(ctx, chat.Options{Dir: dir, Model: filepath.Join(dir, "random"), Name: "random", Stay: true, Line: func(s string) {
		if lines = append(lines, s); strings.Contains(s, "until Ctrl-C") { // it stays
			url := s[strings.Index(s, "http://"):]
			url, _, _ = strings.Cut(url, "/v1/")
			asked, _ = http.Get(url + "/v1/models")
			cancel()
		}
	}})
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(lines, "\n"))
	}
	t.Log(strings.Join(lines, "\n"))
	if asked == nil || asked.StatusCode != http.StatusOK {
		t.Errorf("it does not stay: %+v", asked)
	} else if err := asked.Body.Close(); err != nil {
		t.Error(err)
	}
	if len(r.Blamed) != 1 || r.Blamed[0].Name != "provider-1" || !r.SupplyOK || len(r.Answers) < 3 {
		t.Errorf("%+v", r)
	}
	if x := r.Dispute; x == nil || x.Loser != "provider-1" || x.Moves < 10 || x.Stake == 0 || !strings.Contains(x.Reason, "is not what its operands give") {
		t.Errorf("the dispute: %+v", x)
	}
	wrong, billed := 0, uint64(0)
	for i, a := range r.Answers {
		for _, p := range a.Parts {
			if billed += p.Price; p.Right {
				continue
			}
			if wrong++; p.Provider != "provider-1" || p.Wrong != 2 || i != len(r.Answers)-2 {
				t.Errorf("reply %d: %+v", i, p)
			}
		}
	}
	if wrong != 1 {
		t.Errorf("%d parts are wrong", wrong)
	}
	got, honest := r.Burnt, 0
	for _, p := range r.Providers {
		got += p.Settled + p.Ahead
		if p.Settled > 0 {
			honest++
		}
		if (p.Name == "provider-1") != (p.Ahead > 0) || p.Ahead > 0 && p.Settled > 0 {
			t.Errorf("%+v", p)
		}
	}
	if got != r.Paid || honest != 2 || billed == 0 || r.PaidChecks == 0 {
		t.Errorf("providers and fire got %d of %d utally, %d of them honest; bills of %d", got, r.Paid, honest, billed)
	}
	if last := r.Answers[len(r.Answers)-1]; slices.ContainsFunc(last.Parts, func(p chat.Part) bool { return p.Provider == "provider-1" }) {
		t.Errorf("it is asked again: %+v", last)
	}
}

// The random model is always the same, and is one.
func TestRandom(t *testing.T) {
	var roots []string
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := chat.Random(dir); err != nil {
			t.Fatal(err)
		}
		f, err := files.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Manifest(1)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, m.Root().String())
	}
	if roots[0] != roots[1] {
		t.Errorf("two roots: %v", roots)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := chat.Random(file); err == nil {
		t.Error("a folder is made of a file")
	}
}

// What cannot be talked to is refused before a network is begun, and who leaves in the middle is let go.
func TestRunRefuses(t *testing.T) {
	if _, err := chat.Run(t.Context(), chat.Options{Dir: t.TempDir(), Model: filepath.Join(t.TempDir(), "none"), Name: "none"}); err == nil {
		t.Error("a model is served that is not there")
	}
	mute := lmtest.Folder(t, "mute", map[string]string{"tokenizer_config.json": "{}"})
	if _, err := chat.Run(t.Context(), chat.Options{Dir: t.TempDir(), Model: mute, Name: "mute"}); err == nil || !strings.Contains(err.Error(), "chat template") {
		t.Errorf("a model without a template: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	_, err := chat.Run(ctx, chat.Options{Dir: t.TempDir(), Model: lmtest.Folder(t, "tiny", nil), Name: "tiny", Line: func(s string) {
		if strings.HasPrefix(s, "network") {
			cancel()
		}
	}})
	if err == nil || time.Since(begun) > time.Minute {
		t.Errorf("who leaves waits %s: %v", time.Since(begun), err)
	}
}
