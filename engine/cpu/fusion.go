package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// fusion is several nodes that are computed together, a block of rows at a time,
// so that what one makes for the next stays in the first-level cache. Every
// value of a fusion has as many elements in each row; a fold makes one of a row.
//
// What is computed, and in which order, is the same as node by node.
type fusion struct {
	rows    int // independent of each other
	block   int // rows at a time
	values  []value
	once    []link // before the first block
	links   []link // for every block, in order
	scratch int    // bytes
}

// value is what a link reads or makes.
type value struct {
	typ   tensor.DType
	width int // elements in a row
	place place
	index int // which of the outputs or operands
	base  int // element of the operand, or byte of the scratch memory, with which it begins
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
	do      loop // nil: load
	dst     int
	src     [3]int // values
	reading int    // of them are used
	width   int    // that do is told

	views  []*view // what is loaded: the last lies over those before
	absent tensor.Word
}

// chunk is the number of elements that are handled at a time: few enough for
// some rows to stay in the first-level cache. It is a multiple of tensor.Lanes.
const chunk = 1024

func (c *fusion) pieces() int { return c.rows }

func (c *fusion) run(w *worker, outs, args []*tensor.Tensor, lo, hi int) error {
	w.scratch = grow(w.scratch, c.scratch)
	w.at = grow(w.at, len(c.values))
	for i := range c.values {
		v := &c.values[i]
		size := v.typ.Size()
		switch v.place {
		case inScratch:
			w.at[i] = unsafe.Pointer(&w.scratch[v.base])
		case inOutput:
			w.at[i] = unsafe.Add(start(outs[v.index]), lo*v.width*size)
		case inOperand:
			w.at[i] = unsafe.Add(start(args[v.index]), (v.base+lo*v.width)*size)
		}
	}
	rows := min(c.block, hi-lo)
	for i := range c.once {
		c.perform(&c.once[i], w, args, lo, rows)
	}
	for {
		for i := range c.links {
			c.perform(&c.links[i], w, args, lo, rows)
		}
		if lo += rows; lo == hi {
			break
		}
		for i := range c.values {
			if v := &c.values[i]; v.place != inScratch {
				w.at[i] = unsafe.Add(w.at[i], rows*v.width*v.typ.Size())
			}
		}
		rows = min(c.block, hi-lo)
	}
	clear(w.at) // so that it keeps no memory alive
	return nil
}

func (c *fusion) perform(l *link, w *worker, args []*tensor.Tensor, lo, rows int) {
	if l.do != nil {
		var src [3]unsafe.Pointer
		for i, v := range l.src[:l.reading] {
			src[i] = w.at[v]
		}
		l.do(w.at[l.dst], src[0], src[1], src[2], rows, l.width)
		return
	}
	v := &c.values[l.dst]
	switch n := rows * v.width; v.typ.Size() {
	case 1:
		bring[uint8](l, w, args, lo*v.width, n)
	case 2:
		bring[uint16](l, w, args, lo*v.width, n)
	case 4:
		bring[uint32](l, w, args, lo*v.width, n)
	default:
		bring[uint64](l, w, args, lo*v.width, n)
	}
}

// bring loads n elements of the view from element at on.
func bring[T integer](l *link, w *worker, args []*tensor.Tensor, at, n int) {
	if n == 0 {
		return
	}
	dst := slice[T](w.at[l.dst], n)
	if len(l.views[0].bounds) != 0 {
		fill(dst, T(l.absent))
	}
	for _, v := range l.views {
		overlay(v, args, dst, at)
	}
}

// start returns the address of the first element.
func start(t *tensor.Tensor) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(t.Bytes())) }

// bits returns the elements of t as integers of their size.
func bits[T integer](t *tensor.Tensor) []T {
	return unsafe.Slice((*T)(start(t)), t.Len())
}
