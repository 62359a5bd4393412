package train_test

import (
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

func TestMergeTakesMeansInShardOrder(t *testing.T) {
	tr := begin(t, bigram(), recipe())
	const shards = 3
	var ends []*graph.State
	for shard := range shards {
		s := tr.Start
		for range 2 {
			s = run(t, tr.Program, []int64{int64(shard), int64(shard + 2)}, s)
		}
		ends = append(ends, s)
	}
	g, p, err := train.Merge(tr.Start.Slots, shards)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Outputs) != len(tr.Start.Slots) || p.Groups != shards {
		t.Fatalf("%d outputs, %d groups", len(g.Outputs), p.Groups)
	}
	merged := run(t, p, nil, ends...)
	for i, slot := range merged.Slots {
		switch slot.Name {
		case "step", "power/beta1", "power/beta2":
			if !merged.Tensors[i].Equal(ends[0].Tensors[i]) {
				t.Errorf("%s is not that of the first shard", slot.Name)
			}
			continue
		}
		for e, got := range tensor.Of[float32](merged.Tensors[i]) {
			sum := tensor.Of[float32](ends[0].Tensors[i])[e]
			for _, end := range ends[1:] {
				sum += tensor.Of[float32](end.Tensors[i])[e]
			}
			if want := float32(sum * (1 / float32(shards))); got != want {
				t.Fatalf("%s[%d] = %v, want %v", slot.Name, e, got, want)
			}
		}
	}
}

func TestMergeOfOneShardIsThatShard(t *testing.T) {
	tr := begin(t, bigram(), recipe())
	s := run(t, tr.Program, []int64{0, 1}, tr.Start)
	_, p, err := train.Merge(tr.Start.Slots, 1)
	if err != nil {
		t.Fatal(err)
	}
	merged := run(t, p, nil, s)
	for i := range s.Tensors {
		if !merged.Tensors[i].Equal(s.Tensors[i]) {
			t.Errorf("%s changed", s.Slots[i].Name)
		}
	}
	for _, shards := range []int{0, -1, 1 << 20} {
		if _, _, err := train.Merge(tr.Start.Slots, shards); err == nil {
			t.Errorf("%d shards were merged", shards)
		}
	}
}
