package proof_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
)

// fragmentd is what one custodian keeps of a receipt's checkpoints.
type fragmentd struct {
	code     erasure.Code
	number   int
	states   []canon.Hash
	truth    *graph.State // checkpoint 2 of 3, the start not counted
	fragment *graph.State
	roots    []canon.Hash // of the fragments
}

func newFragmentd(t testing.TB, c erasure.Code, number int) *fragmentd {
	t.Helper()
	p := &fragmentd{code: c, number: number, truth: stored(t), roots: []canon.Hash{seed(1), {}, seed(3)}, states: []canon.Hash{seed(4), seed(5), {}, seed(6)}}
	var err error
	if p.fragment, err = c.Fragment(p.truth, number); err != nil {
		t.Fatal(err)
	}
	p.states[2] = rootOf(t, p.truth)
	p.roots[1] = rootOf(t, p.fragment)
	return p
}

func rootOf(t testing.TB, s *graph.State) canon.Hash {
	t.Helper()
	root, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func (p *fragmentd) check(w *proof.WrongFragment) error {
	return w.Check(p.code, p.number, canon.Root(p.roots), p.states)
}

var keeping = []erasure.Code{{Fragments: 4, Needed: 2}, {Fragments: 5, Needed: 3}, {Fragments: 16, Needed: 5}}

// Every question about a fragment is answered by it, and by nothing else.
func TestQuestionsAboutFragments(t *testing.T) {
	p := newFragmentd(t, keeping[0], 3)
	records := p.truth.Tensors[3]
	asked := map[int]int{}
	for i := range 1000 {
		q := proof.SampleFragments(seed(i), canon.Root(p.roots), len(p.roots), records.Root())
		asked[q.State]++
		if q.State < 0 {
			a := q.ShowTensor(records)
			if err := q.Check(&a); err != nil {
				t.Fatal(err)
			}
			continue
		}
		a, err := q.ShowFragment(p.fragment, p.roots)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Check(&a); (err == nil) != (q.State == 2) {
			t.Fatalf("the fragment of checkpoint 2 shown as that of %d: %v", q.State, err)
		}
		if whole, err := q.ShowState(p.truth); err != nil || q.Check(&whole) == nil {
			t.Fatalf("a tile of the state is shown as one of the fragment: %v", err)
		}
	}
	if len(asked) != 4 || asked[0] != 0 {
		t.Errorf("asked for %v", asked)
	}
}

// Whatever is wrong in a fragment is shown.
func TestWrongFragmentIsShown(t *testing.T) {
	bends := map[string]func(s *graph.State){
		"a tensor is missing": func(s *graph.State) { s.Slots, s.Tensors = s.Slots[:4], s.Tensors[:4] },
		"nearly all missing":  func(s *graph.State) { s.Slots, s.Tensors = s.Slots[2:3], s.Tensors[2:3] },
		"a tensor too many": func(s *graph.State) {
			s.Slots, s.Tensors = append(s.Slots, graph.Slot{Name: "z"}), append(s.Tensors, s.Tensors[0])
		},
		"another name":          func(s *graph.State) { s.Slots[4].Name = "slot 5" },
		"another name, empty":   func(s *graph.State) { s.Slots[1].Name = "slot 1a" },
		"another type":          func(s *graph.State) { s.Tensors[2] = bytesOf(tensor.Int64, s.Tensors[2].Shape, s.Tensors[2]) },
		"another shape":         func(s *graph.State) { x := s.Tensors[3]; s.Tensors[3] = bytesOf(x.Type, tensor.Shape{x.Len()}, x) },
		"an empty tensor":       func(s *graph.State) { s.Tensors[3] = tensor.Must(tensor.New(tensor.Uint64, tensor.Shape{0})) },
		"tiles of an empty one": func(s *graph.State) { s.Tensors[1] = tensor.Must(tensor.New(tensor.Uint64, tensor.Shape{1})) },
	}
	for slot := range 5 {
		for _, at := range []int{0, 1 << 10, 1 << 12} {
			bends[fmt.Sprint("byte ", at, " of tensor ", slot)] = func(s *graph.State) {
				if b := s.Tensors[slot].Bytes(); len(b) > 0 {
					b[at%len(b)] ^= 0x10
				}
			}
		}
	}
	largest := 0
	for _, c := range keeping {
		for number := range c.Fragments {
			for name, bend := range bends {
				p := newFragmentd(t, c, number)
				bad := p.fragment
				bend(bad)
				if rootOf(t, bad) == p.roots[1] {
					continue // nothing to bend
				}
				p.roots[1] = rootOf(t, bad)
				w, err := proof.FindWrongFragment(c, number, 2, p.truth, bad, p.roots)
				if err != nil || w == nil {
					t.Fatalf("%+v, fragment %d, %s: %v", c, number, name, err)
				}
				if err := p.check(w); err != nil {
					t.Fatalf("%+v, fragment %d, %s: %v", c, number, name, err)
				}
				b := canon.Marshal(w)
				var again proof.WrongFragment
				if err := canon.Unmarshal(b, &again); err != nil || p.check(&again) != nil || len(b) > proof.MaxWrongFragment {
					t.Fatalf("%+v, fragment %d, %s, %d bytes: %v", c, number, name, len(b), err)
				}
				largest = max(largest, len(b))
			}
		}
	}
	t.Logf("the largest has %d bytes", largest)
}

func bytesOf(typ tensor.DType, s tensor.Shape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Must(tensor.FromBytes(typ, s, x.Bytes()))
}

// openings returns every way to show tiles of a state, one for a tensor without.
func openings(t *testing.T, s *graph.State, beside []canon.Hash) (out [][]proof.Shown) {
	t.Helper()
	for i, x := range s.Tensors {
		k, err := s.Keyed()
		if err != nil {
			t.Fatal(err)
		}
		tree := canon.NewTree(x.Leaves())
		base := proof.Shown{Beside: beside, Slot: k.Open(i), Type: x.Type, Shape: x.Shape}
		tiles := []proof.Shown{}
		for n := range tree.Len() {
			a := base
			a.Tile, a.Path = x.Tile(nil, n), tree.Prove(n)
			tiles = append(tiles, a)
		}
		if len(tiles) == 0 {
			tiles = append(tiles, base)
		}
		out = append(out, tiles)
	}
	return out
}

// A fragment that is right is not shown to be wrong by any tiles of it and of its state.
func TestRightFragmentIsNotConvicted(t *testing.T) {
	for _, c := range keeping {
		for _, number := range []int{0, c.Needed - 1, c.Needed, c.Fragments - 1} {
			p := newFragmentd(t, c, number)
			if w, err := proof.FindWrongFragment(c, number, 2, p.truth, p.fragment, p.roots); err != nil || w != nil {
				t.Fatalf("%+v, fragment %d: %v, %v", c, number, w, err)
			}
			states := openings(t, p.truth, nil)
			for _, kept := range openings(t, p.fragment, canon.NewTree(p.roots).Prove(1)) {
				for stripe := range kept {
					for _, tiles := range states {
						for lo := range tiles {
							for hi := lo + 1; hi <= len(tiles); hi++ {
								for _, s := range []int{stripe, lo, lo / c.Needed} {
									w := &proof.WrongFragment{State: 2, Stripe: s, Fragment: kept[stripe], Tiles: tiles[lo:hi]}
									if p.check(w) == nil {
										t.Fatalf("%+v, fragment %d: tensor %d, stripe %d, tiles %d to %d", c, number, kept[0].Slot.Index, stripe, lo, hi)
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// What shows a wrong fragment shows nothing once anything in it is changed, and nothing
// about another fragment, state or root.
func TestWrongFragmentIsBound(t *testing.T) {
	p := newFragmentd(t, keeping[1], 4)
	p.fragment.Tensors[3].Bytes()[4000] ^= 1
	p.roots[1] = rootOf(t, p.fragment)
	w, err := proof.FindWrongFragment(p.code, 4, 2, p.truth, p.fragment, p.roots)
	if err != nil || p.check(w) != nil {
		t.Fatal(err, p.check(w))
	}
	for name, err := range map[string]error{
		"another root":  w.Check(p.code, 4, seed(9), p.states),
		"other states":  w.Check(p.code, 4, canon.Root(p.roots), append(slices.Clone(p.states[:2]), seed(5), seed(6))),
		"fewer states":  w.Check(p.code, 4, canon.Root(p.roots), p.states[:3]),
		"a larger code": w.Check(erasure.Code{Fragments: 5, Needed: 2}, 4, canon.Root(p.roots), p.states),
		"no states":     w.Check(p.code, 4, canon.Root(p.roots), nil),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, bend := range map[string]func(w *proof.WrongFragment){
		"the first state":  func(w *proof.WrongFragment) { w.State = 0 },
		"another state":    func(w *proof.WrongFragment) { w.State = 1 },
		"no such state":    func(w *proof.WrongFragment) { w.State = 4 },
		"another stripe":   func(w *proof.WrongFragment) { w.Stripe++ },
		"a far stripe":     func(w *proof.WrongFragment) { w.Stripe = 1 << 39 },
		"no tiles":         func(w *proof.WrongFragment) { w.Tiles = nil },
		"a tile less":      func(w *proof.WrongFragment) { w.Tiles = w.Tiles[1:] },
		"a tile twice":     func(w *proof.WrongFragment) { w.Tiles[1] = w.Tiles[0] },
		"too many":         func(w *proof.WrongFragment) { w.Tiles = append(w.Tiles, w.Tiles...) },
		"the fragment's":   func(w *proof.WrongFragment) { w.Tiles[0] = w.Fragment },
		"the state's":      func(w *proof.WrongFragment) { w.Fragment = w.Tiles[0] },
		"nothing":          func(w *proof.WrongFragment) { *w = proof.WrongFragment{} },
		"an endless shape": func(w *proof.WrongFragment) { w.Tiles[0].Shape = tensor.Shape{-1, 1 << 62, 4} },
	} {
		bad := *w
		bad.Tiles = slices.Clone(w.Tiles)
		bend(&bad)
		if p.check(&bad) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b := canon.Marshal(w)
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		var w proof.WrongFragment
		if canon.Unmarshal(bad, &w) == nil && p.check(&w) == nil {
			t.Fatalf("byte %d of %d may be anything", i, len(b))
		}
	}
}

// Whatever is read as the proof of a wrong fragment, it proves nothing about one that is
// right.
func FuzzWrongFragment(f *testing.F) {
	p := newFragmentd(f, keeping[0], 2)
	bad := newFragmentd(f, keeping[0], 2)
	bad.fragment.Tensors[3].Bytes()[0] ^= 1
	bad.roots[1] = rootOf(f, bad.fragment)
	for _, kept := range []*fragmentd{bad, p} {
		w, err := proof.FindWrongFragment(p.code, 2, 2, p.truth, bad.fragment, kept.roots)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(canon.Marshal(w))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var w proof.WrongFragment
		if canon.Unmarshal(b, &w) != nil {
			return
		}
		if again := canon.Marshal(&w); !bytes.Equal(again, b) {
			t.Fatalf("%x was read as %x", b, again)
		}
		if p.check(&w) == nil {
			t.Fatal("a custodian is convicted whose fragment is right")
		}
	})
}

func BenchmarkCheckWrongFragment(b *testing.B) {
	c := erasure.Code{Fragments: 16, Needed: 5}
	x := tensor.Must(tensor.New(tensor.Float64, tensor.Shape{1 << 10, 1 << 10}))
	s := &graph.State{Slots: []graph.Slot{{Name: "w", Type: x.Type, Shape: x.Shape}}, Tensors: []*tensor.Tensor{x}}
	fragment, err := c.Fragment(s, 15)
	if err != nil {
		b.Fatal(err)
	}
	fragment.Tensors[0].Bytes()[1<<20] = 1
	roots, states := []canon.Hash{rootOf(b, fragment)}, []canon.Hash{{}, rootOf(b, s)}
	w, err := proof.FindWrongFragment(c, 15, 1, s, fragment, roots)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Check(c, 15, canon.Root(roots), states); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(canon.Marshal(w))), "bytes")
}
