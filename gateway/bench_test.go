package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tally-network/tally/gateway"
	"github.com/tally-network/tally/internal/testkit/replytest"
)

// BenchmarkStream measures what a token costs from the model to the client, both in this process.
func BenchmarkStream(b *testing.B) {
	for name, path := range map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"} { // each alone
		b.Run(name, func(b *testing.B) {
			s := start(b, gateway.Config{}, scripts)
			const tokens = 1000
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				w, err := s.client.Post(s.url+path, "application/json", strings.NewReader(user("long", `,"stream":true,"max_tokens":1000,"options":{"num_predict":1000}`)))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, w.Body); err != nil {
					b.Fatal(err)
				}
				w.Body.Close()
			}
			runtime.ReadMemStats(&after)
			n := float64(b.N * tokens)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/token")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/token")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/token")
		})
	}
}

const idleStreams = 1000

// A thousand streams that wait for their next token take little memory. Most of what is measured is the test's own clients.
func TestIdleStreams(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*idleStreams+100 {
		t.Skipf("%d files may be open, %v", limit.Cur, err)
	}
	script, release := held(2)
	s := start(t, gateway.Config{Parallel: idleStreams}, map[string]replytest.Script{"m": script})
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := used()
	var group sync.WaitGroup
	streams := make([]*http.Response, idleStreams)
	limiter := make(chan struct{}, 50)
	for i := range streams {
		group.Go(func() {
			limiter <- struct{}{}
			defer func() { <-limiter }()
			streams[i] = s.open(t, context.Background(), "/v1/chat/completions", user("m", `,"stream":true`))
		})
	}
	group.Wait()
	after := used()
	took := (after - before) >> 10
	t.Logf("%d idle streams and their clients take %d KiB, %d each", idleStreams, took, took/idleStreams)
	if s.Running.Load() != idleStreams || took > 300<<10 {
		t.Errorf("%d streams take %d KiB, want at most 300 MiB", s.Running.Load(), took)
	}
	release()
	for _, w := range streams {
		last := ""
		for lines := bufio.NewScanner(w.Body); lines.Scan(); {
			if lines.Text() != "" {
				last = lines.Text()
			}
		}
		w.Body.Close()
		if last != "data: [DONE]" {
			t.Fatalf("a stream ends in %q", last)
		}
	}
}
