package proof_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
)

// stored returns a state of tensors of many sizes, among them a scalar, an empty
// one and one of several tiles.
func stored(t testing.TB) *graph.State {
	t.Helper()
	s := &graph.State{}
	for i, shape := range []tensor.Shape{{}, {0, 7}, {5}, {65, 33}, {3, 40, 2}} {
		x := tensor.Must(tensor.New(tensor.Float64, shape))
		for j := range x.Len() {
			x.Set(j, tensor.Word(1000*i+j))
		}
		s.Slots = append(s.Slots, graph.Slot{Name: fmt.Sprint("slot ", i), Type: x.Type, Shape: x.Shape})
		s.Tensors = append(s.Tensors, x)
	}
	return s
}

func seed(i int) canon.Hash { return canon.Sum("seed", []byte(fmt.Sprint(i))) }

// Every question about what is kept can be answered; all that is kept is asked for;
// an answer is right for no other tile.
func TestQuestions(t *testing.T) {
	s := stored(t)
	root, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	records := s.Tensors[3]
	states := []canon.Hash{canon.Sum("other"), root}
	asked := map[string]int{}
	shown := map[string]proof.Shown{}
	questions := map[string]proof.Sample{}
	for i := range 3000 {
		q := proof.SampleStates(seed(i), states, records.Root())
		if q.State == 0 {
			asked["other"]++
			continue
		}
		a := q.ShowTensor(records)
		if q.State > 0 {
			if a, err = q.ShowState(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Check(&a); err != nil {
			t.Fatalf("question %d: %v", i, err)
		}
		b := canon.Marshal(&a)
		if len(b) > proof.MaxShown {
			t.Fatalf("an answer has %d bytes", len(b))
		}
		what := fmt.Sprint(q.State, a.Slot.Entry.Key, canon.Root(a.Path), a.Tile)
		asked[what]++
		shown[what], questions[what] = a, q
	}
	// One other state, six tiles of the records, and of the state six, four and one
	// of each of the other three tensors, the empty one included.
	if want := 1 + 6 + 6 + 4 + 3; len(asked) != want {
		t.Errorf("%d things are asked for, want %d", len(asked), want)
	}
	for a, x := range shown {
		for b, q := range questions {
			if err := q.Check(&x); (err == nil) != (a == b) {
				t.Errorf("the answer to another question: %v", err)
			}
		}
	}
	if n := asked["other"]; n < 850 || n > 1150 {
		t.Errorf("a third of 3000 questions is about each of three; the first got %d", n)
	}
}

func BenchmarkCheckShown(b *testing.B) {
	x := tensor.Must(tensor.New(tensor.Float64, tensor.Shape{1 << 10, 1 << 10}))
	s := &graph.State{Slots: []graph.Slot{{Name: "w", Type: x.Type, Shape: x.Shape}}, Tensors: []*tensor.Tensor{x}}
	root, err := s.Root()
	if err != nil {
		b.Fatal(err)
	}
	q := proof.Sample{Root: root, Seed: seed(1)}
	a, err := q.ShowState(s)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Check(&a); err != nil {
			b.Fatal(err)
		}
	}
}
