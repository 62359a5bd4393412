package dispute

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Code walks the fields of g, for storage between moves.
func (g *Game) Code(c *canon.Codec) {
	g.Claim.Code(c)
	c.Int(&g.Rules.Depth, MaxDepth)
	c.I64(&g.Rules.Clock)
	c.I64(&g.Rules.Answer)
	c.Int(&g.Rules.Parallel, MaxParallel)
	c.Bool(&g.Waiting)
	c.Bool(&g.Missed)
	c.Bool(&g.Silent)
	for _, p := range []*uint8{(*uint8)(&g.Stage), (*uint8)(&g.Tree), (*uint8)(&g.Loser)} {
		c.U8(p)
	}
	c.I64(&g.Left[0])
	c.I64(&g.Left[1])
	c.I64(&g.Since)
	for _, p := range []*int{&g.Chunk, &g.Column, &g.Judged, &g.Moves, &g.Lo, &g.Hi, &g.Span.Lo, &g.Span.N, &g.Node, &g.Tile, &g.Element, &g.From, &g.To} {
		c.Int(p, tensor.MaxElements)
	}
	c.Hash(&g.LoRoot)
	c.Hash(&g.HiRoot)
	c.Hash(&g.Top)
	c.Hashes(&g.Posted, maxPosted)
	c.Hashes(&g.Tokens, maxTokenPages)
	c.Hashes(&g.ChunkRoots, MaxChunks)
	canon.Seq(c, &g.Agreed, maxPosted*maxPath, 34, func(c *canon.Codec, s *Subtree) {
		c.Int(&s.Span.Lo, graph.MaxNodes)
		c.Int(&s.Span.N, graph.MaxNodes)
		c.Hash(&s.Hash)
	})
	optional(c, &g.Header, codeHeader)
	optional(c, &g.Opcode, codeOpcode)
	c.Blob(&g.Content, maxTile)
	codeWords(c, &g.FromState)
	codeWords(c, &g.ToState)
	canon.Seq(c, &g.BlockState, maxPosted, 1, codeWords)
	c.String(&g.Reason, maxReason)
}

// Trim drops from a game that is over what only its moves needed.
func (g *Game) Trim() {
	g.Claim.Inputs, g.Tokens, g.ChunkRoots, g.Header = nil, nil, nil, nil
	g.Agreed, g.Posted, g.Content, g.BlockState = nil, nil, nil, nil
}

// optional codes a part that may be absent.
func optional[T any](c *canon.Codec, p **T, code func(*canon.Codec, *T)) {
	given := *p != nil
	if c.Bool(&given); !given {
		return
	}
	if *p == nil {
		*p = new(T)
	}
	code(c, *p)
}

// Code walks the fields of o.
func (o *Opening) Code(c *canon.Codec) {
	c.Int(&o.Segment, MaxSteps)
	c.Hash(&o.From)
	c.Hash(&o.To)
	c.Hashes(&o.FromPath, maxPath)
	c.Hashes(&o.ToPath, maxPath)
}
