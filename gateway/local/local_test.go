package local

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
)

const template = lmtest.Template

func folder(t testing.TB, name string, instead map[string]string) string {
	return lmtest.Folder(t, name, instead)
}

func models(t *testing.T, o Options, paths ...string) *Models {
	t.Helper()
	o.Exec = cpu.New(1)
	m, err := New(o, paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func said(t *testing.T, m *Models, a *reply.Ask) (string, *reply.End) {
	t.Helper()
	run, err := (&reply.Service{Models: m}).Begin(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var all strings.Builder
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(e.Text)
		if e.End != nil {
			return all.String(), e.End
		}
	}
	t.Fatal("the reply broke off")
	return "", nil
}

// A conversation goes through the template, the tokenizer and the model, and has the same reply each time.
func TestConversation(t *testing.T) {
	m := models(t, Options{}, folder(t, "tiny", nil))
	seed := uint64(5)
	ask := func() *reply.Ask {
		return &reply.Ask{Model: "tiny", MaxTokens: 12, Seed: &seed, Sampling: lm.Sampling{Temperature: 1}, Chat: &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: "why?"}}}}
	}
	first, end := said(t, m, ask())
	if end.Tokens < 1 || end.Tokens > 12 {
		t.Errorf("%+v", end)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again, _ := said(t, m, ask()); again != first {
				t.Errorf("%q, and before it was %q", again, first)
			}
		})
	}
	wg.Wait()
	all, err := m.Loaded(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "tiny" || all[0].Memory == 0 || !all[0].Until.After(time.Now()) {
		t.Errorf("%+v, %v", all, err)
	}
	if all[0].Details.Template != template || all[0].Details.Family != "llama" || all[0].Digest == "" {
		t.Errorf("%+v", all[0].Listing)
	}
}

// Replies are bound to a schema, if the model's tokens can write it.
func TestFormats(t *testing.T) {
	m := models(t, Options{}, folder(t, "tiny", nil))
	a := &reply.Ask{
		Model: "tiny", MaxTokens: 20, Sampling: lm.Sampling{Temperature: 1}, Format: &reply.Format{Field: "format", Schema: json.RawMessage(`{"type":"integer","maximum":99}`)},
		Chat: &reply.Conversation{Messages: []reply.Message{{Role: "user", Text: "how many?"}}},
	}
	text, end := said(t, m, a)
	if n, err := strconv.Atoi(text); end.Reason == reply.Stop && (err != nil || n > 99) {
		t.Errorf("%q, %v", text, err)
	}
	a.Format.Schema = reply.AnyObject
	_, err := (&reply.Service{Models: m}).Begin(t.Context(), a)
	var f *api.Fault
	if !errors.As(err, &f) || f.Param != "format" || !strings.Contains(f.Message, "cannot write this form") {
		t.Errorf("%v", err)
	}
}

// Models that nobody uses make room; those in use do not.
func TestModelsMakeRoom(t *testing.T) {
	x, y := folder(t, "x", nil), folder(t, "y", nil)
	m := models(t, Options{MaxOpen: 1}, x, y)
	open := func(name string) error {
		_, err := m.Open(t.Context(), name, nil)
		return err
	}
	if err := errors.Join(open("x"), open("y"), open("x:latest")); err != nil {
		t.Fatal(err)
	}
	a, err := m.Open(t.Context(), "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range a.Replier.Reply(t.Context(), &lm.Request{Prompt: []int32{3}, MaxTokens: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		var f *api.Fault
		if err := open("y"); !errors.As(err, &f) || f.Status != http.StatusServiceUnavailable || f.Retry == 0 {
			t.Errorf("%v while x replies", err)
		}
	}
	if err := open("y"); err != nil {
		t.Error(err)
	}
	var f *api.Fault
	for _, err := range a.Replier.Reply(t.Context(), &lm.Request{Prompt: []int32{3}, MaxTokens: 3}) { // x was closed
		if !errors.As(err, &f) || f.Status != http.StatusServiceUnavailable {
			t.Errorf("%v from a model that was closed", err)
		}
	}
}

// A model stays as long as its last request says.
func TestKeeping(t *testing.T) {
	m := models(t, Options{}, folder(t, "tiny", nil))
	count := func() int {
		all, err := m.Loaded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	forever, short := time.Duration(-1), time.Duration(0)
	if _, err := m.Open(t.Context(), "tiny", &forever); err != nil {
		t.Fatal(err)
	}
	if all, _ := m.Loaded(t.Context()); len(all) != 1 || !all[0].Until.IsZero() {
		t.Errorf("%+v", all)
	}
	if _, err := m.Open(t.Context(), "tiny", &short); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); count() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the model stays")
		}
	}
}

func TestUnknownModels(t *testing.T) {
	m := models(t, Options{}, folder(t, "tiny", nil))
	var f *api.Fault
	if _, err := m.Open(t.Context(), "other", nil); !errors.As(err, &f) || f.Status != http.StatusNotFound {
		t.Error(err)
	}
	if err := m.Pull(t.Context(), "other", func(reply.Progress) {}); !errors.As(err, &f) {
		t.Error(err)
	}
	dir := folder(t, "tiny", nil)
	if _, err := New(Options{}, dir, dir); err == nil || !strings.Contains(err.Error(), "two models are called tiny") {
		t.Error(err)
	}
	if _, err := New(Options{}, t.TempDir()); err == nil {
		t.Error("an empty folder is a model")
	}
	broken := folder(t, "broken", map[string]string{"tokenizer.json": "{}"})
	b := models(t, Options{}, broken)
	for range 2 { // a failure is not kept
		if _, err := b.Open(t.Context(), "broken", nil); err == nil {
			t.Error("a broken model opens")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Open(ctx, "tiny", nil); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.Close()
	if _, err := m.Open(t.Context(), "tiny", nil); !errors.Is(err, replies.ErrClosed) {
		t.Errorf("%v after the end", err)
	}
}

// A model whose files hit a fault is refused, and one whose serving does is opened again; the process goes on.
func TestFaultsOfModels(t *testing.T) {
	m := models(t, Options{}, folder(t, "tiny", nil))
	m.read = func(string) (*Files, error) { panic("a fault") }
	if _, err := m.Open(t.Context(), "tiny", nil); err == nil || !strings.Contains(err.Error(), "a fault") || api.FaultOf(err).Status != http.StatusInternalServerError {
		t.Errorf("%v", err)
	}
	m.read = Open
	e := &faulty{Executor: m.options.Exec}
	m.options.Exec = e
	ask := func() error {
		a, err := m.Open(t.Context(), "tiny", nil)
		if err != nil {
			return err
		}
		for _, err := range a.Replier.Reply(t.Context(), &lm.Request{Prompt: []int32{3}, MaxTokens: 3}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	e.now.Store(true)
	if err := ask(); !errors.Is(err, replies.ErrFailed) {
		t.Errorf("%v", err)
	}
	e.now.Store(false)
	if err := ask(); err != nil {
		t.Errorf("%v after a fault", err)
	}
}

// faulty is an executor that panics when it is told to.
type faulty struct {
	engine.Executor
	now atomic.Bool
}

func (f *faulty) Prepare(p *graph.Program) (engine.Runner, error) {
	if f.now.Load() {
		panic("a fault")
	}
	return f.Executor.Prepare(p)
}
