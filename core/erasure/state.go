package erasure

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// words are the types of fragments, by the size of an element in bytes.
var words = [...]tensor.DType{1: tensor.Uint8, 2: tensor.Uint16, 4: tensor.Uint32, 8: tensor.Uint64}

// Layout returns the layout of a fragment of a tensor: a tile for each stripe, each as
// large as the tensor's first, below one another or, if that is lower than a whole
// tile, side by side.
func (c Code) Layout(l tensor.Layout) tensor.Layout {
	h, w := min(l.Rows, tensor.TileSide), min(l.Cols, tensor.TileSide)
	stripes := (l.Tiles() + c.Needed - 1) / c.Needed
	shape := tensor.Shape{h, w * stripes}
	if h == tensor.TileSide {
		shape = tensor.Shape{h * stripes, w}
	}
	if stripes == 0 {
		shape = tensor.Shape{0}
	}
	return tensor.LayoutOf(words[l.Type.Size()], shape)
}

// Slots returns the slots of a fragment of a state that has the given slots.
func (c Code) Slots(of []graph.Slot) []graph.Slot {
	out := make([]graph.Slot, len(of))
	for i, s := range of {
		l := c.Layout(tensor.LayoutOf(s.Type, s.Shape))
		out[i] = graph.Slot{Name: s.Name, Type: l.Type, Shape: l.Shape}
	}
	return out
}

// Bytes returns how many bytes an encoded fragment of a state with the given slots has at
// most.
func (c Code) Bytes(of []graph.Slot) uint64 {
	n := uint64(16)
	for _, s := range c.Slots(of) {
		n += uint64(len(s.Name)) + 64 + uint64(s.Shape.Elements())*uint64(s.Type.Size())
	}
	return n
}

// Fragment returns a fragment of a state.
func (c Code) Fragment(s *graph.State, fragment int) (*graph.State, error) {
	if !c.Valid() || fragment < 0 || fragment >= c.Fragments {
		return nil, fmt.Errorf("fragment %d of %d, of which %d are needed", fragment, c.Fragments, c.Needed)
	}
	out := &graph.State{Slots: c.Slots(s.Slots)}
	for i, t := range s.Tensors {
		p, err := tensor.New(out.Slots[i].Type, out.Slots[i].Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", s.Slots[i].Name, err)
		}
		c.cut(p, t, fragment)
		out.Tensors = append(out.Tensors, p)
	}
	return out, nil
}

// cut fills p with a fragment of t.
func (c Code) cut(p, t *tensor.Tensor, fragment int) {
	row, stripe := c.row(fragment), make([][]byte, c.Needed)
	n, stripes := tensor.LayoutOf(t.Type, t.Shape).Tiles(), tensor.LayoutOf(p.Type, p.Shape).Tiles()
	var tile []byte
	for s := range stripes {
		lo, hi := c.Stripe(s, n)
		for i := lo; i < hi; i++ {
			stripe[i-lo] = t.Tile(stripe[i-lo][:0], i)
		}
		tile = p.Tile(tile[:0], s) // as long as it must be
		combine(tile, row, stripe[:hi-lo])
		p.SetTile(s, tile)
	}
}

// Held is a fragment of a state that somebody has.
type Held struct {
	Number   int
	Fragment *graph.State
}

// Rebuild returns the state with the given slots that the first Needed of the
// fragments make up. Whether they are fragments of one state the root of the result shows.
func (c Code) Rebuild(slots []graph.Slot, held []Held) (*graph.State, error) {
	if !c.Valid() || len(held) < c.Needed {
		return nil, fmt.Errorf("%d fragments are there, %d are needed", len(held), c.Needed)
	}
	held = held[:c.Needed]
	var rows [][]byte
	want := c.Slots(slots)
	for _, h := range held {
		if h.Number < 0 || h.Number >= c.Fragments {
			return nil, fmt.Errorf("fragment %d of %d", h.Number, c.Fragments)
		}
		if err := h.Fragment.Fits(want); err != nil {
			return nil, fmt.Errorf("fragment %d: %w", h.Number, err)
		}
		rows = append(rows, c.row(h.Number))
	}
	inverse, ok := invert(rows)
	if !ok {
		return nil, fmt.Errorf("a fragment is there twice")
	}
	out := &graph.State{Slots: slots}
	for i, slot := range slots {
		t, err := tensor.New(slot.Type, slot.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", slot.Name, err)
		}
		c.join(t, i, held, inverse)
		out.Tensors = append(out.Tensors, t)
	}
	return out, nil
}

// join fills t with what tensor i of the fragments makes up.
func (c Code) join(t *tensor.Tensor, i int, held []Held, inverse [][]byte) {
	l := tensor.LayoutOf(t.Type, t.Shape)
	stripe := make([][]byte, len(held))
	var tile []byte
	for n := range l.Tiles() {
		if n%c.Needed == 0 {
			for j, h := range held {
				stripe[j] = h.Fragment.Tensors[i].Tile(stripe[j][:0], n/c.Needed)
			}
			tile = append(tile[:0], stripe[0]...)
		}
		combine(tile, inverse[n%c.Needed], stripe)
		t.SetTile(n, tile[:l.TileBytes(n)])
	}
}
