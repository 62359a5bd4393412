package p2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	bandwidth "github.com/libp2p/go-libp2p/core/metrics"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/prometheus/client_golang/prometheus"
)

type side string

const (
	sideIn  side = "in"  // we answer
	sideOut side = "out" // we ask
)

type outcome string

const (
	outcomeOK      outcome = "ok"
	outcomeFailed  outcome = "failed" // the handler returned an error
	outcomeRefused outcome = "refused"
	outcomeBusy    outcome = "busy"
	outcomeBroken  outcome = "broken" // no response arrived
)

// metrics are one host's own. Those of libp2p live in package variables, which
// would mix the hosts of one process, so they are off.
type metrics struct {
	exchanges *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	running   *prometheus.GaugeVec
	bandwidth *bandwidth.BandwidthCounter
}

func newMetrics() *metrics {
	return &metrics{
		exchanges: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tally_p2p_exchanges_total",
			Help: "Exchanges that ended, by protocol, side (in: we answer; out: we ask) and outcome.",
		}, []string{"protocol", "side", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tally_p2p_exchange_seconds",
			Help:    "Time that an exchange took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"protocol", "side"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tally_p2p_exchanges_running",
			Help: "Exchanges that run now.",
		}, []string{"protocol", "side"}),
		bandwidth: bandwidth.NewBandwidthCounter(),
	}
}

// register adds the metrics of host h to a node's registry.
func (m *metrics) register(to prometheus.Registerer, h host.Host) error {
	counter := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f)
	}
	for _, c := range []prometheus.Collector{
		m.exchanges, m.seconds, m.running,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tally_p2p_peers", Help: "Peers that are connected.",
		}, func() float64 { return float64(len(h.Network().Peers())) }),
		counter("tally_p2p_received_bytes_total", "Bytes received on streams.",
			func() float64 { return float64(m.bandwidth.GetBandwidthTotals().TotalIn) }),
		counter("tally_p2p_sent_bytes_total", "Bytes sent on streams.",
			func() float64 { return float64(m.bandwidth.GetBandwidthTotals().TotalOut) }),
	} {
		if err := to.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// begin counts an exchange from now until done is called.
func (m *metrics) begin(p protocol.ID, s side) (done func(outcome)) {
	running := m.running.WithLabelValues(string(p), string(s))
	running.Inc()
	start := time.Now()
	return func(o outcome) {
		running.Dec()
		m.seconds.WithLabelValues(string(p), string(s)).Observe(time.Since(start).Seconds())
		m.exchanges.WithLabelValues(string(p), string(s), string(o)).Inc()
	}
}
