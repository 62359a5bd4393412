package bench

import (
	"testing"
)

// A new node begins at the state of a chain whose orders were settled without a network.
func TestStateSync(t *testing.T) {
	rows, err := StateSync(t.Context(), 20, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Log(r)
	}
}

// BenchmarkStateSync is of 10⁴ orders.
func BenchmarkStateSync(b *testing.B) {
	for b.Loop() {
		rows, err := StateSync(b.Context(), 10_000, b.Logf)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			b.Log(r)
		}
	}
}

// BenchmarkDisk is of 10⁴ orders.
func BenchmarkDisk(b *testing.B) {
	for b.Loop() {
		rows, err := Disk(b.Context(), 10_000, b.Logf)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			b.Log(r)
		}
	}
}
