package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Products with the band of a matrix. Row i has the columns from i + offset − lower to i + offset + upper; −1 is no limit. What lies
// outside is no term, rather than a term of zero: an infinity there changes nothing, nor does how many columns there are. It is no
// operator of ONNX; attention is made of it.

var _ = define(
	// As MatMul, of terms in the band of the first matrix.
	lower.Operator{Name: "BandedMatMul", Min: 2, Max: 2, Outputs: 1, Attrs: bandAttrs, Lower: lowerBandedMatMul, Grad: bandedMatMulGrad},
)

var bandAttrs = []graph.Attr{graph.Int("lower", -1), graph.Int("offset", 0), graph.Int("upper", -1)}

// band says which columns each row of a matrix has.
type band struct{ offset, lower, upper int }

func bandOf(c *lower.Call) (band, error) {
	n := band{c.Int("offset"), c.Int("lower"), c.Int("upper")}
	if n.lower < -1 || n.upper < -1 || max(n.lower, n.upper, n.offset) > tensor.MaxDim/2 || n.offset < -tensor.MaxDim/2 {
		return n, fmt.Errorf("a band of %d columns before place %d and %d after it is out of range", n.lower, n.offset, n.upper)
	}
	return n, nil
}

// attrs state a band.
func (n band) attrs() []graph.Attr {
	return []graph.Attr{graph.Int("lower", n.lower), graph.Int("offset", n.offset), graph.Int("upper", n.upper)}
}

// transposed is the band of the transposed matrix.
func (n band) transposed() band { return band{-n.offset, n.upper, n.lower} }

// all reports whether every row of a matrix of rows and columns has all columns.
func (n band) all(rows, columns int) bool {
	return (n.lower < 0 || rows-1+n.offset-n.lower <= 0) && (n.upper < 0 || n.offset+n.upper >= columns-1)
}

// terms are those of the band, of a primitive whose rows lie on an axis and whose columns it folds; nil if they are all.
func (n band) terms(rows, columns, row int) *tensor.Band {
	if n.all(rows, columns) {
		return nil
	}
	out := &tensor.Band{To: tensor.Dim{Offset: columns}}
	if n.lower >= 0 {
		out.From = lower.Strided(n.offset-n.lower, row, 1)
	}
	if n.upper >= 0 {
		out.To = lower.Strided(n.offset+n.upper+1, row, 1)
	}
	return out
}

// keep writes where the elements of a matrix lie in the band.
func (n band) keep(b *graph.Builder, s tensor.Shape) string {
	keep, at := "", diagonals(b, s)
	also := func(condition string) {
		if keep != "" {
			condition = b.Op("And", keep, condition)
		}
		keep = condition
	}
	if n.lower >= 0 {
		also(b.Op("GreaterOrEqual", at, int64Const(b, n.offset-n.lower)))
	}
	if n.upper >= 0 {
		also(b.Op("LessOrEqual", at, int64Const(b, n.offset+n.upper)))
	}
	return keep
}

func lowerBandedMatMul(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	n, err := bandOf(c)
	if err != nil {
		return nil, err
	}
	if len(c.In[0].Shape) < 2 || len(c.In[1].Shape) < 2 {
		return nil, fmt.Errorf("shapes %v and %v are not those of matrices", c.In[0].Shape, c.In[1].Shape)
	}
	return lowerProduct(c, e, func(p *tensor.Primitive) {
		row := len(p.Shape) - 2
		p.Band = n.terms(p.Shape[row], p.Fold[0], row)
	})
}

// bandedMatMulGrad: dA = dY·Bᵀ in the band, and dB = Aᵀ·dY of the terms in the band.
func bandedMatMulGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	n, err := bandOf(c)
	if err != nil {
		return nil, err
	}
	as, bs, ys := c.In[0].Shape, c.In[1].Shape, c.Out[0].Shape
	da := sumTo(b, b.Op("MatMul", dy[0], swapLast(b, c.Inputs[1], len(bs))), productShape(ys, as), as)
	if keep := n.keep(b, as); keep != "" {
		da = b.Op("Where", keep, da, floatLike(c, b, 0))
	}
	db := b.With(n.transposed().attrs()...).Op("BandedMatMul", swapLast(b, c.Inputs[0], len(as)), dy[0])
	return []string{da, sumTo(b, db, productShape(ys, bs), bs)}, nil
}
