package plausibility

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
)

// panel is one curve over the checkpoints.
type panel struct {
	title  string
	x      []int
	y      []float64
	limit  float64 // a line, if above 0
	legend string  // of the line
}

const (
	panelWidth, panelHeight = 640, 200
	left, right, top, foot  = 64, 16, 32, 32
)

// SVG draws loss, distance to the end and change over the checkpoints.
func (r *Report) SVG(w io.Writer) error {
	panels := []panel{
		{"loss", r.Steps, r.Loss, 0, ""},
		{"distance to the end (root mean square over all weights)", r.Steps, r.Distance, 0, ""},
		{"largest change of a tensor's distribution, in its median change", r.Steps[1:], r.Change, maxJump, "P2's limit"},
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		panelWidth, panelHeight*len(panels), panelWidth, panelHeight*len(panels))
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, p := range panels {
		p.draw(&b, float64(i*panelHeight))
	}
	b.WriteString("</svg>\n")
	_, err := b.WriteTo(w)
	return err
}

func (p panel) draw(b *bytes.Buffer, y0 float64) {
	low, high := 0.0, p.limit
	for _, y := range p.y {
		low, high = min(low, y), max(high, y)
	}
	if high == low {
		high = low + 1
	}
	first, last := float64(p.x[0]), float64(max(p.x[len(p.x)-1], p.x[0]+1))
	px := func(x float64) float64 { return left + (x-first)/(last-first)*(panelWidth-left-right) }
	py := func(y float64) float64 {
		return y0 + top + (1-(y-low)/(high-low))*(panelHeight-top-foot)
	}
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
		_ = xml.EscapeText(b, []byte(s)) // writing to a buffer cannot fail
		b.WriteString("</text>\n")
	}
	line := func(x1, y1, x2, y2 float64, style string) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
	}
	text(left, y0+18, "start", p.title)
	for _, y := range []float64{low, (low + high) / 2, high} {
		line(left, py(y), panelWidth-right, py(y), `stroke="#ddd"`)
		text(left-6, py(y)+4, "end", fmt.Sprintf("%.3g", y))
	}
	for _, x := range []float64{first, last} {
		text(px(x), y0+panelHeight-foot+18, map[bool]string{true: "start", false: "end"}[x == first], fmt.Sprintf("step %.0f", x))
	}
	if p.limit > 0 {
		line(left, py(p.limit), panelWidth-right, py(p.limit), `stroke="#c33" stroke-dasharray="4 3"`)
		text(panelWidth-right-4, py(p.limit)+14, "end", p.legend)
	}
	b.WriteString(`<polyline fill="none" stroke="#236" stroke-width="1.5" points="`)
	for i, y := range p.y {
		fmt.Fprintf(b, "%.1f,%.1f ", px(float64(p.x[i])), py(y))
	}
	b.WriteString("\"/>\n")
	for i, y := range p.y {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="#236"/>`+"\n", px(float64(p.x[i])), py(y))
	}
}
