package conform

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Execution is a run of a program by an executor, with all its values.
type Execution struct {
	program *graph.Program
	values  []*tensor.Tensor
	outside func(graph.Ref) *tensor.Tensor
	some    []int // nodes that have elements
	folds   []int // those that have fold blocks
}

// Execute runs p.
func Execute(e engine.Executor, p *graph.Program, in graph.Inputs) (*Execution, error) {
	outside, err := p.Bind(in)
	if err != nil {
		return nil, err
	}
	x := &Execution{program: p, outside: outside}
	_, err = engine.Run(context.Background(), e, p, in, func(i int, out *tensor.Tensor) error {
		x.values = append(x.values, out.Clone())
		if out.Len() > 0 {
			x.some = append(x.some, i)
			if p.Nodes[i].Blocks() > 0 {
				x.folds = append(x.folds, i)
			}
		}
		return nil
	})
	return x, err
}

// The parts of a run that are recomputed alone.
const (
	Tile    = "tile"
	Row     = "row"
	Element = "element"
	Block   = "fold block"
)

// Part recomputes a random part of the run as a referee does, from operands
// that it reads tile by tile, and compares it with what the executor gave. It
// returns the function of the node, and which kind of part it was; neither if
// no node has elements.
func (x *Execution) Part(r *rand.Rand) (fn tensor.Fn, kind string, err error) {
	if len(x.some) == 0 {
		return 0, "", nil
	}
	i := pick(r, x.some...)
	kind = pick(r, Tile, Row, Element, Element)
	if len(x.folds) > 0 && r.IntN(2) == 0 {
		i, kind = pick(r, x.folds...), Block
	}
	n, out := &x.program.Nodes[i], x.values[i]
	c := check{p: n.Primitive, out: out, load: x.load(n)}
	switch kind {
	case Tile:
		err = c.tile(r.IntN(tensor.LayoutOf(out.Type, out.Shape).Tiles()))
	case Row:
		rows, cols := out.Shape.Matrix()
		row := r.IntN(rows)
		for j := 0; j < cols && err == nil; j++ {
			err = c.element(row*cols + j)
		}
	case Element:
		err = c.element(r.IntN(out.Len()))
	case Block:
		err = c.block(r.IntN(out.Len()), r.IntN(n.Blocks()))
	}
	if err != nil {
		err = fmt.Errorf("node %d (%s), %s: %w; %s", i, n.Origin.Op, kind, err, Describe(n.Primitive))
	}
	return n.Fn, kind, err
}

// load reads operands of a node from copies of their tiles.
func (x *Execution) load(n *graph.Opcode) tensor.Load {
	tiles := map[[2]int][]byte{}
	return func(arg, i int) (tensor.Word, error) {
		t := x.outside
		if n.From[arg].Kind == graph.RefNode {
			t = func(r graph.Ref) *tensor.Tensor { return x.values[r.Index] }
		}
		from := t(n.From[arg])
		l := tensor.LayoutOf(from.Type, from.Shape)
		tile, place := l.Find(i)
		at := [2]int{arg, tile}
		if tiles[at] == nil {
			tiles[at] = from.Tile(nil, tile)
		}
		return l.Word(tiles[at], place), nil
	}
}

// check compares parts of a node's output with its definition.
type check struct {
	p    *tensor.Primitive
	out  *tensor.Tensor
	load tensor.Load
}

func (c *check) tile(tile int) error {
	l := tensor.LayoutOf(c.out.Type, c.out.Shape)
	for place := range l.TileBytes(tile) / c.out.Type.Size() {
		i, err := l.Element(tile, place)
		if err == nil {
			err = c.element(i)
		}
		if err != nil {
			return fmt.Errorf("tile %d: %w", tile, err)
		}
	}
	return nil
}

// element runs all blocks of an element, each on the state after the one before.
func (c *check) element(i int) error {
	var s []tensor.Word
	for b := range max(c.p.Blocks(), 1) {
		var err error
		if s, err = dispute.Recompute(c.p, i, b, s, c.load); err != nil {
			return err
		}
	}
	if !slices.Equal(s, []tensor.Word{c.out.At(i)}) {
		return fmt.Errorf("element %d is %#x alone, %#x in the whole", i, s, c.out.At(i))
	}
	return nil
}

// block runs one block on the state before it, as a run from the beginning has
// it.
func (c *check) block(i, b int) error {
	cell := tensor.NewCell(c.p, c.load)
	if err := cell.Seek(i); err != nil {
		return err
	}
	state := func(terms int) ([]tensor.Word, error) {
		s, err := cell.Start()
		if err != nil {
			return nil, err
		}
		return cell.Run(s, 0, terms)
	}
	lo, hi := c.p.Block(b)
	before, err := state(lo)
	if err != nil {
		return err
	}
	after, err := dispute.Recompute(c.p, i, b, before, c.load)
	if err != nil {
		return err
	}
	want := []tensor.Word{c.out.At(i)}
	if b+1 < c.p.Blocks() {
		if want, err = state(hi); err != nil {
			return err
		}
	}
	if !slices.Equal(after, want) {
		return fmt.Errorf("element %d, block %d: %#x alone, %#x in the whole", i, b, after, want)
	}
	return nil
}
