package local

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/lm"
)

// Adapted models are listed and reply beside their base, which stays open as long as one of them is; they make room for each other alone.
func TestAdapters(t *testing.T) {
	path := folder(t, "tiny", nil)
	var all []Adapter
	for _, name := range []string{"llama-some", "llama-other", "llama-all"} {
		all = append(all, Adapter{Name: name, Base: "tiny", Dir: lmtest.Adapter(t, name)})
	}
	m := models(t, Options{Adapters: all, MaxOpen: 1, MaxAdapters: 2}, path, folder(t, "y", nil))
	listed, err := m.List(t.Context())
	if err != nil || len(listed) != 5 {
		t.Fatalf("%+v, %v", listed, err)
	}
	digests := map[string]bool{}
	for _, l := range listed {
		digests[l.Digest] = true
	}
	if len(digests) != 4 { // tiny and y are the same
		t.Errorf("%d digests of %+v", len(digests), listed)
	}
	seed := uint64(5)
	ask := func(name string) *reply.Ask {
		return &reply.Ask{Model: name, MaxTokens: 12, Seed: &seed, Sampling: lm.Sampling{Temperature: 1}, Chat: &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: "why?"}}}}
	}
	texts := map[string]string{}
	for range 2 { // the second time those are opened again that had made room
		for _, name := range []string{"tiny", "llama-some", "llama-other", "llama-all"} {
			text, _ := said(t, m, ask(name))
			if old, known := texts[name]; known && old != text {
				t.Errorf("%s says %q, and before it said %q", name, text, old)
			}
			texts[name] = text
		}
	}
	if texts["llama-all"] == texts["tiny"] || texts["llama-some"] == texts["llama-all"] {
		t.Errorf("%q", texts)
	}
	loaded, err := m.Loaded(t.Context())
	if err != nil || len(loaded) != 3 {
		t.Errorf("%+v, %v: want the base and two that it is adapted to", loaded, err)
	}
	if _, err := m.Open(t.Context(), "y", nil); err != nil { // idle adapters leave their base
		t.Error(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		for name, want := range texts { // each alone
			if name == "llama-all" {
				continue
			}
			wg.Go(func() {
				if text, _ := said(t, m, ask(name)); text != want {
					t.Errorf("%s says %q beside others, %q alone", name, text, want)
				}
			})
		}
	}
	wg.Wait()
}

func TestAdaptersThatFail(t *testing.T) {
	path, good := folder(t, "tiny", nil), lmtest.Adapter(t, "llama-some")
	for says, a := range map[string]Adapter{
		"there is no model other": {"x", "other", good}, "two models are called tiny": {"tiny", "tiny", good}, "adapter_config.json": {"x", "tiny", t.TempDir()},
		"has no adapters": {"x", "minilm", good},
	} {
		if _, err := New(Options{Adapters: []Adapter{a}}, path, lmtest.Encoder(t, "minilm", nil)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	m := models(t, Options{Adapters: []Adapter{{"x", "tiny", lmtest.Adapter(t, "gpt2")}}}, path) // found when it is opened
	for range 2 {
		if _, err := m.Open(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "take the adapter's own base") {
			t.Errorf("%v", err)
		}
	}
	if _, err := m.Open(t.Context(), "tiny", nil); err != nil {
		t.Error(err)
	}
}

// adapterIn copies an adapter into a folder, with the times of its files set back so that it has settled.
func adapterIn(t *testing.T, dir, of string, ago time.Duration) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(lmtest.Adapter(t, of), name))
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(at, time.Time{}, time.Now().Add(-ago)); err != nil {
			t.Fatal(err)
		}
	}
}

// What is put into a folder of adapters is served without a restart; what is changed there is another model for who asks next, and has another digest; what
// is taken away is there no more. What is broken hides nothing else, and says what is wrong.
func TestAdapterFolders(t *testing.T) {
	path, dir := folder(t, "tiny", nil), t.TempDir()
	all := []Adapter{{Name: "some", Base: "tiny", Dir: lmtest.Adapter(t, "llama-some")}, {Name: "other", Base: "tiny", Dir: lmtest.Adapter(t, "llama-other")}}
	m := models(t, Options{Adapters: all, AdapterFolders: []AdapterFolder{{"tiny", dir}}}, path)
	seed := uint64(5)
	say := func(name string) string {
		text, _ := said(t, m, &reply.Ask{Model: name, MaxTokens: 12, Seed: &seed, Sampling: lm.Sampling{Temperature: 1}, Chat: &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: "why?"}}}})
		return text
	}
	listed := func() map[string]string {
		all, err := m.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		digests := map[string]string{}
		for _, l := range all {
			digests[l.Name] = l.Digest
		}
		return digests
	}
	if got := listed(); len(got) != 3 {
		t.Fatalf("%v", got)
	}
	if _, err := m.Open(t.Context(), "new", nil); err == nil {
		t.Fatal("an adapter is there before it is")
	}
	at := filepath.Join(dir, "new")
	adapterIn(t, at, "llama-some", time.Hour)
	if got := listed(); len(got) != 4 || got["new"] != got["some"] || got["new"] == got["tiny"] {
		t.Fatalf("%v", got)
	}
	if got := say("new"); got != say("some") || got == say("tiny") {
		t.Errorf("the adapter in the folder says %q", got)
	}
	held, err := m.Open(t.Context(), "new", nil) // by who has asked before it changes
	if err != nil {
		t.Fatal(err)
	}
	adapterIn(t, at, "llama-other", 0) // as if it were still written
	if got := listed(); got["new"] != got["some"] || say("new") != say("some") {
		t.Errorf("%v: an adapter that is written is opened already, or has its digest while the other replies", got)
	}
	adapterIn(t, at, "llama-other", time.Minute)
	if say("new") != say("other") {
		t.Error("an adapter that has changed says what it said before")
	}
	if got := listed(); got["new"] != got["other"] || got["new"] == got["some"] {
		t.Errorf("%v: the digest is stale", got)
	}
	ended := false
	for tok, err := range held.Replier.Reply(t.Context(), &lm.Request{Prompt: []int32{3, 4}, MaxTokens: 3}) {
		if err != nil {
			t.Errorf("who has opened the adapter before it changed: %v", err)
		}
		ended = tok.Reason != ""
	}
	if !ended {
		t.Error("a reply of before breaks off")
	}
	m.mu.Lock()
	base := m.open[place{path: path}]
	users := 0
	for _, x := range m.open { // a sum
		if x.base == base {
			users++
		}
	}
	if base.users != users {
		t.Errorf("the base has %d users, and %d adapters are open", base.users, users)
	}
	m.mu.Unlock()
	if err := os.WriteFile(filepath.Join(at, "adapter_config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(t.Context(), "new", nil); err == nil || !strings.Contains(err.Error(), "adapter new") {
		t.Errorf("%v of a broken adapter", err)
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if got := listed(); len(got) != 3 {
		t.Errorf("%v: an adapter is listed that was taken away", got)
	}
	for says, f := range map[string]AdapterFolder{"there is no model": {"nobody", dir}, "no such file": {"tiny", filepath.Join(dir, "nowhere")}} {
		if _, err := New(Options{AdapterFolders: []AdapterFolder{f}}, path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// An adapter that changes while it is closed has another digest, as the model that is opened then.
func TestDigestsOfAdaptersThatChange(t *testing.T) {
	path, dir := folder(t, "tiny", nil), filepath.Join(t.TempDir(), "a")
	adapterIn(t, dir, "llama-some", time.Hour)
	m := models(t, Options{Adapters: []Adapter{{Name: "a", Base: "tiny", Dir: dir}}}, path)
	digest := func() string {
		all, err := m.List(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[1].Digest
	}
	before := digest()
	adapterIn(t, dir, "llama-other", time.Minute)
	if digest() == before {
		t.Error("the digest is stale")
	}
	x, err := m.Open(t.Context(), "a", nil)
	if err != nil || x.Digest != digest() {
		t.Errorf("%v, %v: want the digest %s that is listed", x, err, digest())
	}
}
