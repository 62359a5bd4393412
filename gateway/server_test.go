package gateway_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/replytest"
	"github.com/tally-network/tally/model/lm"
)

// held is a model whose replies stop after a token until they are let go.
func held(after int) (replytest.Script, func()) {
	gate := make(chan struct{})
	return replytest.Script{Text: "some words that are enough", Wait: func(ctx context.Context, token int) error {
		if token < after {
			return nil
		}
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, sync.OnceFunc(func() { close(gate) })
}

// open begins a stream and returns once its first piece has come.
func (s *served) open(t testing.TB, ctx context.Context, path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(w.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return w
}

// When a client leaves, the work for it ends, whatever API it came by.
func TestClientsThatLeave(t *testing.T) {
	script, _ := held(2)
	s := start(t, gateway.Config{Parallel: 8}, map[string]replytest.Script{"m": script})
	for path, body := range map[string]string{ // each alone
		"/v1/chat/completions": user("m", `,"stream":true,"n":3`), "/v1/messages": said("m", `,"stream":true`), "/api/chat": user("m", ""),
		"/v1/responses": `{"model":"m","input":"x","stream":true}`, "/v1/completions": `{"model":"m","prompt":"x","stream":true}`, "/api/generate": `{"model":"m","prompt":"x"}`,
	} {
		ctx, cancel := context.WithCancel(context.Background())
		w := s.open(t, ctx, path, body)
		if s.Running.Load() == 0 {
			t.Errorf("%s: nothing runs", path)
		}
		cancel()
		w.Body.Close()
		eventually(t, path+": the end of work", func() bool { return s.Running.Load() == 0 })
	}
	ctx, cancel := context.WithCancel(context.Background()) // who waits for a whole reply may leave, too
	go func() {
		eventually(t, "work", func() bool { return s.Running.Load() == 1 })
		cancel()
	}()
	r, _ := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/chat/completions", strings.NewReader(user("m", "")))
	if w, err := s.client.Do(r); err == nil {
		w.Body.Close()
		t.Error("a reply came")
	}
	eventually(t, "the end of work", func() bool { return s.Running.Load() == 0 })
	eventually(t, "room", func() bool {
		return dig(t, s.ask(t, "GET", "/health", "").body, "running") == 0.0
	})
}

func TestTwoHundredAtOnce(t *testing.T) {
	s := start(t, gateway.Config{Parallel: 50}, scripts)
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			var a answer
			switch i % 4 {
			case 0:
				a = s.ask(t, "POST", "/v1/chat/completions", user("hello", `,"stream":true`))
			case 1:
				a = s.ask(t, "POST", "/v1/messages", said("hello", ""))
			case 2:
				a = s.ask(t, "POST", "/api/chat", user("hello", ""))
			case 3:
				ctx, cancel := context.WithCancel(context.Background())
				w := s.open(t, ctx, "/v1/completions", `{"model":"long","prompt":"x","stream":true,"max_tokens":4000}`)
				cancel()
				w.Body.Close()
				return
			}
			if a.status != 200 || !strings.Contains(string(a.body), "ld") {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	group.Wait()
	eventually(t, "the end of all work", func() bool { return s.Running.Load() == 0 })
}

func TestQueue(t *testing.T) {
	script, release := held(0)
	s := start(t, gateway.Config{Parallel: 1, Waiting: 1, Patience: 50 * time.Millisecond}, map[string]replytest.Script{"m": script, "hello": scripts["hello"]})
	first := make(chan answer, 1)
	go func() { first <- s.ask(t, "POST", "/v1/chat/completions", user("m", `,"n":2`)) }()
	eventually(t, "work", func() bool { return s.Running.Load() == 2 })
	a := s.ask(t, "POST", "/v1/messages", said("hello", "")) // waits, and gives up
	if a.status != 503 || dig(t, a.body, "error", "type") != "overloaded_error" || a.header.Get("Retry-After") != "2" || !strings.Contains(string(a.body), "no room for 50ms") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for full := false; !full; { // of several who wait, all but one are turned away at once
		if ctx.Err() != nil {
			t.Fatal("the queue is never full")
		}
		var group sync.WaitGroup
		var lock sync.Mutex
		for range 8 {
			group.Go(func() {
				a := s.ask(t, "POST", "/api/chat", user("hello", ""))
				lock.Lock()
				defer lock.Unlock()
				full = full || a.status == 503 && strings.Contains(string(a.body), "1 requests wait already")
			})
		}
		group.Wait()
	}
	release()
	if a := <-first; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

const secretKey = "sesame"

func keysFile(t *testing.T, more string) string {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	sum := sha256.Sum256([]byte(secretKey))
	if err := os.WriteFile(path, []byte("keys:\n- name: alice\n  sha256: "+hex.EncodeToString(sum[:])+"\n"+more), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeys(t *testing.T) {
	path := keysFile(t, "  budget: 60\n")
	keys, err := gateway.OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, gateway.Config{Keys: keys}, scripts)
	const chat = "/v1/chat/completions"
	for _, x := range []struct {
		path    string
		headers []string
		status  int
		kind    any
	}{
		{chat, nil, 401, "authentication_error"}, {chat, []string{"Authorization", "Bearer other"}, 401, "authentication_error"}, {"/v1/messages", []string{"X-Api-Key", "other"}, 401, "authentication_error"},
		{chat, []string{"Authorization", "bearer " + secretKey}, 200, nil}, {"/v1/messages", []string{"X-Api-Key", secretKey}, 200, nil},
		{chat, []string{"X-Api-Key", secretKey}, 429, "insufficient_quota"}, {"/api/pull", []string{"Authorization", "Bearer " + secretKey}, 403, nil},
	} {
		a := s.ask(t, "POST", x.path, user("hello", `,"max_tokens":8`), x.headers...)
		if a.status != x.status || dig(t, a.body, "error", "type") != x.kind {
			t.Errorf("%s %v: %d %s", x.path, x.headers, a.status, a.body)
		}
	}
	for path, status := range map[string]int{"/health": 200, "/openapi.json": 200, "/api/version": 200, "/": 200, "/metrics": 401, "/v1/models": 401, "/api/tags": 401} { // each alone
		if a := s.ask(t, "GET", path, ""); a.status != status {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	again, err := gateway.OpenKeys(path) // what was spent is known after a restart
	if err != nil || again.Spent()["alice"] != keys.Spent()["alice"] || again.Spent()["alice"] < 40 || again.Spent()["alice"] > 60 {
		t.Errorf("%v %v %v", again.Spent(), keys.Spent(), err)
	}
}

// Only an owner says for how long a model takes memory from all.
func TestOwnersKeepModels(t *testing.T) {
	for _, owner := range []bool{false, true} {
		keys, err := gateway.OpenKeys(keysFile(t, fmt.Sprintf("  owner: %v\n", owner)))
		if err != nil {
			t.Fatal(err)
		}
		s := start(t, gateway.Config{Keys: keys}, scripts)
		ask := func(path, body string) answer { return s.ask(t, "POST", path, body, "X-Api-Key", secretKey) }
		for path, body := range map[string]string{"/api/chat": user("hello", `,"keep_alive":-1`), "/api/generate": `{"model":"hello","prompt":"x","keep_alive":"99h"}`, "/api/embed": `{"model":"vectors","input":"x","keep_alive":-1}`} { // each alone
			if a := ask(path, body); a.status != 200 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		if n := len(s.Keeps); (n > 0) != owner {
			t.Errorf("an owner %v has said %d times how long models stay", owner, n)
		}
		want := map[bool]int{false: 403, true: 200}[owner]
		if a := ask("/api/generate", `{"model":"hello","keep_alive":0}`); a.status != want {
			t.Errorf("unloading: %d %s", a.status, a.body)
		}
	}
}

func TestRates(t *testing.T) {
	keys, err := gateway.OpenKeys(keysFile(t, "  requests_per_minute: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, gateway.Config{Keys: keys}, scripts)
	var last answer
	for range 3 {
		last = s.ask(t, "GET", "/v1/models", "", "Authorization", "Bearer "+secretKey)
	}
	wait, err := strconv.Atoi(last.header.Get("Retry-After"))
	if last.status != 429 || err != nil || wait < 1 || wait > 30 || dig(t, last.body, "error", "type") != "rate_limit_error" {
		t.Errorf("%d %v %s", last.status, last.header, last.body)
	}
}

func TestKeysRefused(t *testing.T) {
	good := "keys: [{name: a, sha256: " + strings.Repeat("a0", 32) + "}"
	for _, x := range []struct{ text, says string }{
		{"keys: []", "there are 0 keys"}, {"keys: [{name: a, sha256: abc}]", "64 hexadecimal digits"}, {"keys: [{sha256: x}]", "want one of its own"}, {"keys: [null]", "empty"},
		{good + ", {name: a}]", "want one of its own"}, {good + ", {name: b, sha256: " + strings.Repeat("a0", 32) + "}]", "also that of"},
		{good + ", {name: b, sha256: " + strings.Repeat("b1", 32) + ", budget: -1}]", "at least 0"}, {good + ", {secret: b}]", "secret"},
	} {
		if _, err := gateway.ReadKeys([]byte(x.text)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", x.text, err, x.says)
		}
	}
	key, sum := gateway.NewKey()
	if _, err := gateway.ReadKeys([]byte("keys: [{name: a, sha256: " + sum + "}]")); err != nil || len(key) < 30 {
		t.Errorf("%s %v", key, err)
	}
}

// Nobody else's machine is served without keys.
func TestOthersNeedKeys(t *testing.T) {
	keys, err := gateway.OpenKeys(keysFile(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	s := startAt(t, "0.0.0.0:0", gateway.Config{Keys: keys}, scripts)
	for secret, status := range map[string]int{secretKey: 200, "": 401} { // each alone
		if a := s.ask(t, "POST", "/v1/chat/completions", user("hello", ""), "Host", "gateway.example.org", "X-Api-Key", secret); a.status != status {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	err = gateway.New(gateway.Config{Models: replytest.New(t, nil)}).Serve(context.Background(), l)
	if err == nil || !strings.Contains(err.Error(), "configure keys") {
		t.Errorf("%v", err)
	}
}

// Pages of strangers cannot speak to a gateway on loopback, by no name that they give it.
func TestStrangersPages(t *testing.T) {
	s := start(t, gateway.Config{Origins: []string{"https://chat.example.org"}}, scripts)
	for _, x := range []struct {
		header, value string
		status        int
	}{
		{"Host", "localhost:99", 200}, {"Host", "127.8.8.8", 200}, {"Host", "[::1]:80", 200}, {"Host", "a.localhost", 200}, {"Host", "evil.example.org", 403}, {"Host", "localhost.example.org", 403}, {"Host", "10.0.0.1:11434", 403},
		{"Origin", "http://localhost:3000", 200}, {"Origin", "https://127.0.0.1", 200}, {"Origin", "https://chat.example.org", 200},
		{"Origin", "https://evil.example.org", 403}, {"Origin", "null", 403}, {"Origin", "http://localhost.evil.org", 403}, {"Origin", "ftp://localhost", 403},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/api/chat"} {
			a := s.ask(t, "POST", path, said("hello", ""), x.header, x.value)
			if a.status != x.status || x.header == "Origin" && a.header.Get("Access-Control-Allow-Origin") != map[int]string{200: x.value}[x.status] {
				t.Errorf("%s %s %s: %d %v %s", path, x.header, x.value, a.status, a.header, a.body)
			}
		}
	}
	a := s.ask(t, "OPTIONS", "/v1/chat/completions", "", "Origin", "http://localhost:3000", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Headers") == "" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

func TestMetrics(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	s.ask(t, "POST", "/v1/chat/completions", user("hello", ""))
	s.ask(t, "POST", "/v1/chat/completions", user("none", ""))
	s.ask(t, "GET", "/v1/models/hello", "")
	s.ask(t, "GET", "/.git/config", "")
	text := string(s.ask(t, "GET", "/metrics", "").body)
	tokens, _ := s.Tokenizer.Encode(scripts["hello"].Text, false)
	for _, want := range []string{
		`tally_gateway_requests_total{path="/v1/chat/completions",status="200"} 1`, `tally_gateway_requests_total{path="/v1/chat/completions",status="404"} 1`,
		`tally_gateway_requests_total{path="/v1/models/{name...}",status="200"} 1`, `tally_gateway_requests_total{path="other",status="404"} 1`,
		fmt.Sprintf(`tally_gateway_tokens_total{kind="written",model="hello"} %d`, len(tokens)+1), "tally_gateway_first_token_seconds_count 1", "tally_gateway_running 0",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

// drafting are models that draft.
type drafting struct{ reply.Models }

func (drafting) Drafts() (drafted, accepted int64) { return 9, 7 }

func TestMetricsOfDrafts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.New(gateway.Config{Models: drafting{replytest.New(t, scripts)}}).Serve(ctx, l)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	answer, err := http.Get("http://" + l.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tally_gateway_draft_tokens_total 9", "tally_gateway_accepted_tokens_total 7"} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

func TestOpenAPI(t *testing.T) {
	s := start(t, gateway.Config{}, scripts)
	a := s.ask(t, "GET", "/openapi.json", "")
	body := func(path string) []any {
		return []any{"paths", path, "post", "requestBody", "content", "application/json", "schema", "properties"}
	}
	if dig(t, a.body, "openapi") != "3.1.0" || dig(t, a.body, append(body("/v1/chat/completions"), "messages", "items", "properties", "role", "type")...) != "string" ||
		dig(t, a.body, append(body("/v1/chat/completions"), "temperature", "type")...) != "number" || dig(t, a.body, append(body("/v1/chat/completions"), "audio")...) != nil ||
		dig(t, a.body, append(body("/api/chat"), "options", "properties", "num_ctx", "type")...) != "integer" || dig(t, a.body, "paths", "/v1/models/{name}", "get", "parameters", 0, "in") != "path" {
		t.Errorf("%s", a.body)
	}
	for path := range dig(t, a.body, "paths").(map[string]any) { // each alone
		if got := s.ask(t, "PATCH", strings.Replace(path, "{name}", "x", 1), ""); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", path, got.status)
		}
	}
}

// A gateway that stops lets replies end.
func TestStopping(t *testing.T) {
	script, release := held(1)
	s := start(t, gateway.Config{}, map[string]replytest.Script{"m": script})
	w := s.open(t, context.Background(), "/api/chat", user("m", ""))
	defer w.Body.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	eventually(t, "the end of listening", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	release()
	last := ""
	for lines := bufio.NewScanner(w.Body); lines.Scan(); last = lines.Text() {
	}
	if !strings.Contains(last, `"done":true`) {
		t.Errorf("the reply ends in %s", last)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A fault of the gateway itself costs one request. What has begun is cut off, so that nobody takes it for the whole.
func TestPanics(t *testing.T) {
	s := start(t, gateway.Config{}, map[string]replytest.Script{
		"early": {Tokens: func(*lm.Request) []int32 { panic("a fault") }},
		"late": {Text: "some words", Wait: func(_ context.Context, token int) error {
			if token > 2 {
				panic("a fault")
			}
			return nil
		}},
	})
	for path, kind := range map[string]string{"/v1/chat/completions": "server_error", "/v1/messages": "api_error"} { // each alone
		if a := s.ask(t, "POST", path, said("early", "")); a.status != 500 || dig(t, a.body, "error", "type") != kind || strings.Contains(string(a.body), "a fault") {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := s.ask(t, "POST", "/v1/chat/completions", user("early", `,"n":3`)); a.status != 500 {
		t.Errorf("%d %s", a.status, a.body)
	}
	w := s.open(t, context.Background(), "/api/chat", user("late", ""))
	defer w.Body.Close()
	if _, err := io.ReadAll(w.Body); err == nil {
		t.Error("the stream ends as if it were whole")
	}
	if s.Running.Load() != 0 || s.ask(t, "GET", "/health", "").status != 200 {
		t.Error("the gateway is not well")
	}
}

// Who says that much will come, and sends nothing, is in nobody's way.
func TestSilentBodiesTakeNoRoom(t *testing.T) {
	s := start(t, gateway.Config{Body: 256 << 20}, scripts)
	body, w := io.Pipe() // of a length that nobody knows
	first := make(chan int, 1)
	go func() {
		a, err := s.client.Post(s.url+"/v1/chat/completions", "application/json", body)
		if err != nil {
			t.Error(err)
			return
		}
		a.Body.Close()
		first <- a.StatusCode
	}()
	if _, err := io.WriteString(w, "  "); err != nil {
		t.Fatal(err)
	}
	for range 3 { // what has not come yet takes no room
		if a := s.ask(t, "POST", "/v1/messages", said("hello", "")); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if _, err := io.WriteString(w, user("hello", "")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if status := <-first; status != 200 {
		t.Errorf("%d", status)
	}
	if a := s.ask(t, "POST", "/v1/messages", said("hello", "")); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
