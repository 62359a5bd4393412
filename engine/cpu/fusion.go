package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// fusion is several nodes that are computed together, a block of rows at a time,
// so that what one makes for the next stays in the first-level cache. Every
// value of a fusion has as many elements in each row; a fold makes one of a row.
//
// What is computed, and in which order, is the same as node by node.
type fusion struct {
	rows    int // independent of each other
	width   int // elements in one
	stretch int // elements that share a number; whole rows or parts of one; 0 if there is none
	block   int // rows at a time, at most
	values  []value
	once    []link // before the first block
	links   []link // for every block, in order
	scratch int    // bytes
	flows   asm.Flow
	even    bool // there are only flows of elements that stand alone
	head    int  // the operand that may lie elsewhere when rows of it flow; −1 if there is none
}

// value is what a link reads or makes.
type value struct {
	typ   tensor.DType
	width int // elements in a row
	place place
	index int // which of the outputs or operands
	base  int // element of the operand, or byte of the scratch memory, with which it begins

	number number // for each stretch, of an operand; count is 0 if it is none
}

// place says where a value is.
type place uint8

const (
	inScratch place = iota
	inOutput
	inOperand
)

// link computes one value of others, or brings one side by side.
type link struct {
	do    eltwise.Func // nil: load
	dst   int
	src   []int // values
	width int   // that do is told
	flow  []int // functions of which the first takes src[0], and each the next of src

	views  []*affine.View // what is loaded: the last lies over those before
	absent tensor.Word
}

// scratch is the memory that one worker runs fusions in.
type scratch struct {
	bytes []byte
	at    []unsafe.Pointer // where the values are
	steps []asm.Step
}

func (c *fusion) Blocks() int { return c.rows }

// begin finds where the values lie from a row on. The head may lie elsewhere.
func (c *fusion) begin(s *scratch, outs, args []*tensor.Tensor, row int, head unsafe.Pointer) {
	s.bytes = mem.Grow(s.bytes, c.scratch)
	s.at = mem.Grow(s.at, len(c.values))
	for i := range c.values {
		v := &c.values[i]
		size := v.typ.Size()
		switch {
		case v.number.count > 0: // found for each block
		case v.place == inScratch:
			s.at[i] = unsafe.Add(mem.First(s.bytes), v.base)
		case head != nil && c.isHead(i):
			s.at[i] = head
		case v.place == inOutput:
			s.at[i] = unsafe.Add(mem.Data(outs[v.index]), row*v.width*size)
		default:
			s.at[i] = unsafe.Add(mem.Data(args[v.index]), (v.base+row*v.width)*size)
		}
	}
	c.number(s, args, row)
}

// isHead reports whether a value is the operand that may lie elsewhere.
func (c *fusion) isHead(v int) bool {
	return c.values[v].place == inOperand && c.values[v].index == c.head
}

// number finds the numbers of the stretch in which a row begins.
func (c *fusion) number(s *scratch, args []*tensor.Tensor, row int) {
	for i := range c.values {
		if v := &c.values[i]; v.number.count > 0 {
			s.at[i] = unsafe.Add(mem.Data(args[v.index]), (v.base+c.place(row)%v.number.count)*mem.Word)
		}
	}
}

// end forgets where things lie, so that nothing is kept alive.
func (c *fusion) end(s *scratch) {
	clear(s.at)
	clear(s.steps)
}

func (c *fusion) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	return c.runFrom(kernel.Scratch[scratch](w), outs, args, lo, hi, nil)
}

// runFrom computes rows of which the head may lie elsewhere.
func (c *fusion) runFrom(s *scratch, outs, args []*tensor.Tensor, lo, hi int, head unsafe.Pointer) error {
	c.begin(s, outs, args, lo, head)
	for i := range c.once {
		c.perform(&c.once[i], s, args, lo, min(c.block, hi-lo))
	}
	for lo < hi {
		rows := c.together(lo, hi-lo)
		c.number(s, args, lo)
		for i := range c.links {
			c.perform(&c.links[i], s, args, lo, rows)
		}
		if lo += rows; lo == hi {
			break // for no pointer may lie behind the end
		}
		for i := range c.values {
			if v := &c.values[i]; v.place != inScratch && v.number.count == 0 {
				s.at[i] = unsafe.Add(s.at[i], rows*v.width*v.typ.Size())
			}
		}
	}
	c.end(s)
	return nil
}

func (c *fusion) perform(l *link, s *scratch, args []*tensor.Tensor, lo, rows int) {
	if len(l.flow) > 0 {
		c.flow(l, s, lo, rows)
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
		bring[uint8](l, s, args, lo*v.width, n)
	case 2:
		bring[uint16](l, s, args, lo*v.width, n)
	case 4:
		bring[uint32](l, s, args, lo*v.width, n)
	default:
		bring[uint64](l, s, args, lo*v.width, n)
	}
}

// bring loads n elements of the view from element at on.
func bring[T mem.Integer](l *link, s *scratch, args []*tensor.Tensor, at, n int) {
	if n == 0 {
		return
	}
	dst := mem.Slice[T](s.at[l.dst], n)
	if len(l.views[0].Bounds) != 0 {
		mem.Fill(dst, T(l.absent))
	}
	for _, v := range l.views {
		affine.Overlay(v, args, dst, at)
	}
}
