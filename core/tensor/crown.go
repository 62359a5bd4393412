package tensor

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// CrownRun is how many tiles, one after another, a hash of a crown is over.
const CrownRun = 1 << 8

// Limits on a crown: its hashes, and the bytes of its encoding.
const (
	maxTops  = 1 << 20
	MaxCrown = maxTops*canon.HashSize + 1<<8
)

// A Crown is the upper part of a tensor's tree of tiles: the tops of its runs, which are subtrees. Only
// the last run may have fewer tiles than the others.
//
//	            root
//	         ┌────┴────┐
//	     ┌───┴───┐     │        the tensor's root follows from a crown, so whoever has one, and
//	Tops[0]  Tops[1]  Tops[2]   the tiles of a run, can check these, and prove each of them,
//	 tiles    tiles    tiles    without any other tile
type Crown struct {
	Type  DType
	Shape Shape
	Tops  []canon.Hash
}

// NewCrown returns the crown of a tensor of some layout from the hashes of all of its tiles.
func NewCrown(l Layout, leaves []canon.Hash) *Crown {
	c := &Crown{Type: l.Type, Shape: l.Shape.Clone(), Tops: make([]canon.Hash, 0, runs(len(leaves)))}
	for at := 0; at < len(leaves); at += CrownRun {
		c.Tops = append(c.Tops, canon.Top(leaves[at:min(at+CrownRun, len(leaves))]))
	}
	return c
}

func runs(tiles int) int { return (tiles + CrownRun - 1) / CrownRun }

// Layout returns how the tensor is cut into tiles.
func (c *Crown) Layout() Layout { return LayoutOf(c.Type, c.Shape) }

// Root returns the root of the tensor.
func (c *Crown) Root() canon.Hash {
	l := c.Layout()
	return l.Root(canon.RootOf(l.Tiles(), canon.Top(c.Tops)))
}

// Run returns the tiles of a run.
func (c *Crown) Run(i int) canon.Span {
	return canon.Span{Lo: i * CrownRun, N: min(CrownRun, c.Layout().Tiles()-i*CrownRun)}
}

// Runs returns the runs that have tiles of n rows of the tensor's matrix, from the first one on: from…to−1.
func (c *Crown) Runs(first, n int) (from, to int) {
	l := c.Layout()
	return first / TileSide * l.Side / CrownRun, runs(((first+n-1)/TileSide + 1) * l.Side)
}

// Rows returns the rows of the matrix that have the tiles of runs from…to−1: whole bands of tiles.
func (c *Crown) Rows(from, to int) (first, n int) {
	l := c.Layout()
	first = from * CrownRun / l.Side * TileSide
	end := (min(to*CrownRun, l.Tiles()) + l.Side - 1) / l.Side * TileSide
	return first, min(end, l.Rows) - first
}

// Check returns an error unless a run has tiles of these hashes.
func (c *Crown) Check(run int, leaves []canon.Hash) error {
	if run < 0 || run >= len(c.Tops) || len(leaves) != c.Run(run).N || canon.Top(leaves) != c.Tops[run] {
		return fmt.Errorf("tiles %d to %d are not those of the tensor", run*CrownRun, run*CrownRun+len(leaves)-1)
	}
	return nil
}

// Code walks the parts of c.
func (c *Crown) Code(w *canon.Codec) {
	w.U8((*uint8)(&c.Type))
	canon.With(w, &c.Shape, Shape.Encode, DecodeShape)
	w.Hashes(&c.Tops, maxTops)
	if !c.Type.Valid() || c.Shape.Check() != nil || len(c.Tops) == 0 || len(c.Tops) != runs(c.Layout().Tiles()) {
		w.Fail("%d runs of a tensor %v%v", len(c.Tops), c.Type, c.Shape)
	}
}

// Part is a tensor of which only some runs of tiles need be here. Others read as zeros.
type Part struct {
	*Tensor
	Crown *Crown
}

// Prove returns the top of the tree of tiles, and the path of one in it. The run of the tile must be here.
func (p Part) Prove(tile int) (root canon.Hash, path []canon.Hash) {
	run := p.Crown.Run(tile / CrownRun)
	leaves := make([]canon.Hash, run.N)
	p.LeavesFrom(leaves, run.Lo)
	above := canon.NewTree(p.Crown.Tops)
	path = append(canon.NewTree(leaves).Prove(tile-run.Lo), above.Prove(tile/CrownRun)...)
	return canon.RootOf(p.Crown.Layout().Tiles(), canon.Top(p.Crown.Tops)), path
}

// Over returns a tensor whose elements lie in memory that others have made, which must be aligned for
// them. owner is held as long as the tensor is. Elements must be canonical as they are.
func Over(t DType, s Shape, buf []byte, owner any) (*Tensor, error) {
	if !t.Valid() || s.Check() != nil || s.Elements() > len(buf)/t.Size() || s.Elements()*t.Size() != len(buf) {
		return nil, fmt.Errorf("tensor %v%v does not lie in %d bytes", t, s, len(buf))
	}
	return &Tensor{t, s.Clone(), buf, owner}, nil
}
