package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// longest counts the moves of a dispute about the largest work that is foreseen:
// 10⁶ steps without a checkpoint between them, 10⁴ nodes, 10⁶ tiles, 10³ fold
// blocks.
func longest(ctx context.Context, o Options) ([]Row, error) {
	const steps, nodes, side = 1_000_000, 10_000, 32_000
	const disputed = 5000 // deep in its tree, as is the first tile in that of tiles
	p := &graph.Program{Groups: 1, Slots: []graph.Slot{{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{side, side}}}}
	from := graph.Ref{Kind: graph.RefSlot}
	for i := range nodes {
		n := &tensor.Primitive{Fn: tensor.Neg, Type: tensor.Float32, Shape: tensor.Shape{side, side}, Args: []tensor.Access{matrix(side, 0, 1)}}
		refs := []graph.Ref{from}
		if i == disputed {
			n.Fn, n.Fold, n.Args = tensor.Dot, []int{side}, []tensor.Access{matrix(side, 0, 2), matrix(side, 2, 1)}
			refs = append(refs, from)
		}
		p.Nodes = append(p.Nodes, graph.Opcode{Primitive: n, From: refs, Origin: graph.Origin{Op: n.Fn.String()}})
		from = graph.Ref{Kind: graph.RefNode, Index: i}
	}
	p.Outputs = []graph.Ref{from}
	if err := p.Check(); err != nil {
		return nil, err
	}
	com, last := p.Commit(), &p.Nodes[disputed]
	tiles := tensor.LayoutOf(last.Type, last.Shape).Tiles()
	o.Tell("disputes about %d steps of %d nodes, an output of %d tiles, sums of %d fold blocks", steps, nodes, tiles, last.Blocks())
	var rows []Row
	for _, depth := range []int{dispute.DefaultRules.Depth, dispute.MaxDepth} {
		r := dispute.DefaultRules
		r.Depth = depth
		g, err := imagine(r, p, com, steps, steps, steps/2, disputed, 0, last.Blocks()-1)
		if err != nil {
			return nil, err
		}
		bytes, largest := len(canon.Marshal(&g.opening)), 0
		at, err := g.play(func(_ *dispute.Game, m dispute.Move) error {
			n := len(dispute.EncodeMove(m))
			bytes, largest = bytes+n, max(largest, n)
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("longest dispute, %d parts a move: ", 1<<depth)
		rows = append(rows,
			row(name+"moves", "", float64(at.Moves)).atMost(30),
			row(name+"moves together", "KiB", float64(bytes)/1024).atMost(256),
			row(name+"largest move", "KiB", float64(largest)/1024).atMost(64),
		)
	}
	return rows, nil
}

// matrix reads element (axis i, axis j) of a float32 matrix.
func matrix(side, i, j int) tensor.Access {
	return tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{side, side}, Dims: []tensor.Dim{
		{Terms: []tensor.Term{{Axis: i, Step: 1}}}, {Terms: []tensor.Term{{Axis: j, Step: 1}}},
	}}
}

// refereeing times the last move of a dispute, decoded and judged, for every primitive function
// on every type that it takes. Operands have 2⁴⁰ elements, of which a fold block reads as many
// tiles as it may.
func refereeing(ctx context.Context, o Options) ([]Row, error) {
	var slowest time.Duration
	var about string
	judged, largest := 0, 0
	for fn := range tensor.Fn(255) {
		for _, p := range widest(fn) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			d, bytes, err := judge(p)
			if err != nil {
				return nil, fmt.Errorf("%v of %v: %w", fn, p.Type, err)
			}
			judged, largest = judged+1, max(largest, bytes)
			if d > slowest {
				slowest, about = d, fmt.Sprintf("%v giving %v", fn, p.Type)
			}
		}
	}
	o.Tell("the referee judged %d kinds of fold block; the slowest was %s", judged, about)
	return []Row{
		row("referee: slowest verdict", "ms", slowest.Seconds()*1000).atMost(10),
		row("referee: largest proof", "KiB", float64(largest)/1024).atMost(float64(dispute.MaxMove) / 1024),
	}, nil
}

// widest returns primitives with function fn, one for each choice of types, over
// operands as large as can be; folded axes walk down a column in steps of a tile.
func widest(fn tensor.Fn) (out []*tensor.Primitive) {
	const side = 1 << 20
	square := tensor.Shape{side, side}
	for _, result := range tensor.DTypes {
		for _, of := range tensor.DTypes {
			p := &tensor.Primitive{Fn: fn, Type: result, Shape: square}
			row, column := tensor.Dim{Terms: []tensor.Term{{Axis: 0, Step: 1}}}, tensor.Dim{Terms: []tensor.Term{{Axis: 1, Step: 1}}}
			if k := fn.Kind(); k == tensor.KindFold || k == tensor.KindContraction {
				p.Shape, p.Fold = tensor.Shape{side}, []int{side / tensor.TileSide}
				row, column = tensor.Dim{Terms: []tensor.Term{{Axis: 1, Step: tensor.TileSide}}}, row
			}
			access := func(t tensor.DType) tensor.Access {
				return tensor.Access{Type: t, Shape: square, Dims: []tensor.Dim{row, column}}
			}
			vector := tensor.Access{Type: result, Shape: tensor.Shape{side}, Dims: []tensor.Dim{column}}
			index := tensor.Access{Type: tensor.Int64, Shape: square, Dims: []tensor.Dim{row, column}}
			for _, args := range [][]tensor.Access{
				{access(of)}, {access(of), access(of)}, {access(tensor.Bool), access(of), access(of)},
				{vector, access(of), index}, slices.Repeat([]tensor.Access{access(of)}, tensor.MaxArgs),
			} {
				for _, imm := range [][]tensor.Word{nil, {0}, {0, 1}} {
					q := *p
					q.Args, q.Imm = args, imm
					if q.Check() == nil {
						out = append(out, &q)
					}
				}
			}
		}
	}
	return out
}

// judge imagines a dispute about p, and times its last move.
func judge(p *tensor.Primitive) (verdict time.Duration, bytes int, err error) {
	// The operands are outputs of as many earlier nodes, in a program of many.
	const nodes = 1 << 10
	prog := &graph.Program{Groups: 1, Slots: []graph.Slot{{Name: "x", Type: tensor.Float32, Shape: tensor.Shape{}}}}
	n := graph.Opcode{Primitive: p, Origin: graph.Origin{Op: p.Fn.String()}}
	for i := range nodes {
		a := p.Args[i%len(p.Args)]
		prog.Slots[0].Type = tensor.Bool
		fill := &tensor.Primitive{Fn: tensor.Cast, Type: a.Type, Shape: a.Shape, Args: []tensor.Access{{Type: tensor.Bool, Shape: tensor.Shape{}}}}
		prog.Nodes = append(prog.Nodes, graph.Opcode{Primitive: fill, From: []graph.Ref{{Kind: graph.RefSlot}}})
		if i < len(p.Args) {
			n.From = append(n.From, graph.Ref{Kind: graph.RefNode, Index: i})
		}
	}
	prog.Nodes, prog.Outputs = append(prog.Nodes, n), []graph.Ref{{Kind: graph.RefSlot}}
	if err := prog.Check(); err != nil {
		return 0, 0, err
	}
	g, err := imagine(dispute.DefaultRules, prog, prog.Commit(), 1, 1, 0, nodes, p.Shape.Elements()-1, max(p.Blocks()-1, 0))
	if err != nil {
		return 0, 0, err
	}
	_, err = g.play(func(before *dispute.Game, m dispute.Move) error {
		if _, last := m.(*dispute.Block); !last {
			return nil
		}
		b := dispute.EncodeMove(m)
		bytes = len(b)
		for range 3 { // the quickest of them: the rest is other load
			begun := time.Now()
			decoded, err := dispute.DecodeMove(b)
			if err == nil {
				_, err = dispute.Apply(*before, dispute.Challenger, decoded, 0)
			}
			if err != nil {
				return err
			}
			if d := time.Since(begun); verdict == 0 || d < verdict {
				verdict = d
			}
		}
		return nil
	})
	return verdict, bytes, err
}
