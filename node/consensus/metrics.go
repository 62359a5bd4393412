package consensus

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics reads the state of a node when it is asked to. CometBFT's own metrics
// register with the process, where two nodes would clash.
type metrics struct{ n *Node }

var gauges = []struct {
	desc *prometheus.Desc
	read func(*Node) float64
}{
	{gauge("height", "Height of the last block."), func(n *Node) float64 { return float64(n.Height()) }},
	{gauge("peers", "Connected nodes."), func(n *Node) float64 { return float64(n.Peers()) }},
	{gauge("mempool_transactions", "Transactions that wait for a block."), func(n *Node) float64 { return float64(n.comet.Mempool().Size()) }},
	{gauge("mempool_bytes", "Their size."), func(n *Node) float64 { return float64(n.comet.Mempool().SizeBytes()) }},
	{gauge("catching_up", "1 while the node fetches old blocks."), func(n *Node) float64 {
		if n.comet.ConsensusReactor().WaitSync() {
			return 1
		}
		return 0
	}},
	{gauge("block_time_seconds", "Time of the last block, as Unix time."), func(n *Node) float64 {
		if meta := n.comet.BlockStore().LoadBlockMeta(n.Height()); meta != nil {
			return float64(meta.Header.Time.UnixMilli()) / 1e3
		}
		return 0
	}},
}

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tally_consensus_"+name, help, nil, nil)
}

// Describe implements prometheus.Collector.
func (metrics) Describe(c chan<- *prometheus.Desc) {
	for _, g := range gauges {
		c <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m metrics) Collect(c chan<- prometheus.Metric) {
	for _, g := range gauges {
		c <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.read(m.n))
	}
}
