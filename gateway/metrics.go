package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tally-network/tally/gateway/reply"
)

// metrics are what Prometheus reads of a gateway. Their labels are of few values: paths as routes have them, and models that are there.
type metrics struct {
	handler  http.Handler
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	first    prometheus.Histogram
	tokens   *prometheus.CounterVec
}

func newMetrics(q *queue, models reply.Models) *metrics {
	all := prometheus.NewRegistry()
	m := &metrics{handler: promhttp.HandlerFor(all, promhttp.HandlerOpts{})}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tally_gateway_requests_total", Help: "Requests that were answered."}, []string{"path", "status"})
	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tally_gateway_request_seconds", Help: "How long answers took, to their last byte.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
	}, []string{"path"})
	m.first = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "tally_gateway_first_token_seconds", Help: "How long first tokens took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
	})
	m.tokens = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tally_gateway_tokens_total", Help: "Tokens that models read and wrote."}, []string{"model", "kind"})
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	all.MustRegister(
		m.requests, m.took, m.first, m.tokens, collectors.NewGoCollector(),
		gauge("tally_gateway_running", "Replies that were admitted and are not over.", q.running.Load),
		gauge("tally_gateway_waiting", "Requests that wait to be admitted.", q.waiting.Load),
	)
	if d, drafts := models.(reply.Drafts); drafts {
		counter := func(name, help string, value func() int64) prometheus.Collector {
			return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
		}
		all.MustRegister(
			counter("tally_gateway_draft_tokens_total", "Tokens that were drafted.", func() int64 { n, _ := d.Drafts(); return n }),
			counter("tally_gateway_accepted_tokens_total", "Drafted tokens that were drawn.", func() int64 { _, n := d.Drafts(); return n }),
		)
	}
	return m
}

func (m *metrics) serve(w http.ResponseWriter, r *http.Request) error {
	m.handler.ServeHTTP(w, r)
	return nil
}

func (m *metrics) request(path string, status int, took time.Duration) {
	m.requests.WithLabelValues(path, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(path).Observe(took.Seconds())
}

func (m *metrics) count(model string, read, written int) {
	if read > 0 {
		m.tokens.WithLabelValues(model, "read").Add(float64(read))
	}
	if written > 0 {
		m.tokens.WithLabelValues(model, "written").Add(float64(written))
	}
}
