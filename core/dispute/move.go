package dispute

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Move is one transaction of a game.
type Move interface {
	canon.Coded
	kind() uint8
	fits(Stage) bool
	play(*Game) error
}

const maxPosted = 1 << MaxDepth

// Roots posts the state roots at Cuts.
type Roots struct{ Roots []canon.Hash }

// Trace posts the program's header and the subtrees below the top of the trace
// of the step.
type Trace struct {
	Header graph.Header
	Below  []canon.Hash
}

// Below posts the subtrees below the one in hand.
type Below struct{ Below []canon.Hash }

// Node posts the node in hand, opened in the program, and the subtrees below
// the top of its output's tile tree.
type Node struct {
	Leaf  graph.Leaf
	Path  []canon.Hash
	Below []canon.Hash
}

// Tile posts the bytes of the tile in hand.
type Tile struct{ Content []byte }

// States posts the accumulators at Cuts.
type States struct{ States [][]tensor.Word }

// Pick names the first of what was posted that the challenger disagrees with;
// one past the last stands for the right end. In a trace, Outputs instead says
// that all nodes agree and the resulting state does not follow from them.
type Pick struct {
	Index   int
	Outputs bool
}

// Concede ends a game: the side whose turn it is has lost.
type Concede struct{}

// Element names the first wrong element of the tile.
type Element struct{ Place int }

func (m *Roots) kind() uint8   { return 1 }
func (m *Trace) kind() uint8   { return 2 }
func (m *Below) kind() uint8   { return 3 }
func (m *Node) kind() uint8    { return 4 }
func (m *Tile) kind() uint8    { return 5 }
func (m *States) kind() uint8  { return 6 }
func (m *Pick) kind() uint8    { return 7 }
func (m *Element) kind() uint8 { return 8 }
func (m *Block) kind() uint8   { return 9 }
func (m *Output) kind() uint8  { return 10 }
func (m *Chunks) kind() uint8  { return 11 }
func (m *Steps) kind() uint8   { return 12 }
func (m *Step) kind() uint8    { return 13 }
func (m *Concede) kind() uint8 { return 14 }

func newMove(kind uint8) Move {
	for _, m := range []Move{&Roots{}, &Trace{}, &Below{}, &Node{}, &Tile{}, &States{}, &Pick{}, &Element{}, &Block{}, &Output{}, &Chunks{}, &Steps{}, &Step{}, &Concede{}} {
		if m.kind() == kind {
			return m
		}
	}
	return nil
}

func (m *Roots) fits(s Stage) bool  { return s == PostRoots }
func (m *Trace) fits(s Stage) bool  { return s == PostTrace }
func (m *Below) fits(s Stage) bool  { return s == PostSubtree }
func (m *Node) fits(s Stage) bool   { return s == PostNode }
func (m *Tile) fits(s Stage) bool   { return s == PostTile }
func (m *States) fits(s Stage) bool { return s == PostStates }
func (m *Pick) fits(s Stage) bool {
	return s == PickRoot || s == PickSubtree || s == PickState || s == PickTrace || s == PickChunk
}
func (m *Element) fits(s Stage) bool { return s == PickElement }
func (m *Concede) fits(s Stage) bool { return s != Over }

// MaxMove bounds the encoding of a move in bytes.
const MaxMove = 60 << 10

// EncodeMove returns the bytes of m.
func EncodeMove(m Move) []byte {
	return append([]byte{m.kind()}, canon.Marshal(m)...)
}

// DecodeMove reads what EncodeMove wrote.
func DecodeMove(b []byte) (Move, error) {
	if len(b) == 0 || len(b) > MaxMove {
		return nil, fmt.Errorf("a move has between 1 and %d bytes, got %d", MaxMove, len(b))
	}
	m := newMove(b[0])
	if m == nil {
		return nil, fmt.Errorf("unknown kind of move %d", b[0])
	}
	if err := canon.Unmarshal(b[1:], m); err != nil {
		return nil, fmt.Errorf("move %T: %w", m, err)
	}
	return m, nil
}

// Code walks no fields.
func (m *Concede) Code(*canon.Codec) {}

// Code walks the fields of m.
func (m *Roots) Code(c *canon.Codec) { c.Hashes(&m.Roots, maxPosted) }

// Code walks the fields of m.
func (m *Trace) Code(c *canon.Codec) {
	codeHeader(c, &m.Header)
	c.Hashes(&m.Below, maxPosted)
}

// Code walks the fields of m.
func (m *Below) Code(c *canon.Codec) { c.Hashes(&m.Below, maxPosted) }

// Code walks the fields of m.
func (m *Node) Code(c *canon.Codec) {
	canon.With(c, &m.Leaf, func(n graph.Leaf, e *canon.Encoder) { n.Encode(e) }, func(d *canon.Decoder) graph.Leaf { return *graph.DecodeLeaf(d) })
	c.Hashes(&m.Path, maxPath)
	c.Hashes(&m.Below, maxPosted)
}

// Code walks the fields of m.
func (m *Tile) Code(c *canon.Codec) { c.Blob(&m.Content, maxTile) }

// Code walks the fields of m.
func (m *States) Code(c *canon.Codec) { canon.Seq(c, &m.States, maxPosted, 1, codeWords) }

// Code walks the fields of m.
func (m *Pick) Code(c *canon.Codec) {
	c.Int(&m.Index, maxPosted)
	c.Bool(&m.Outputs)
}

// Code walks the fields of m.
func (m *Element) Code(c *canon.Codec) { c.Int(&m.Place, tensor.TileSide*tensor.TileSide) }

const (
	maxPath  = 64
	maxTile  = tensor.TileSide * tensor.TileSide * 8
	maxWords = 64
)

func codeWords(c *canon.Codec, s *[]tensor.Word) {
	canon.Seq(c, s, maxWords, 1, func(c *canon.Codec, w *tensor.Word) { c.U64(w) })
}

func codeHeader(c *canon.Codec, h *graph.Header) {
	canon.With(c, h, func(h graph.Header, e *canon.Encoder) { h.Encode(e) }, func(d *canon.Decoder) graph.Header { return *graph.DecodeHeader(d) })
}

func codeOpcode(c *canon.Codec, n *graph.Opcode) {
	canon.With(c, n, func(n graph.Opcode, e *canon.Encoder) { n.Encode(e) }, func(d *canon.Decoder) graph.Opcode { return *graph.DecodeOpcode(d) })
}
