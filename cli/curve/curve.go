// Package curve draws how a loss falls: [Line] for a terminal, [SVG] for a page.
//
// Invariant: what is no number leaves a gap, and the picture depends on the losses alone.
package curve

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// bars are a line's heights.
var bars = []rune("▁▂▃▄▅▆▇█")

// mostBars bounds a line in columns.
const mostBars = 64

// extent returns the least and the greatest of the numbers, and whether there are two that differ.
func extent(losses []float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, x := range losses {
		if finite(x) {
			low, high = min(low, x), max(high, x)
		}
	}
	return low, high, low < high && finite(high-low)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Line returns a bar for each loss, of which there are as many as fit: of more, each bar is the last of some. It is "" unless
// losses differ.
func Line(losses []float64) string {
	low, high, ok := extent(losses)
	if !ok {
		return ""
	}
	n := min(len(losses), mostBars)
	var b strings.Builder
	for i := range n {
		x := losses[(i+1)*len(losses)/n-1]
		if !finite(x) {
			b.WriteRune(' ')
			continue
		}
		b.WriteRune(bars[int((x-low)/(high-low)*float64(len(bars)-1)+0.5)])
	}
	return b.String()
}

// The picture, in pixels.
const (
	width, height            = 480, 220
	left, right, top, bottom = 56, 16, 24, 36
)

// SVG returns a picture of losses, one for each round from the first on. It is nil unless losses differ.
func SVG(title string, first int, losses []float64) []byte {
	low, high, ok := extent(losses)
	if !ok {
		return nil
	}
	x := func(i int) float64 {
		return left + float64(i)/float64(max(1, len(losses)-1))*(width-left-right)
	}
	y := func(loss float64) float64 { return top + (high-loss)/(high-low)*(height-top-bottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<g font-family=\"sans-serif\" font-size=\"11\" fill=\"#555\">\n<text x=\"%d\" y=\"14\">%s</text>\n", escaped.Replace(title), left, escaped.Replace(title))
	for part := range 5 {
		loss := low + (high-low)*float64(part)/4
		fmt.Fprintf(&b, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", left, width-right, y(loss), y(loss), left-6, y(loss)+4, loss)
	}
	for _, i := range slices.Compact([]int{0, (len(losses) - 1) / 2, len(losses) - 1}) {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x(i), height-18, first+i)
	}
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">round</text>\n</g>\n", (left+width-right)/2, height-4)
	var run []string
	for i := range len(losses) + 1 {
		if i < len(losses) && finite(losses[i]) {
			run = append(run, fmt.Sprintf("%.1f,%.1f", x(i), y(losses[i])))
			continue
		}
		if len(run) > 1 {
			fmt.Fprintf(&b, "<polyline points=\"%s\" fill=\"none\" stroke=\"#2563eb\" stroke-width=\"2\"/>\n", strings.Join(run, " "))
		}
		run = nil
	}
	for i, loss := range losses {
		if finite(loss) {
			fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"#2563eb\"/>\n", x(i), y(loss))
		}
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

var escaped = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
