package tensor

// reader evaluates an Access. Where every coordinate stays inside its axis it
// is one linear form over the axes; otherwise each coordinate is checked.
type reader struct {
	flat   bool
	linear bool
	base   int
	stride []int // by axis of the primitive

	shape   Shape
	strides []int
	dims    []Dim
}

// Reader returns the linear form of operand i: element base + Σ stride[a]·axis a.
// It is false when some coordinate may lie outside the operand, is read through
// an index, or the access is flat.
func (p *Primitive) Reader(i int) (base int, stride []int, linear bool) {
	r := p.reader(i)
	return r.base, r.stride, r.linear
}

func (p *Primitive) reader(i int) reader {
	a := &p.Args[i]
	if a.Flat {
		return reader{flat: true}
	}
	r := reader{linear: true, stride: make([]int, len(p.Shape)+len(p.Fold)), shape: a.Shape, strides: a.Shape.Strides(), dims: a.Dims}
	for d, dim := range a.Dims {
		lo, hi, err := p.reach(dim)
		if err != nil || dim.Via != 0 || lo <= hi && (lo < 0 || hi >= a.Shape[d]) {
			r.linear = false
		}
		r.base += dim.Offset * r.strides[d]
		for _, t := range dim.Terms {
			r.stride[t.Axis] += t.Step * r.strides[d]
		}
	}
	return r
}

// index returns the flat element that the coordinates at (output axes, then
// folded axes) and flat output index o select; ok is false outside the operand.
func (r *reader) index(at []int, o int, via func(arg int) (int, error)) (i int, ok bool, err error) {
	if r.flat {
		return o, true, nil
	}
	if r.linear {
		i = r.base
		for a, s := range r.stride {
			i += s * at[a]
		}
		return i, true, nil
	}
	for d, dim := range r.dims {
		c := dim.at(at)
		if dim.Via != 0 {
			v, err := via(dim.Via)
			if err != nil {
				return 0, false, err
			}
			n := r.shape[d]
			if v < -MaxDim || v > MaxDim {
				return 0, false, nil
			}
			if c += v; c < 0 {
				c += n
			}
		}
		if c < 0 || c >= r.shape[d] {
			return 0, false, nil
		}
		i += c * r.strides[d]
	}
	return i, true, nil
}
