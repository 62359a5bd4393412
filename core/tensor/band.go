package tensor

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// Band says which terms each output element of a contraction has, of those along the one folded axis: From ≤ k < To. Both follow from
// the output's coordinates, and are cut to what the axis has. Terms from To on are none: they open no K-block, so an element is the
// same in a primitive whose axis ends there. Terms before From do not count, and the others keep their K-blocks.
type Band struct{ From, To Dim }

func (p *Primitive) checkBand() error {
	if p.Band == nil {
		return nil
	}
	if p.Fn != Dot || len(p.Fold) != 1 {
		return fmt.Errorf("%v over %v has a band, which only a contraction along one axis may have", p.Fn, p.Fold)
	}
	for _, d := range []Dim{p.Band.From, p.Band.To} {
		for _, t := range d.Terms {
			if t.Axis < 0 || t.Axis >= len(p.Shape) {
				return fmt.Errorf("a band follows axis %d of %d output axes", t.Axis, len(p.Shape))
			}
		}
		if d.Via != 0 {
			return fmt.Errorf("a band is read through operand %d", d.Via)
		}
		if _, _, err := p.reach(d); err != nil {
			return fmt.Errorf("band: %w", err)
		}
	}
	return nil
}

// Range returns the terms from ≤ k < to of the output element at coordinates at.
func (p *Primitive) Range(at []int) (from, to int) {
	to = p.Terms()
	if p.Band == nil {
		return 0, to
	}
	to = max(0, min(p.Band.To.at(at), to))
	return max(0, min(p.Band.From.at(at), to)), to
}

// at returns the coordinate where axes have the given values.
func (d *Dim) at(axes []int) int {
	c := d.Offset
	for _, t := range d.Terms {
		c += t.Step * axes[t.Axis]
	}
	return c
}

// hasBand marks the function of a primitive that a band follows.
const hasBand = 0x80

func (d *Dim) encode(e *canon.Encoder) {
	e.Int(int64(d.Offset))
	canon.List(e, d.Terms, func(e *canon.Encoder, t Term) {
		e.Uint(uint64(t.Axis))
		e.Int(int64(t.Step))
	})
	e.Uint(uint64(d.Via))
}

func decodeDim(d *canon.Decoder) Dim {
	dim := Dim{Offset: int(d.Int())}
	dim.Terms = canon.ReadList(d, MaxTerms, 2, func(d *canon.Decoder) Term {
		return Term{int(d.Uint(MaxAxes)), int(d.Int())}
	})
	dim.Via = int(d.Uint(MaxArgs))
	return dim
}
