package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/internal/testkit/replytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const call = `<tool_call>{"name": "weather", "arguments": {"city": "Zürich"}}</tool_call>`

// scripts are the models of most tests.
var scripts = map[string]replytest.Script{
	"hello":  {Text: "Hello there, wörld."},
	"caller": {Text: "Let me see.\n" + call},
	"long":   {Text: strings.Repeat("word ", 1000)},
	"breaks": {Text: "It begins", Break: errors.New("secret of the machine")},
	"broken": {Break: errors.New("secret of the machine")},
	"plain":  {Text: "once upon", Plain: true},
}

// served is a gateway that runs.
type served struct {
	*replytest.Models
	url    string
	client *http.Client
	stop   func() error
}

func start(t testing.TB, c gateway.Config, scripts map[string]replytest.Script) *served {
	t.Helper()
	return startAt(t, "127.0.0.1:0", c, scripts)
}

func startAt(t testing.TB, address string, c gateway.Config, scripts map[string]replytest.Script) *served {
	t.Helper()
	models := replytest.New(t, scripts)
	c.Models = models
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.New(c).Serve(ctx, l) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	s := &served{Models: models, url: "http://" + l.Addr().String(), client: &http.Client{Transport: transport}}
	s.stop = sync.OnceValue(func() error {
		transport.CloseIdleConnections()
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return s
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request; its headers are in pairs.
func (s *served) ask(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	w, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.StatusCode, w.Header, text}
}

// dig returns what is at a path of keys and places in a JSON text, or nil.
func dig(t testing.TB, text []byte, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[p]
		case int:
			a, _ := v.([]any)
			if p >= len(a) {
				return nil
			}
			v = a[p]
		}
	}
	return v
}

// events returns the data of a stream of events, and their names.
func events(t testing.TB, body []byte) (names []string, data [][]byte) {
	t.Helper()
	name := ""
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			names, data = append(names, name), append(data, []byte(value))
		case "":
			name = ""
		default:
			t.Fatalf("line %q", lines.Text())
		}
	}
	return names, data
}

// eventually waits for what must happen.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + " did not happen")
		}
	}
}
