package consensus_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkStart measures the time from the start of four validators to the
// first block.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		net := newNetwork(b, b.TempDir(), 4)
		b.StartTimer()
		net.start(b)
		net.waitHeight(b, 1)
		b.StopTimer()
		net.stop(b)
		b.StartTimer()
	}
}

// BenchmarkIdle measures what validators cost while nothing happens: the share of one
// core, and resident memory.
func BenchmarkIdle(b *testing.B) {
	for _, validators := range []int{4, 20} {
		b.Run(strconv.Itoa(validators), func(b *testing.B) { idle(b, validators) })
	}
}

func idle(b *testing.B, validators int) {
	net := newNetwork(b, b.TempDir(), validators)
	for i := range net.configs {
		net.configs[i].CommitTimeout = 500 * time.Millisecond
		net.configs[i].EmptyInterval = time.Second
	}
	net.start(b)
	net.waitHeight(b, 2)
	runtime.GC()
	const rest = 10 * time.Second
	for b.Loop() {
		before, height := cpu(), net.nodes[0].Height()
		time.Sleep(rest)
		b.ReportMetric(100*(cpu()-before).Seconds()/rest.Seconds(), "%core")
		b.ReportMetric(rest.Seconds()/float64(net.nodes[0].Height()-height), "s/block")
		b.ReportMetric(rss(b), "MB")
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func rss(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("resident memory is read from /proc")
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return float64(pages*os.Getpagesize()) / 1e6
}
