package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Matrix products. Each is one contraction; transposing costs nothing. Halves
// are summed in float32 and rounded once.

var _ = define(
	lower.Operator{Name: "MatMul", Min: 2, Max: 2, Outputs: 1, Lower: lowerMatMul, Grad: matMulGrad},
	lower.Operator{Name: "Gemm", Min: 2, Max: 3, Outputs: 1, Expand: inFloat32(expandGemm), Attrs: []graph.Attr{
		graph.Float("alpha", 1), graph.Float("beta", 1), graph.Int("transA", 0), graph.Int("transB", 0),
	}},
)

// lowerMatMul multiplies the last two axes; those before them broadcast. An
// operand with one axis is a row on the left, a column on the right, and the
// result lacks that axis.
func lowerMatMul(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	return lowerProduct(c, e, func(*tensor.Primitive) {})
}

// lowerProduct is lowerMatMul of a primitive that is first changed.
func lowerProduct(c *lower.Call, e *lower.Emitter, change func(p *tensor.Primitive)) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	a, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	b, err := e.Affine(c.In[1])
	if err != nil {
		return nil, err
	}
	m, n := len(a.Shape), len(b.Shape)
	if m == 0 || n == 0 || !a.Type.Numeric() || a.Type.Size() == 1 {
		return nil, fmt.Errorf("%v%v and %v%v cannot be multiplied as matrices", a.Type, a.Shape, b.Type, b.Shape)
	}
	inner := b.Shape[max(0, n-2)]
	if a.Shape[m-1] != inner {
		return nil, fmt.Errorf("shapes %v and %v do not fit: %d against %d", a.Shape, b.Shape, a.Shape[m-1], inner)
	}
	s, err := a.Shape[:max(0, m-2)].Broadcast(b.Shape[:max(0, n-2)])
	if err != nil {
		return nil, err
	}
	batch := len(s)
	row, column := batch, batch
	if m > 1 {
		s = append(s, a.Shape[m-2])
		column++
	}
	if n > 1 {
		s = append(s, b.Shape[n-1])
	}
	k := lower.Axis(len(s))
	left := append(batchDims(a.Shape, s[:batch]), lower.Axis(row), k)
	right := append(batchDims(b.Shape, s[:batch]), k, lower.Axis(column))
	if m == 1 {
		left = []tensor.Dim{k}
	}
	if n == 1 {
		right = []tensor.Dim{k}
	}
	p := &tensor.Primitive{Fn: tensor.Dot, Type: a.Type, Shape: s, Fold: []int{inner}}
	if a.Type.Half() {
		p.Type = tensor.Float32
	}
	change(p)
	y, err := e.Emit(p, a.Access(left), b.Access(right))
	if err == nil && a.Type.Half() {
		y, err = e.Map(tensor.Cast, a.Type, y)
	}
	return one(y, err)
}

// batchDims returns the coordinates on the axes before the last two of an
// operand, whose result has the given axes there.
func batchDims(x, batch tensor.Shape) []tensor.Dim {
	out := make([]tensor.Dim, max(0, len(x)-2))
	for i := range out {
		if j := i + len(batch) - len(out); x[i] == batch[j] {
			out[i] = lower.Axis(j)
		}
	}
	return out
}

// matMulGrad: dA = dY·Bᵀ, dB = Aᵀ·dY. Operands with one axis become matrices
// first. A matrix B that many A's share has its gradient from a single product,
// over all their rows at once.
func matMulGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	as, bs, ys := c.In[0].Shape, c.In[1].Shape, c.Out[0].Shape
	x, w, g := c.Inputs[0], c.Inputs[1], dy[0]
	am, bm, ym := as, bs, ys
	if len(as) == 1 {
		am = tensor.Shape{1, as[0]}
		ym = slices.Insert(ys.Clone(), len(ys)-min(1, len(bs)-1), 1)
	}
	if len(bs) == 1 {
		bm = tensor.Shape{bs[0], 1}
		ym = append(ym.Clone(), 1)
	}
	x, w, g = reshaped(b, x, as, am), reshaped(b, w, bs, bm), reshaped(b, g, ys, ym)
	da := sumTo(b, b.Op("MatMul", g, swapLast(b, w, len(bm))), productShape(ym, am), am)
	if len(bm) == 2 && len(am) > 2 {
		rows := am[:len(am)-1].Elements()
		x = reshaped(b, x, am, tensor.Shape{rows, am[len(am)-1]})
		g = reshaped(b, g, ym, tensor.Shape{rows, ym[len(ym)-1]})
		am, ym = tensor.Shape{rows, am[len(am)-1]}, tensor.Shape{rows, ym[len(ym)-1]}
	}
	db := sumTo(b, b.Op("MatMul", swapLast(b, x, len(am)), g), productShape(ym, bm), bm)
	return []string{reshaped(b, da, am, as), reshaped(b, db, bm, bs)}, nil
}

// productShape is the shape of a gradient before it is summed to shape to: it
// has the batch axes of the result y.
func productShape(y, to tensor.Shape) tensor.Shape {
	return append(y[:len(y)-2].Clone(), to[len(to)-2:]...)
}

// expandGemm writes alpha·A·B + beta·C.
func expandGemm(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	for i := range 2 {
		if len(c.In[i].Shape) != 2 {
			return nil, fmt.Errorf("input %q has shape %v, but should be a matrix", c.Inputs[i], c.In[i].Shape)
		}
	}
	left, right, s := c.Inputs[0], c.Inputs[1], tensor.Shape{c.In[0].Shape[0], c.In[1].Shape[1]}
	if c.Flag("transA") {
		left, s[0] = swapLast(b, left, 2), c.In[0].Shape[1]
	}
	if c.Flag("transB") {
		right, s[1] = swapLast(b, right, 2), c.In[1].Shape[0]
	}
	scaled := func(value, attr string) string {
		f := c.Float(attr)
		switch {
		case f == 1:
			return value
		case c.In[0].Type.Float():
			return b.Op("Mul", value, floatLike(c, b, float64(f)))
		}
		return b.Op("Mul", value, scalarLike(c, b, int(f)))
	}
	for _, attr := range []string{"alpha", "beta"} {
		if f := c.Float(attr); !c.In[0].Type.Float() && (!(f > -1<<24 && f < 1<<24) || f != float32(int(f))) {
			return nil, fmt.Errorf("%s is %v, but should be an integer where the matrices are %v", attr, f, c.In[0].Type)
		}
	}
	y := scaled(b.Op("MatMul", left, right), "alpha")
	if c.Has(2) {
		if t, err := s.Broadcast(c.In[2].Shape); err != nil || !t.Equal(s) {
			return nil, fmt.Errorf("input %q has shape %v, which does not broadcast to %v", c.Inputs[2], c.In[2].Shape, s)
		}
		y = b.Op("Add", y, scaled(c.Inputs[2], "beta"))
	}
	return []string{y}, nil
}
