package p2p

import (
	"testing"

	"github.com/tally-network/tally/store"
)

// BenchmarkFetch moves a blob of 32 MiB from disk to disk over loopback.
func BenchmarkFetch(b *testing.B) {
	for name, listen := range transports {
		b.Run(name, func(b *testing.B) {
			x, y := newHost(b, 1, listen), newHost(b, 2, listen)
			know(b, y, x)
			from, to := newStore(b), newStore(b)
			x.ServeBlocks(from, everybody)
			r := put(b, from, noisy(32<<20))
			b.SetBytes(r.Size)
			for b.Loop() {
				if err := to.Fetch(b.Context(), store.Request{Ref: r, Sources: []store.Source{y.Source(x.ID())}}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := to.Delete(r); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCall is the round trip of a small message.
func BenchmarkCall(b *testing.B) {
	for name, listen := range transports {
		b.Run(name, func(b *testing.B) {
			x, y := newHost(b, 1, listen), newHost(b, 2, listen)
			know(b, y, x)
			x.Handle(echo, echoing)
			for b.Loop() {
				if _, err := y.Call(b.Context(), echo, x.ID(), []byte("ping")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkClose is the shutdown of a host with a connection.
func BenchmarkClose(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		x, y := newHost(b, 1), newHost(b, 2)
		know(b, y, x)
		if err := y.Connect(b.Context(), x.ID()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
