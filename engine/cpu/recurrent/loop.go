package recurrent

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
)

// Loop runs a body of works step by step, on one thread. It is one block.
type Loop struct {
	Body  []kernel.Work
	Steps [][]Operands // by step and work
}

// Operands are the tensors of one work in one step, by their numbers among the loop's
// operands; ^i is the loop's output i.
type Operands struct {
	Args, Outs []int
	Shifts     []int // bytes behind the beginning of each of Args; nil if there are none
}

// loopScratch is the tensors of the work that is run.
type loopScratch struct{ args, outs []*tensor.Tensor }

// Blocks implements kernel.Work.
func (l *Loop) Blocks() int { return 1 }

// Run implements kernel.Work.
func (l *Loop) Run(w *kernel.Worker, outs, args []*tensor.Tensor, _, _ int) error {
	s := kernel.Scratch[loopScratch](w)
	defer func() {
		clear(s.args[:cap(s.args)])
		clear(s.outs[:cap(s.outs)])
	}()
	find := func(i int) *tensor.Tensor {
		if i < 0 {
			return outs[^i]
		}
		return args[i]
	}
	for _, step := range l.Steps {
		for i := range step {
			o := &step[i]
			s.args, s.outs = s.args[:0], s.outs[:0]
			for _, x := range o.Args {
				s.args = append(s.args, find(x))
			}
			for _, x := range o.Outs {
				s.outs = append(s.outs, find(x))
			}
			if err := shift(s.args, o.Shifts); err != nil {
				return err
			}
			w.Round++
			if err := l.Body[i].Run(w, s.outs, s.args, 0, l.Body[i].Blocks()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Describe implements kernel.Work.
func (l *Loop) Describe() kernel.Description {
	var names, blocking, packing, fusion []string
	for i, k := range l.Body {
		d := k.Describe()
		names = append(names, d.Kernel)
		for _, x := range []struct {
			all  *[]string
			text string
		}{{&blocking, d.Blocking}, {&packing, d.Packing}, {&fusion, d.Fusion}} {
			if x.text != "" {
				*x.all = append(*x.all, fmt.Sprintf("(%d) %s", i+1, x.text))
			}
		}
	}
	return kernel.Description{
		Kernel:   "loop",
		Blocking: fmt.Sprintf("%d steps of %s, on one thread: %s", len(l.Steps), strings.Join(names, ", then "), strings.Join(blocking, "; ")),
		Packing:  strings.Join(packing, "; "),
		Fusion:   strings.Join(fusion, "; "),
	}
}

// shifted is a work that reads its operands from some bytes on.
type shifted struct {
	kernel.Work
	shifts []int
}

// Shift returns a work that reads each operand so many bytes behind its beginning: the
// work of one step, for the tensors of another.
func Shift(k kernel.Work, shifts []int) kernel.Work {
	if shifts == nil {
		return k
	}
	return &shifted{k, shifts}
}

func (k *shifted) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	args = append([]*tensor.Tensor(nil), args...)
	if err := shift(args, k.shifts); err != nil {
		return err
	}
	return k.Work.Run(w, outs, args, lo, hi)
}

// shift puts, in place of each operand with a shift, what follows so many bytes behind
// its beginning.
func shift(args []*tensor.Tensor, shifts []int) error {
	for i, at := range shifts {
		if at == 0 {
			continue
		}
		x := args[i]
		rest, err := x.Part(at, x.Type, tensor.Shape{x.Len() - at/x.Type.Size()})
		if err != nil {
			return err
		}
		args[i] = rest
	}
	return nil
}
