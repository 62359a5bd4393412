package images

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// Limits on an image.
const (
	MaxExtent = 1 << 15 // pixels along a side
	MaxPixels = 1 << 24 // unless a caller allows more
	MaxFile   = 1 << 28 // bytes
)

// Header is what the beginning of an image file says.
type Header struct {
	Height, Width int
	Gray          bool // without color and transparency
}

// codec reads one format.
type codec struct {
	magic  string
	header func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = []codec{{"\x89PNG", png.DecodeConfig, png.Decode}, {"\xff\xd8", jpeg.DecodeConfig, jpeg.Decode}}

// sniff returns the format of a file, whose size is bounded.
func sniff(src *bufio.Reader) (codec, Header, error) {
	start, _ := src.Peek(4) // a shorter file begins with none of them
	i := slices.IndexFunc(codecs, func(c codec) bool { return bytes.HasPrefix(start, []byte(c.magic)) })
	if i < 0 {
		return codec{}, Header{}, errors.New("it is neither PNG nor JPEG, whatever its name says: convert it")
	}
	config, err := codecs[i].header(src)
	if err == nil && (config.Width < 1 || config.Height < 1 || config.Width > MaxExtent || config.Height > MaxExtent) {
		err = fmt.Errorf("%d × %d pixels: an image has 1 to %d along each side", config.Height, config.Width, MaxExtent)
	}
	gray := config.ColorModel == color.GrayModel || config.ColorModel == color.Gray16Model
	return codecs[i], Header{config.Height, config.Width, gray}, err
}

// ReadHeader returns the size of a PNG or JPEG image, of which nothing is decoded.
func ReadHeader(src io.Reader) (Header, error) {
	_, h, err := sniff(bufio.NewReader(src))
	return h, err
}

// Decode returns an image as bytes [height, width, channels]: 1 channel is gray, 3 are red, green and
// blue. It is refused, before it is decoded, if it has more pixels than given. Samples of 16 bits lose
// their lower half, what is transparent shows the color below, and colors become gray by
// Pillow's luma, (19595 R + 38470 G + 7471 B + 2¹⁵) / 2¹⁶.
func Decode(b []byte, channels, pixels int) (*tensor.Tensor, error) {
	if channels != 1 && channels != 3 {
		return nil, fmt.Errorf("%d channels: take 1 (gray) or 3 (red, green, blue)", channels)
	}
	format, h, err := sniff(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, err
	}
	if h.Height*h.Width > pixels {
		return nil, fmt.Errorf("%d × %d pixels, limit %d: make it smaller", h.Height, h.Width, pixels)
	}
	m, err := format.decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if size := m.Bounds().Size(); size.X != h.Width || size.Y != h.Height {
		return nil, fmt.Errorf("%d × %d pixels, and %d × %d said before", size.Y, size.X, h.Height, h.Width)
	}
	t, err := tensor.New(tensor.Uint8, tensor.Shape{h.Height, h.Width, channels})
	if err != nil {
		return nil, err
	}
	fill(t, m)
	return t, nil
}

// fill writes the pixels of an image.
func fill(t *tensor.Tensor, m image.Image) {
	at := rgb(m)
	channels, width := t.Shape[2], t.Shape[1]
	for y := range t.Shape[0] {
		row := t.Bytes()[y*width*channels:][:width*channels]
		for x := range width {
			r, g, b := at(m.Bounds().Min.X+x, m.Bounds().Min.Y+y)
			if channels == 3 {
				row[3*x], row[3*x+1], row[3*x+2] = r, g, b
			} else if row[x] = r; r != g || g != b {
				row[x] = byte((19595*uint32(r) + 38470*uint32(g) + 7471*uint32(b) + 1<<15) >> 16)
			}
		}
	}
}

// rgb returns what gives the color of a pixel, without its transparency.
func rgb(m image.Image) func(x, y int) (r, g, b byte) {
	switch m := m.(type) {
	case *image.Gray:
		return func(x, y int) (r, g, b byte) { v := m.Pix[m.PixOffset(x, y)]; return v, v, v }
	case *image.Gray16:
		return func(x, y int) (r, g, b byte) { v := m.Pix[m.PixOffset(x, y)]; return v, v, v }
	case *image.RGBA: // of PNG, opaque
		return func(x, y int) (r, g, b byte) { p := m.Pix[m.PixOffset(x, y):][:3]; return p[0], p[1], p[2] }
	case *image.NRGBA:
		return func(x, y int) (r, g, b byte) { p := m.Pix[m.PixOffset(x, y):][:3]; return p[0], p[1], p[2] }
	case *image.RGBA64:
		return func(x, y int) (r, g, b byte) { p := m.Pix[m.PixOffset(x, y):][:5]; return p[0], p[2], p[4] }
	case *image.NRGBA64:
		return func(x, y int) (r, g, b byte) { p := m.Pix[m.PixOffset(x, y):][:5]; return p[0], p[2], p[4] }
	case *image.YCbCr:
		return func(x, y int) (r, g, b byte) {
			chroma := m.COffset(x, y)
			return color.YCbCrToRGB(m.Y[m.YOffset(x, y)], m.Cb[chroma], m.Cr[chroma])
		}
	}
	return func(x, y int) (r, g, b byte) {
		c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
		return c.R, c.G, c.B
	}
}
