package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "Col2Im", Min: 3, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Ints("dilations"), graph.Ints("pads"), graph.Ints("strides")},
		Lower: lowerCol2Im, Grad: col2ImGrad},
)

// col2im adds up columns that were read through a window.
func col2im(b *graph.Builder, x string, w *window) string {
	return b.With(w.closed().attrs()...).Op("Col2Im", x, b.Ints(w.in...), b.Ints(w.kernel...))
}

// colWindow returns the window whose columns Col2Im takes, and the channels.
func colWindow(c *lower.Call) (*window, int, error) {
	x := c.In[0].Shape
	var lists [2][]int
	for i := range lists {
		var err error
		if lists[i], err = intsInput(c, 1+i); err != nil {
			return nil, 0, err
		}
	}
	for _, s := range lists {
		if err := tensor.Shape(s).Check(); err != nil {
			return nil, 0, err
		}
	}
	w, err := newWindow(c, lists[0], lists[1])
	if err != nil {
		return nil, 0, err
	}
	if err := w.place("NOTSET", false); err != nil {
		return nil, 0, err
	}
	taps := tensor.Shape(w.kernel).Elements()
	if len(x) != 3 || x[1]%taps != 0 || x[2] != tensor.Shape(w.out).Elements() {
		return nil, 0, fmt.Errorf("columns of shape %v do not hold blocks of %v at %v positions", x, w.kernel, w.out)
	}
	return w, x[1] / taps, nil
}

func lowerCol2Im(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	w, channels, err := colWindow(c)
	if err != nil {
		return nil, err
	}
	batch, n := c.In[0].Shape[0], len(w.in)
	lead := tensor.Shape{batch * channels}
	x, err := e.Reshape(c.In[0], append(append(lead.Clone(), w.kernel...), w.out...))
	if err != nil {
		return nil, err
	}
	x, t, err := planTranspose(e, x, w, lead, nil)
	if err != nil {
		return nil, err
	}
	all := make([]int, 2*n)
	for a := range all {
		all[a] = 1 + a
	}
	if x, err = e.Bounded(x, all...); err != nil {
		return nil, err
	}
	p := &tensor.Primitive{Fn: tensor.FoldSum, Type: x.Type, Shape: t.shape, Fold: t.fold}
	y, err := e.Emit(p, x.Access(append(append(lower.Axes(0, 1), t.k...), t.o...)))
	if err != nil {
		return nil, err
	}
	if y, err = cutTranspose(e, y, t, w, lead); err != nil {
		return nil, err
	}
	return one(e.Reshape(y, append(tensor.Shape{batch, channels}, w.in...)))
}

// col2ImGrad reads the columns from the gradient: a convolution with the unit
// kernels of a block.
func col2ImGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	w, channels, err := colWindow(c)
	if err != nil {
		return nil, err
	}
	planes, taps := c.In[0].Shape[0]*channels, tensor.Shape(w.kernel).Elements()
	unit, err := c.Account.NewConst(tensor.Float32, append(tensor.Shape{taps, 1}, w.kernel...))
	if err != nil {
		return nil, err
	}
	for i := range taps {
		unit.Set(i*taps+i, tensor.F32(1))
	}
	g := reshaped(b, dy[0], c.Out[0].Shape, append(tensor.Shape{planes, 1}, w.in...))
	g = b.With(w.attrs()...).Op("Conv", g, b.Const(unit))
	return firstGrad(c, reshaped(b, g, append(tensor.Shape{planes, taps}, w.out...), c.In[0].Shape)), nil
}
