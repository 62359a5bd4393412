package tensor

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// TileSide is the number of rows and of columns of a whole tile.
const TileSide = 32

// Layout says how the tensors of one type and shape are cut into tiles. Tiles
// are numbered row by row.
type Layout struct {
	Type       DType
	Shape      Shape
	Rows, Cols int // of the matrix
	Down, Side int // tiles down and side by side
}

// LayoutOf returns the layout of tensors of the given type and checked shape.
func LayoutOf(t DType, s Shape) Layout {
	r, c := s.Matrix()
	return Layout{t, s, r, c, (r + TileSide - 1) / TileSide, (c + TileSide - 1) / TileSide}
}

// Tiles returns the number of tiles.
func (l Layout) Tiles() int {
	if l.Cols == 0 {
		return 0
	}
	return l.Down * l.Side
}

// TileAt returns the row and column of tile i in the grid of tiles.
func (l Layout) TileAt(i int) (row, col int) { return i / l.Side, i % l.Side }

// extent returns the rows and columns of tile i.
func (l Layout) extent(i int) (rows, cols int) {
	r, c := l.TileAt(i)
	return min(TileSide, l.Rows-r*TileSide), min(TileSide, l.Cols-c*TileSide)
}

// TileBytes returns the length in bytes of tile i.
func (l Layout) TileBytes(i int) int {
	r, c := l.extent(i)
	return r * c * l.Type.Size()
}

// Find returns the tile of element i (flat, row-major) and its place in it.
func (l Layout) Find(i int) (tile, place int) {
	r, c := i/l.Cols, i%l.Cols
	tile = r/TileSide*l.Side + c/TileSide
	_, w := l.extent(tile)
	return tile, r%TileSide*w + c%TileSide
}

// Element returns the flat index of a place in a tile.
func (l Layout) Element(tile, place int) (int, error) {
	if tile < 0 || tile >= l.Tiles() {
		return 0, fmt.Errorf("tile %d of a tensor with %d tiles", tile, l.Tiles())
	}
	h, w := l.extent(tile)
	if place < 0 || place >= h*w {
		return 0, fmt.Errorf("place %d of a tile with %d elements", place, h*w)
	}
	r, c := l.TileAt(tile)
	return (r*TileSide+place/w)*l.Cols + c*TileSide + place%w, nil
}

// Word returns the element at a place of a tile's bytes.
func (l Layout) Word(tile []byte, place int) Word { return wordAt(l.Type, tile, place) }

// Root returns the tensor root that the root of the tree of tiles implies.
func (l Layout) Root(tiles canon.Hash) canon.Hash {
	return canon.Sum(canon.DomainTensor, canon.Encode(func(e *canon.Encoder) {
		e.U8(uint8(l.Type))
		l.Shape.Encode(e)
		e.Hash(tiles)
	}))
}

// TileHash returns the leaf of a tile's bytes.
func TileHash(b []byte) canon.Hash { return canon.Sum(canon.DomainTile, b) }

// Tile appends the bytes of tile i of t to dst.
func (t *Tensor) Tile(dst []byte, i int) []byte {
	l := LayoutOf(t.Type, t.Shape)
	r, c := l.TileAt(i)
	h, w := l.extent(i)
	size := t.Type.Size()
	for y := range h {
		from := ((r*TileSide+y)*l.Cols + c*TileSide) * size
		dst = append(dst, t.buf[from:from+w*size]...)
	}
	return dst
}

// SetTile sets the elements of tile i of t from its bytes, as Tile gives them.
func (t *Tensor) SetTile(i int, b []byte) {
	l := LayoutOf(t.Type, t.Shape)
	r, c := l.TileAt(i)
	h, w := l.extent(i)
	row := w * t.Type.Size()
	for y := range h {
		to := ((r*TileSide+y)*l.Cols + c*TileSide) * t.Type.Size()
		copy(t.buf[to:to+row], b[y*row:])
	}
}

// Leaves returns the hashes of all tiles.
func (t *Tensor) Leaves() []canon.Hash {
	out := make([]canon.Hash, LayoutOf(t.Type, t.Shape).Tiles())
	t.LeavesFrom(out, 0)
	return out
}

// LeavesFrom sets dst to the hashes of the tiles from number at on.
func (t *Tensor) LeavesFrom(dst []canon.Hash, at int) {
	buf := make([]byte, 0, TileSide*TileSide*8+64)
	buf = canon.Begin(buf, canon.DomainTile)
	begun := len(buf)
	for i := range dst {
		buf = t.Tile(buf[:begun], at+i)
		dst[i] = canon.SumOf(buf)
	}
}

// Root returns the tensor root.
func (t *Tensor) Root() canon.Hash {
	return LayoutOf(t.Type, t.Shape).Root(canon.Root(t.Leaves()))
}
