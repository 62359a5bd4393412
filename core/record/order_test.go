package record

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEveryEpochReadsEveryRecordOfAShardOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Order{Seed: rapid.Uint64().Draw(t, "seed"), Records: rapid.IntRange(1, 300).Draw(t, "records"), Batch: rapid.IntRange(1, 9).Draw(t, "batch")}
		o.Shards = rapid.IntRange(1, min(o.Records, 6)).Draw(t, "shards")
		owner := map[int64]int{}
		for shard := range o.Shards {
			lo, hi := o.Records*shard/o.Shards, o.Records*(shard+1)/o.Shards
			for epoch := range 2 {
				seen := map[int64]bool{}
				for p := epoch * (hi - lo); p < (epoch+1)*(hi-lo); p++ {
					r := o.Row(shard, p/o.Batch, p%o.Batch)
					if r < int64(lo) || r >= int64(hi) || seen[r] {
						t.Fatalf("shard %d (%d to %d), epoch %d: record %d", shard, lo, hi, epoch, r)
					}
					seen[r] = true
					owner[r] = shard
				}
			}
		}
		if len(owner) != o.Records {
			t.Fatalf("shards cover %d of %d records", len(owner), o.Records)
		}
	})
}

func TestOrderDependsOnSeedShardAndEpoch(t *testing.T) {
	o := Order{Seed: 1, Records: 4000, Shards: 2, Batch: 2000}
	same := func(a, b []int64, offset int64) bool {
		for i := range a {
			if a[i] != b[i]-offset {
				return false
			}
		}
		return true
	}
	first := o.Rows(0, 0)
	if !same(first, o.Rows(0, 0), 0) {
		t.Fatal("the order is not a function")
	}
	other := o
	other.Seed = 2
	if same(first, other.Rows(0, 0), 0) || same(first, o.Rows(0, 1), 0) || same(first, o.Rows(1, 0), 2000) {
		t.Fatal("seed, epoch or shard do not matter")
	}
	// A shuffled run has about n²/4 inversions; an unshuffled one none.
	inversions := 0
	for i := range first {
		for j := i + 1; j < len(first); j++ {
			if first[i] > first[j] {
				inversions++
			}
		}
	}
	if n := len(first); inversions < n*n/5 || inversions > n*n*3/10 {
		t.Fatalf("%d inversions of %d records", inversions, len(first))
	}
}

func BenchmarkRow(b *testing.B) {
	o := Order{Seed: 1, Records: 1_000_000, Shards: 4, Batch: 16}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o.Row(i%4, i, i%16)
	}
}
