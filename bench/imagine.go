package bench

import (
	"encoding/binary"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
)

// An imagined dispute is a real game over a claim that nobody has computed. A
// game shows a few leaves of its trees and their neighbours; all other subtrees
// are named by hashes that nothing stands behind. So models and runs of any size
// can be disputed without their memory: every move has the bytes that it would
// have, and the referee does all its work.
type imagined struct {
	program    *graph.Program
	commitment *graph.Commitment
	rules      dispute.Rules
	claim      dispute.Claim
	opening    dispute.Opening

	// The defender is wrong in one fold block of one element.
	step, node, element, block int

	after    []tensor.Word         // what the block gives: the accumulator, or the element
	read     []reading             // what it reads
	operands map[graph.Ref]operand // of which
	start    woods                 // the state before the step, by slot
	trace    woods                 // roots of the outputs
	output   woods                 // tiles of the node's output
	lie      struct{ trace, output woods }
	tile     int    // of the output
	content  []byte // of it, as the defender has it
}

// reading is a tile of an operand.
type reading struct{ arg, tile int }

// operand is a tensor of which some tiles are read.
type operand struct {
	tensor.Layout
	tiles woods
}

func (o operand) root() canon.Hash { return o.Root(o.tiles.root()) }

// woods is a Merkle tree of which a few leaves are known. Searches show it in
// steps of some levels; subtrees there that hold nothing known are made up.
type woods struct {
	name  string
	n     int
	depth int // levels of a step
	known map[int]canon.Hash
}

func (w woods) node(s canon.Span) canon.Hash {
	level := 0
	for at := canon.Full(w.n); at != s; level++ {
		l, r, _ := at.Split()
		if at = r; l.Has(s.Lo) {
			at = l
		}
	}
	return w.hash(s, level)
}

func (w woods) hash(s canon.Span, level int) canon.Hash {
	known := false
	for i := range w.known {
		known = known || s.Has(i)
	}
	l, r, inner := s.Split()
	switch {
	case !known && (!inner || level%w.depth == 0):
		return canon.Sum("imagined", []byte(w.name), binary.LittleEndian.AppendUint64(nil, uint64(s.Lo)), binary.LittleEndian.AppendUint64(nil, uint64(s.N)))
	case !inner:
		return w.known[s.Lo]
	}
	h, err := s.Join(1, []canon.Hash{w.hash(l, level+1), w.hash(r, level+1)})
	if err != nil {
		panic(err) // two hashes are what a split span takes
	}
	return h
}

func (w woods) nodes(spans []canon.Span) []canon.Hash {
	out := make([]canon.Hash, len(spans))
	for i, s := range spans {
		out[i] = w.node(s)
	}
	return out
}

func (w woods) root() canon.Hash { return canon.RootOf(w.n, w.node(canon.Full(w.n))) }

// path returns the hashes beside leaf i, from the leaf up to the top of s.
func (w woods) path(s canon.Span, i int) []canon.Hash {
	l, r, ok := s.Split()
	if !ok {
		return nil
	}
	if l.Has(i) {
		return append(w.path(l, i), w.node(r))
	}
	return append(w.path(r, i), w.node(l))
}

func (w woods) prove(i int) []canon.Hash { return w.path(canon.Full(w.n), i) }

func (g *imagined) woods(name string, n int) woods {
	return woods{name, n, g.rules.Depth, map[int]canon.Hash{}}
}

// with returns w with one more leaf known.
func (w woods) with(i int, h canon.Hash) woods {
	known := map[int]canon.Hash{i: h}
	for j, other := range w.known {
		if j != i {
			known[j] = other
		}
	}
	w.known = known
	return w
}

// imagine makes up a unit of steps, with a checkpoint each interval, in which
// the defender is wrong in one fold block of an element.
func imagine(r dispute.Rules, p *graph.Program, c *graph.Commitment, steps, interval, step, node, element, block int) (*imagined, error) {
	g := &imagined{rules: r, program: p, commitment: c, step: step, node: node, element: element, block: block, operands: map[graph.Ref]operand{}}
	rows := max(p.Rows, 1)
	g.claim = dispute.Claim{
		Program: c.Root(), Steps: steps, Interval: interval,
		Batch: dispute.Batch{Order: record.Order{Seed: 1, Records: 1 << 20, Shards: 1, Batch: rows}},
	}
	if err := g.touch(); err != nil {
		return nil, err
	}
	g.commit()
	points := g.woods("checkpoints", g.claim.Segments()+1)
	last := points.n - 1
	segment := step / interval
	from, to := segment*interval, min((segment+1)*interval, steps)
	g.claim.Inputs, g.claim.End = []canon.Hash{g.state(0, true)}, g.state(steps, true)
	points = points.with(0, g.claim.Inputs[0]).with(last, g.claim.End).with(segment, g.state(from, true)).with(segment+1, g.state(to, true))
	g.claim.Checkpoints = points.root()
	g.opening = dispute.Opening{Segment: segment, From: g.state(from, true), To: g.state(to, true), FromPath: points.prove(segment), ToPath: points.prove(segment + 1)}
	return g, nil
}

// touch finds the tiles that the block in dispute reads.
func (g *imagined) touch() (err error) {
	n := &g.program.Nodes[g.node]
	var from []tensor.Word
	if g.block > 0 {
		from = g.accumulator(g.block, true)
	}
	g.after, err = dispute.Recompute(n.Primitive, g.element, g.block, from, func(arg, i int) (tensor.Word, error) {
		ref, a := n.From[arg], n.Args[arg]
		if ref.Kind == graph.RefRows {
			return tensor.Word(g.claim.Batch.Row(g.step, i)), nil
		}
		o, ok := g.operands[ref]
		if !ok {
			o = operand{tensor.LayoutOf(a.Type, a.Shape), g.woods(ref.String(), tensor.LayoutOf(a.Type, a.Shape).Tiles())}
			if ref.Kind == graph.RefConst { // these are there
				for tile, h := range g.program.Consts[ref.Index].Leaves() {
					o.tiles.known[tile] = h
				}
			}
			g.operands[ref] = o
		}
		tile, place := o.Find(i)
		if r := (reading{arg, tile}); !slices.Contains(g.read, r) {
			g.read = append(g.read, r)
		}
		b := g.bytes(ref, o.Layout, tile)
		o.tiles.known[tile] = tensor.TileHash(b)
		return o.Word(b, place), nil
	})
	return err
}

// commit makes the trees around what is read.
func (g *imagined) commit() {
	p := g.program
	g.start, g.trace = g.woods("state", len(p.Slots)), g.woods("trace", len(p.Nodes))
	for ref, o := range g.operands {
		switch ref.Kind {
		case graph.RefSlot:
			g.start.known[ref.Index] = canon.Entry{Key: p.Slots[ref.Index].Name, Value: o.root()}.Leaf()
		case graph.RefNode:
			g.trace.known[ref.Index] = o.root()
		case graph.RefData:
			g.claim.Data = o.root()
		}
	}
	n := &p.Nodes[g.node]
	l := tensor.LayoutOf(n.Type, n.Shape)
	var place int
	g.tile, place = l.Find(g.element)
	truth, size := g.bytes(graph.Ref{Kind: graph.RefNode, Index: g.node}, l, g.tile), n.Type.Size()
	if g.block == max(n.Blocks(), 1)-1 {
		element := tensor.Must(tensor.New(n.Type, tensor.Shape{1}))
		element.Set(0, g.after[0])
		copy(truth[place*size:], element.Bytes())
	}
	g.content = slices.Clone(truth)
	g.content[place*size] ^= 1
	g.output = g.woods("output", l.Tiles()).with(g.tile, tensor.TileHash(truth))
	g.lie.output = g.output.with(g.tile, tensor.TileHash(g.content))
	g.trace, g.lie.trace = g.trace.with(g.node, l.Root(g.output.root())), g.trace.with(g.node, l.Root(g.lie.output.root()))
}

// state returns the root after some steps, as the defender or the challenger has
// it.
func (g *imagined) state(after int, defender bool) canon.Hash {
	if after == g.step {
		return g.start.root()
	}
	side := byte(0)
	if defender && after > g.step {
		side = 1
	}
	return canon.Sum("imagined", []byte("state"), binary.LittleEndian.AppendUint64(nil, uint64(after)), []byte{side})
}

// accumulator returns the words before a fold block, as the defender or the
// challenger has them.
func (g *imagined) accumulator(block int, defender bool) []tensor.Word {
	n := &g.program.Nodes[g.node]
	lo, _ := n.Block(block)
	s := make([]tensor.Word, tensor.NewCell(n.Primitive, nil).StateLen(lo))
	for i := range s {
		s[i] = word(n.Type, float64(block*len(s)+i)/3)
	}
	if block == g.block+1 {
		copy(s, g.after)
	}
	if defender && block > g.block {
		s[0] ^= 1
	}
	return s
}

// bytes makes up a tile of what ref names.
func (g *imagined) bytes(ref graph.Ref, l tensor.Layout, tile int) []byte {
	if ref.Kind == graph.RefConst {
		return g.program.Consts[ref.Index].Tile(nil, tile)
	}
	n := l.TileBytes(tile) / l.Type.Size()
	t := tensor.Must(tensor.New(l.Type, tensor.Shape{n}))
	for place := range n {
		t.Set(place, word(l.Type, float64(place%7)/2))
	}
	return t.Bytes()
}

// word is x as an element of type t.
func word(t tensor.DType, x float64) tensor.Word {
	switch {
	case t.Float():
		return tensor.FloatWord(t, x)
	case t == tensor.Bool:
		return tensor.Word(x) % 2
	}
	return tensor.Word(x)
}
