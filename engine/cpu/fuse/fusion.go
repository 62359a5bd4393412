package fuse

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Fusion is several nodes that are computed together, a block of rows at a time, so that
// what one makes for the next stays in the first-level cache. All values have the same
// rows, and a width each; a fold makes one element of a row.
type Fusion struct {
	rows         int // independent of each other
	width        int // elements in one
	period       int // elements that share a broadcast scalar: whole rows or parts of one; 0 if there is none
	blockRows    int // rows at a time, at most
	values       []value
	prologue     []stage // run once, before the first block
	transposed   []stage // loads that run before the first block of each tile, for all of it
	tileRows     int     // rows of a tile, at most; 0 if there are no such loads
	stages       []stage // run for every block, in order
	scratchBytes int     // of the values that are neither operands nor outputs
	chain        asm.ChainKernel
	isChain      bool // all stages are chains, of rows of one element
	repeats      bool // some value repeats itself
	head         int  // operand that a chain may read where its producer left it; NoHead if there is none
}

// value is what a stage reads or makes.
type value struct {
	typ   tensor.DType
	width int // elements in a row
	where location
	index int  // of the outputs or operands
	base  int  // element of the operand, or byte of the scratch memory, with which it begins
	tiled bool // in scratch memory, for all rows of a tile

	scalar  broadcastScalar // if it is one for each period; count is 0 if it is none
	repeats int             // elements after which it begins again, such as a bias for each column; 0 if it does not
}

// location says where a value is.
type location uint8

const (
	inScratch location = iota
	inOutput
	inOperand
)

// stage computes one value: by a function, by a chain of ops, or by loading views.
type stage struct {
	do    eltwise.Func // nil: a chain, or a load
	dst   int          // value
	src   []int        // values
	width int          // of rows that do is told
	ops   []chainOp    // of a chain: the first takes src[0], each next one what the one before has made

	views   []*affine.View // loaded one over the other: the last wins
	padding tensor.Word    // where no view has an element
}

// scratch is the memory that one worker runs fusions in.
type scratch struct {
	bytes []byte
	at    []unsafe.Pointer // where each value begins
	steps []asm.EltwiseOp  // of a chain

	worker *kernel.Worker
}

// ReadsSource reports whether rows of the head are read where their producer left them, and
// need no copy in its output.
func (c *Fusion) ReadsSource() bool { return c.head != NoHead }

// Blocks returns the number of independent rows.
func (c *Fusion) Blocks() int { return c.rows }

// locate finds where the values begin from a row on. The head may be elsewhere than its
// operand says.
func (c *Fusion) locate(s *scratch, outs, args []*tensor.Tensor, row int, head unsafe.Pointer) {
	s.bytes = mem.Grow(s.bytes, c.scratchBytes)
	s.at = mem.Grow(s.at, len(c.values))
	for i := range c.values {
		v := &c.values[i]
		size := v.typ.Size()
		switch {
		case v.isBroadcast(): // found for each block
		case v.where == inScratch:
			s.at[i] = unsafe.Add(mem.First(s.bytes), v.base)
		case head != nil && c.isHead(i):
			s.at[i] = head
		case v.where == inOutput:
			s.at[i] = unsafe.Add(mem.Data(outs[v.index]), row*v.width*size)
		default:
			s.at[i] = unsafe.Add(mem.Data(args[v.index]), (v.base+row*v.width)*size)
		}
	}
	c.locateScalars(s, args, row)
}

// isHead reports whether a value is the head.
func (c *Fusion) isHead(v int) bool {
	return c.values[v].where == inOperand && c.values[v].index == c.head
}

// isBroadcast reports whether a value is an operand of fewer elements, which is read in place.
func (v *value) isBroadcast() bool { return v.scalar.count > 0 || v.repeats > 0 }

// locateScalars finds the broadcast scalars of the period in which a row begins, and where
// what repeats itself is there.
func (c *Fusion) locateScalars(s *scratch, args []*tensor.Tensor, row int) {
	for i := range c.values {
		switch v := &c.values[i]; {
		case v.scalar.count > 0:
			s.at[i] = unsafe.Add(mem.Data(args[v.index]), (v.base+c.periodAt(row)%v.scalar.count)*mem.Word)
		case v.repeats > 0:
			s.at[i] = unsafe.Add(mem.Data(args[v.index]), (v.base+row%v.repeats)*mem.Word)
		}
	}
}

// forget drops addresses, so that they keep nothing alive.
func (c *Fusion) forget(s *scratch) {
	clear(s.at)
	clear(s.steps)
}

// Run computes rows lo…hi−1.
func (c *Fusion) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	s := kernel.Scratch[scratch](w)
	s.worker = w
	return c.runFrom(s, outs, args, lo, hi, nil)
}

// runFrom computes rows lo…hi−1, of which the head may be elsewhere.
func (c *Fusion) runFrom(s *scratch, outs, args []*tensor.Tensor, lo, hi int, head unsafe.Pointer) error {
	c.locate(s, outs, args, lo, head)
	for i := range c.prologue {
		c.runStage(&c.prologue[i], s, args, lo, min(c.blockRows, hi-lo))
	}
	for loaded := lo; lo < hi; {
		if s.worker.Stopped() {
			c.forget(s)
			return kernel.ErrStopped
		}
		if lo == loaded {
			loaded = c.loadTile(s, args, lo, hi)
		}
		rows := c.rowsTogether(lo, loaded-lo)
		c.locateScalars(s, args, lo)
		for i := range c.stages {
			c.runStage(&c.stages[i], s, args, lo, rows)
		}
		if lo += rows; lo == hi {
			break // for no pointer may lie behind the end
		}
		for i := range c.values {
			if v := &c.values[i]; v.where != inScratch && !v.isBroadcast() || v.tiled && lo < loaded {
				s.at[i] = unsafe.Add(s.at[i], rows*v.width*v.typ.Size())
			}
		}
	}
	c.forget(s)
	return nil
}

// loadTile loads what is transposed for the tile in which row lo lies, and returns the row
// behind it. Without such loads all rows are one tile.
func (c *Fusion) loadTile(s *scratch, args []*tensor.Tensor, lo, hi int) int {
	if c.tileRows == 0 {
		return hi
	}
	hi = min(hi, lo-lo%c.tileRows+c.tileRows)
	for i := range c.transposed {
		k := &c.transposed[i]
		s.at[k.dst] = unsafe.Add(mem.First(s.bytes), c.values[k.dst].base)
		c.runStage(k, s, args, lo, hi-lo)
	}
	return hi
}

func (c *Fusion) runStage(l *stage, s *scratch, args []*tensor.Tensor, lo, rows int) {
	if len(l.ops) > 0 {
		c.runChain(l, s, lo, rows)
		return
	}
	if l.do != nil {
		var src [3]unsafe.Pointer
		for i, v := range l.src {
			src[i] = s.at[v]
		}
		l.do(s.at[l.dst], src[0], src[1], src[2], rows, l.width)
		return
	}
	v := &c.values[l.dst]
	switch n := rows * v.width; v.typ.Size() {
	case 1:
		load[uint8](l, s, args, lo*v.width, n)
	case 2:
		load[uint16](l, s, args, lo*v.width, n)
	case 4:
		load[uint32](l, s, args, lo*v.width, n)
	default:
		load[uint64](l, s, args, lo*v.width, n)
	}
}

// load loads n elements of the views from element at on.
func load[T mem.Integer](l *stage, s *scratch, args []*tensor.Tensor, at, n int) {
	if n == 0 {
		return
	}
	dst := mem.Slice[T](s.at[l.dst], n)
	if len(l.views[0].Bounds) != 0 {
		mem.Fill(dst, T(l.padding))
	}
	for _, v := range l.views {
		affine.Overlay(v, args, dst, at)
	}
}
