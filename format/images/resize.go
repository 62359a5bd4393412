package images

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// Filter weighs the pixels that make up one of a resized image.
type Filter uint8

// The filters, as Pillow has them: widened where an image gets smaller, so that no pixel is left out.
const (
	Bilinear Filter = iota // a triangle
	Bicubic                // Keys' cubic with a = −1/2
)

// filters are the functions and how far they reach.
var filters = [...]struct {
	support float64
	weight  func(x float64) float64
}{
	Bilinear: {1, func(x float64) float64 {
		if x = math.Abs(x); x < 1 {
			return 1 - x
		}
		return 0
	}},
	Bicubic: {2, func(x float64) float64 {
		const a = -0.5
		switch x = math.Abs(x); {
		case x < 1:
			return float64(float64((float64((a+2)*x)-(a+3))*x)*x) + 1
		case x < 2:
			return (float64((float64((x-5)*x)+8)*x) - 4) * a
		}
		return 0
	}},
}

// precision is the number of bits after the point of a weight: a sum of products with bytes fits into 32.
const precision = 32 - 8 - 2

// window is which values make up one, from a place on, with their weights.
type window struct {
	from    int
	weights []int32
}

// windows returns how n values become others.
func windows(n, out int, f Filter) []window {
	scale := float64(n) / float64(out)
	widened := max(scale, 1)
	support := float64(filters[f].support * widened)
	all := make([]window, out)
	for i := range all {
		center := float64((float64(i) + 0.5) * scale)
		from, to := max(int(center-support+0.5), 0), min(int(center+support+0.5), n)
		weights, sum := make([]float64, to-from), 0.0
		for j := range weights {
			weights[j] = filters[f].weight(float64((float64(j+from) - center + 0.5) * (1 / widened)))
			sum += weights[j]
		}
		all[i] = window{from, make([]int32, len(weights))}
		for j, w := range weights {
			if sum != 0 {
				w /= sum
			}
			all[i].weights[j] = int32(math.Copysign(0.5, w) + float64(w*(1<<precision)))
		}
	}
	return all
}

// clip returns a sum of products as a byte.
func clip(sum int32) byte { return byte(min(max(sum>>precision, 0), 255)) }

// Resize returns an image [height, width, channels] of bytes in another size, bit for bit as
// Pillow's Image.resize does: along rows first, then along columns, each rounded to bytes, and
// neither where nothing changes.
func Resize(t *tensor.Tensor, height, width int, f Filter) (*tensor.Tensor, error) {
	if t.Type != tensor.Uint8 || len(t.Shape) != 3 || t.Len() == 0 || int(f) >= len(filters) {
		return nil, fmt.Errorf("%v%v is resized, want uint8 [height, width, channels]", t.Type, t.Shape)
	}
	if height < 1 || width < 1 || height > MaxExtent || width > MaxExtent {
		return nil, fmt.Errorf("resize to %d × %d: take 1 to %d", height, width, MaxExtent)
	}
	if most := 4 * MaxPixels; t.Shape[0] > most/width || height > most/width {
		return nil, fmt.Errorf("an image of %d × %d pixels is resized to %d × %d, by more than %d between: do it in steps", t.Shape[0], t.Shape[1], height, width, most)
	}
	if width != t.Shape[1] {
		out, err := tensor.New(tensor.Uint8, tensor.Shape{t.Shape[0], width, t.Shape[2]})
		if err != nil {
			return nil, err
		}
		alongRows(out, t, windows(t.Shape[1], width, f))
		t = out
	}
	if height != t.Shape[0] {
		out, err := tensor.New(tensor.Uint8, tensor.Shape{height, width, t.Shape[2]})
		if err != nil {
			return nil, err
		}
		alongColumns(out, t, windows(t.Shape[0], height, f))
		t = out
	}
	return t, nil
}

// alongRows makes every row of an image of the same row.
func alongRows(out, in *tensor.Tensor, all []window) {
	channels := in.Shape[2]
	from, to := in.Shape[1]*channels, out.Shape[1]*channels
	for y := range in.Shape[0] {
		src, dst := in.Bytes()[y*from:][:from], out.Bytes()[y*to:][:to]
		if channels == 3 {
			colorRow(dst, src, all)
			continue
		}
		for x, w := range all {
			for c := range channels {
				sum := int32(1 << (precision - 1))
				at := w.from*channels + c
				for _, weight := range w.weights {
					sum += int32(src[at]) * weight
					at += channels
				}
				dst[x*channels+c] = clip(sum)
			}
		}
	}
}

// colorRow makes a row of red, green and blue, of which each weight is read once.
func colorRow(dst, src []byte, all []window) {
	for x, w := range all {
		r, g, b := int32(1<<(precision-1)), int32(1<<(precision-1)), int32(1<<(precision-1))
		pixels := src[3*w.from:][:3*len(w.weights)]
		for _, weight := range w.weights {
			r += int32(pixels[0]) * weight
			g += int32(pixels[1]) * weight
			b += int32(pixels[2]) * weight
			pixels = pixels[3:]
		}
		dst[3*x], dst[3*x+1], dst[3*x+2] = clip(r), clip(g), clip(b)
	}
}

// alongColumns makes every row of an image of several rows.
func alongColumns(out, in *tensor.Tensor, all []window) {
	row := in.Shape[1] * in.Shape[2]
	sums := make([]int32, row)
	for y, w := range all {
		for i := range sums {
			sums[i] = 1 << (precision - 1)
		}
		for j, weight := range w.weights {
			for i, v := range in.Bytes()[(w.from+j)*row:][:row] {
				sums[i] += int32(v) * weight
			}
		}
		dst := out.Bytes()[y*row:][:row]
		for i, sum := range sums {
			dst[i] = clip(sum)
		}
	}
}

// Crop returns the largest part of an image [height, width, channels], in its middle, that has the proportions
// of another size.
func Crop(t *tensor.Tensor, height, width int) (*tensor.Tensor, error) {
	if len(t.Shape) != 3 || t.Len() == 0 || height < 1 || width < 1 || height > MaxExtent || width > MaxExtent {
		return nil, fmt.Errorf("%v%v is cropped to %d × %d, want [height, width, channels], and 1 to %d", t.Type, t.Shape, height, width, MaxExtent)
	}
	h, w := t.Shape[0], t.Shape[1]
	if w*height > h*width {
		w = max(1, h*width/height)
	} else {
		h = max(1, w*height/width)
	}
	return cut(t, (t.Shape[0]-h)/2, (t.Shape[1]-w)/2, h, w)
}

// cut returns a part of an image.
func cut(t *tensor.Tensor, top, left, h, w int) (*tensor.Tensor, error) {
	out, err := tensor.New(t.Type, tensor.Shape{h, w, t.Shape[2]})
	if err != nil {
		return nil, err
	}
	pixel := t.Shape[2] * t.Type.Size()
	for y := range h {
		copy(out.Bytes()[y*w*pixel:][:w*pixel], t.Bytes()[((top+y)*t.Shape[1]+left)*pixel:])
	}
	return out, nil
}
