package data

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/internal/replace"
)

// A sheet has so many rows and columns at most, and so many pixels between images.
const (
	sheetRows    = 40
	sheetColumns = 12
	sheetGap     = 2
	sheetPixels  = 1 << 25
)

// writeSheet writes some images of each class into a PNG file, a row for each. Without classes, they fill rows.
func writeSheet(name string, t *table.Table) error {
	at := slices.IndexFunc(t.Columns, func(c *table.Column) bool { return c.Kind == table.Image })
	if at < 0 {
		return errors.New("--sheet: the data has no images")
	}
	m, err := sheet(t.Columns[at].Values, rows(t))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return err
	}
	return replace.Create(name, b.Bytes())
}

// rows returns the records that a sheet shows in each row.
func rows(t *table.Table) (out [][]int) {
	at := slices.IndexFunc(t.Columns, func(c *table.Column) bool { return c.Kind == table.Category })
	for i := range t.Records {
		row := i / sheetColumns
		if at >= 0 {
			row = int(tensor.Of[int32](t.Columns[at].Values)[i])
		}
		if row < 0 || row >= sheetRows {
			continue
		}
		for len(out) <= row {
			out = append(out, nil)
		}
		if len(out[row]) < sheetColumns {
			out[row] = append(out[row], i)
		}
	}
	return out
}

// sheet draws records of uint8 [n, height, width, channels].
func sheet(pixels *tensor.Tensor, rows [][]int) (image.Image, error) {
	h, w, channels := pixels.Shape[1], pixels.Shape[2], pixels.Shape[3]
	if len(rows) == 0 {
		return nil, errors.New("--sheet: no record has a class")
	}
	if columns := min(sheetColumns, pixels.Shape[0]); h > sheetPixels/len(rows)/columns/w {
		return nil, errors.New("--sheet: the images are too large for one: say --height and --width")
	}
	m := image.NewRGBA(image.Rect(0, 0, sheetColumns*(w+sheetGap)+sheetGap, len(rows)*(h+sheetGap)+sheetGap))
	draw.Draw(m, m.Rect, image.NewUniform(color.Gray{128}), image.Point{}, draw.Src)
	for y, row := range rows {
		for x, record := range row {
			left, top := sheetGap+x*(w+sheetGap), sheetGap+y*(h+sheetGap)
			for i := range h * w {
				p := pixels.Bytes()[(record*h*w+i)*channels:][:channels]
				c := color.RGBA{p[0], p[0], p[0], 255}
				if channels >= 3 {
					c = color.RGBA{p[0], p[1], p[2], 255}
				}
				m.SetRGBA(left+i%w, top+i/w, c)
			}
		}
	}
	return m, nil
}
