package affine

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Overlay copies elements at, at+1, … of the view to dst and leaves alone what
// lies outside the operand. T is an integer of the elements' size.
func Overlay[T mem.Integer](v *View, args []*tensor.Tensor, dst []T, at int) {
	if len(dst) == 0 {
		return
	}
	src := mem.Bits[T](args[v.Arg])
	inner := len(v.Loops) - 1
	in := v.Loops[inner]
	p := v.seek(at)
	if len(v.Bounds) == 0 && inner > 0 {
		copyPlanes(v, dst, src, &p)
		return
	}
	for {
		n := min(in.Extent-p.coord[inner], len(dst))
		switch {
		case len(v.Bounds) == 0:
			mem.ReadStrided(dst[:n], src, p.at, in.Stride)
		case inner > 0 && len(v.Bounds) == 1 && v.Bounds[0].Index != nil && in.Extent == 1:
			n = gather(v, args, dst, src, &p)
		case inner > 0 && p.coord[inner] == 0 && len(dst) >= in.Extent && v.rowsAlike():
			n = copyParts(v, args, dst, src, &p)
		default:
			lo, hi, shift := v.inside(args, &p, n)
			mem.ReadStrided(dst[lo:hi], src, p.at+shift+lo*in.Stride, in.Stride)
		}
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		v.nextRow(&p)
	}
}

// copyPlanes copies elements from p on, as many rows at a time as lie at one
// distance from each other.
func copyPlanes[T mem.Integer](v *View, dst, src []T, p *position) {
	l := len(v.Loops) - 1
	in, out := v.Loops[l], v.Loops[l-1]
	for {
		n, rows := in.Extent, out.Extent-p.coord[l-1]
		if p.coord[l] != 0 || len(dst) < n {
			n, rows = min(n-p.coord[l], len(dst)), 1
			mem.ReadStrided(dst[:n], src, p.at, in.Stride)
		} else {
			if len(dst) < rows*n {
				rows = len(dst) / n
			}
			if v.Transpose != nil && unsafe.Sizeof(dst[0]) == mem.Word && out.Stride == 1 && min(rows, n) >= asm.TransposeRows {
				v.transposePlane(mem.Slice[float32](mem.First(dst), rows*n), mem.Slice[float32](mem.First(src), len(src)), p.at, rows)
			} else {
				copyPlane(dst, src, p.at, rows, n, out.Stride, in.Stride)
			}
			p.coord[l-1] += rows - 1 // and on to the next row, below
			p.at += (rows - 1) * out.Stride
		}
		if dst = dst[rows*n:]; len(dst) == 0 {
			return
		}
		v.nextRow(p)
	}
}

// rowsAlike reports whether the same part of each row lies inside the operand, as of joins along the last axis.
func (v *View) rowsAlike() bool {
	for i := range v.Bounds {
		b := &v.Bounds[i]
		if b.Index != nil {
			return false
		}
		for _, step := range b.Steps[:len(v.Loops)-1] {
			if step != 0 {
				return false
			}
		}
	}
	return true
}

// copyParts copies the part of each row that lies inside the operand, of as many rows as lie at one distance from each other; p then is at the last
// of them. It returns the elements of the rows.
func copyParts[T mem.Integer](v *View, args []*tensor.Tensor, dst, src []T, p *position) int {
	l := len(v.Loops) - 1
	in, out := v.Loops[l], v.Loops[l-1]
	rows := min(out.Extent-p.coord[l-1], len(dst)/in.Extent)
	lo, hi, shift := v.inside(args, p, in.Extent)
	at := p.at + shift
	if hi-lo < rows {
		for c := lo; c < hi; c++ {
			mem.CopyStrided(dst[c:], in.Extent, src, at+c*in.Stride, out.Stride, rows)
		}
	} else {
		for r := range rows {
			mem.ReadStrided(dst[r*in.Extent:][lo:hi], src, at+r*out.Stride+lo*in.Stride, in.Stride)
		}
	}
	p.coord[l-1] += rows - 1
	p.at += (rows - 1) * out.Stride
	return rows * in.Extent
}

// gather copies the elements that an index selects one by one, up to the end of
// the last loop but one, of which p then is at the last. It returns their number.
func gather[T mem.Integer](v *View, args []*tensor.Tensor, dst, src []T, p *position) int {
	l := len(v.Loops) - 2
	b := &v.Bounds[0]
	x := b.Index
	n := min(v.Loops[l].Extent-p.coord[l], len(dst))
	c, i, at := b.Offset, x.Base, p.at
	for k := range l + 1 {
		c += b.Steps[k] * p.coord[k]
		i += x.Steps[k] * p.coord[k]
	}
	index := args[x.Arg]
	for j := range n {
		if by := intAt(index, i); by >= -tensor.MaxDim && by <= tensor.MaxDim {
			to := c + by
			if to < 0 {
				to, by = to+b.Extent, by+b.Extent
			}
			if to >= 0 && to < b.Extent {
				dst[j] = src[at+by*b.Stride]
			}
		}
		c, i, at = c+b.Steps[l], i+x.Steps[l], at+v.Loops[l].Stride
	}
	p.coord[l] += n - 1
	p.at += (n - 1) * v.Loops[l].Stride
	return n
}

// copyPlane copies rows × cols elements that lie so far apart, from one on, along
// the longer side where they are contiguous along neither.
func copyPlane[T mem.Integer](dst, src []T, at, rows, cols, rowStep, colStep int) {
	switch {
	case colStep == 1:
		for r := range rows {
			copy(dst[r*cols:][:cols], src[at+r*rowStep:][:cols])
		}
	case colStep == 0:
		for r := range rows {
			mem.Fill(dst[r*cols:][:cols], src[at+r*rowStep])
		}
	case rows > cols || max(rowStep, -rowStep) < max(colStep, -colStep):
		// In blocks, so that lines of dst stay in the cache.
		const block = tuning.CopyBlock
		for from := 0; from < rows; from += block {
			n := min(block, rows-from)
			for c := range cols {
				mem.CopyStrided(dst[from*cols+c:], cols, src, at+from*rowStep+c*colStep, rowStep, n)
			}
		}
	default:
		for r := range rows {
			mem.CopyStrided(dst[r*cols:], 1, src, at+r*rowStep, colStep, cols)
		}
	}
}

// transposePlane copies so many whole rows from an element on, which are neighbours in src.
// Where eights are not whole, some elements are copied twice.
func (v *View) transposePlane(dst, src []float32, at, rows int) {
	const eight = asm.TransposeRows
	cols, step := v.Loops[len(v.Loops)-1].Extent, v.Loops[len(v.Loops)-1].Stride
	var columns [eight]int
	for i := range columns {
		columns[i] = i * step
	}
	_, _ = dst[rows*cols-1], src[max(at, at+(cols-1)*step)+rows-1] // nothing else is checked
	for c := 0; c < cols; c += eight {
		c = min(c, cols-eight)
		from := at + c*step
		v.Transpose(rows/eight, &dst[c], cols*mem.Word, &src[from], &columns)
		if rows%eight != 0 {
			last := rows - eight
			v.Transpose(1, &dst[last*cols+c], cols*mem.Word, &src[from+last], &columns)
		}
	}
}

// Load returns n elements of the view: a part of the operand itself if they
// are contiguous there, else a copy in buf, with padding as given.
func Load[T any](v *View, args []*tensor.Tensor, buf []T, at, n int, padding T) []T {
	if n == 0 {
		return nil
	}
	inner := v.Loops[len(v.Loops)-1]
	if len(v.Bounds) == 0 && inner.Stride == 1 && at%inner.Extent+n <= inner.Extent {
		from := v.seek(at).at
		return mem.Slice[T](mem.Data(args[v.Arg]), args[v.Arg].Len())[from : from+n]
	}
	buf = buf[:n]
	if len(v.Bounds) != 0 {
		mem.Fill(buf, padding)
	}
	switch to := mem.First(buf); unsafe.Sizeof(padding) {
	case 1:
		Overlay(v, args, mem.Slice[uint8](to, n), at)
	case 2:
		Overlay(v, args, mem.Slice[uint16](to, n), at)
	case 4:
		Overlay(v, args, mem.Slice[uint32](to, n), at)
	default:
		Overlay(v, args, mem.Slice[uint64](to, n), at)
	}
	return buf
}
