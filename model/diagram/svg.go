package diagram

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

const (
	margin      = 32
	header      = 70 // of title and note
	framePad    = 16
	bottomSpace = 30
)

// kinds are groups of operators that look alike.
var kinds = map[string]string{}

func init() {
	for kind, list := range map[string]string{ // order: each operator has one kind
		"product": "Conv ConvTranspose Gemm MatMul MatMulInteger ConvInteger QLinearConv QLinearMatMul Einsum Attention LSTM GRU RNN BandedMatMul",
		"norm":    "BatchNormalization GroupNormalization LayerNormalization InstanceNormalization RMSNormalization LRN Softmax LogSoftmax",
		"act":     "Relu Gelu Tanh Sigmoid LeakyRelu PRelu Elu Selu Celu HardSwish HardSigmoid Swish Mish Softplus Softsign Clip Erf",
		"pool":    "MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool ReduceMean ReduceMax ReduceSum Dropout Resize",
		"map":     "Add Sub Mul Div Sum Max Min Pow Sqrt Where",
		"look":    "Gather GatherND GatherElements OneHot",
	} {
		for _, name := range strings.Fields(list) {
			kinds[name] = kind
		}
	}
}

const style = `
    text { font: 12px Helvetica, Arial, sans-serif; fill: #1f2328 }
    .title { font-size: 19px; font-weight: bold }
    .note, .side { fill: #59636e }
    .op { font-weight: bold }
    .side { font-size: 11px; text-anchor: end }
    .shape { font-size: 11px; fill: #59636e; text-anchor: middle }
    .page { fill: #ffffff }
    .box { fill: #ffffff; stroke: #afb8c1 }
    .row { fill: #f6f8fa } .bar { fill: #afb8c1 }
    .product .row { fill: #ddf4ff } .product .bar { fill: #0969da }
    .norm .row { fill: #dafbe1 } .norm .bar { fill: #1a7f37 }
    .act .row { fill: #fff1e5 } .act .bar { fill: #e16f24 }
    .pool .row { fill: #fbefff } .pool .bar { fill: #8250df }
    .map .row { fill: #fff8c5 } .map .bar { fill: #bf8700 }
    .look .row { fill: #ffeff7 } .look .bar { fill: #bf3989 }
    .pill { fill: #24292f } .pill-op { fill: #ffffff; font-weight: bold } .pill-side { fill: #d0d7de; font-size: 11px }
    .frame { fill: #f6f8fa; stroke: #8c959f; stroke-dasharray: 5 4 }
    .times { fill: #8c959f } .times-text { fill: #ffffff; font-weight: bold; text-anchor: middle }
    .edge { fill: none; stroke: #6e7781; stroke-width: 1.4 }
  `

// canvas is a picture while it is written.
type canvas struct{ bytes.Buffer }

func (c *canvas) line(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

// words are a stranger's, as text of a picture; a long one is cut.
func words(s string) string {
	if r := []rune(s); len(r) > maxLetter {
		s = string(r[:maxLetter-1]) + "…"
	}
	return escaped(s)
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // which a buffer takes
	return b.String()
}

// svg writes the picture.
func (l *layout) svg(o Options) []byte {
	left, right, bottom := 0.0, 9.0*float64(len([]rune(o.Title))), 0.0
	if len(l.boxes) > 0 {
		left, right = math.Inf(1), math.Inf(-1)
	}
	for i := range l.boxes {
		b := &l.boxes[i]
		left, right, bottom = min(left, b.x-b.w/2), max(right, b.x+b.w/2), max(bottom, b.y+b.h)
	}
	width := max(right-left+2*margin+2*framePad, 60+10*float64(len([]rune(o.Title))), 40+6.5*float64(len([]rune(o.Note))))
	height := header + bottom + bottomSpace
	c := &canvas{}
	c.line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-labelledby="title">`, width, height, width, height)
	c.line(`  <title id="title">%s</title>`, escaped(o.Title))
	c.line(`  <style>%s</style>`, style)
	c.line(`  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#6e7781"/></marker></defs>`)
	c.line(`  <rect class="page" width="%.0f" height="%.0f"/>`, width, height)
	c.line(`  <text class="title" x="24" y="34">%s</text>`, escaped(o.Title))
	c.line(`  <text class="note" x="24" y="54">%s</text>`, escaped(o.Note))
	c.line(`  <g transform="translate(%.1f %d)">`, (width-left-right)/2, header)
	for f := range l.frames {
		l.frameAt(c, f)
	}
	l.paths(c)
	for i := range l.boxes {
		if b := &l.boxes[i]; b.bend() {
			continue
		} else if l.end(b.rows[0]) {
			l.pill(c, b)
		} else {
			l.rows(c, b)
		}
	}
	c.line("  </g>\n</svg>")
	return c.Bytes()
}

// frameAt draws around a part that repeats.
func (l *layout) frameAt(c *canvas, f int) {
	left, right, top, bottom := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	inside := map[int]bool{}
	for i := range l.boxes {
		if b := &l.boxes[i]; b.frame == f {
			inside[i] = true
			left, right, top, bottom = min(left, b.x-b.w/2), max(right, b.x+b.w/2), min(top, b.y), max(bottom, b.y+b.h)
		}
	}
	for i := range l.boxes { // bends between them
		if b := &l.boxes[i]; b.bend() && b.y >= top && b.y <= bottom && l.within(i, inside) {
			left, right = min(left, b.x), max(right, b.x)
		}
	}
	c.line(`    <rect class="frame" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="10"/>`, left-framePad, top-framePad, right-left+2*framePad, bottom-top+2*framePad)
	c.line(`    <rect class="times" x="%.1f" y="%.1f" width="46" height="20" rx="10"/>`, left-framePad+8, top-framePad-10)
	c.line(`    <text class="times-text" x="%.1f" y="%.1f">× %d</text>`, left-framePad+31, top-framePad+4, l.frames[f].times)
}

// within reports whether a bend is of an edge that ends at one of some boxes.
func (l *layout) within(i int, inside map[int]bool) bool {
	for l.boxes[i].bend() {
		i = l.edges[l.boxes[i].out[0]].to
	}
	return inside[i]
}

// bottom is the lower end of a layer.
func (l *layout) bottom(rank int) float64 { return l.tops[rank] + l.depth[rank] }

// paths draws each edge from box to box, through its bends. It turns between layers alone, and crosses no box so.
func (l *layout) paths(c *canvas) {
	for i := range l.boxes {
		if l.boxes[i].bend() {
			continue
		}
		for _, e := range l.boxes[i].out {
			b := &l.boxes[i]
			x, y := b.x+l.edges[e].begin, l.bottom(b.rank)
			var d strings.Builder
			fmt.Fprintf(&d, "M%.1f %.1f V%.1f", x, b.y+b.h, y)
			for {
				to := &l.boxes[l.edges[e].to]
				endX, endY := to.x+l.edges[e].end, l.tops[to.rank]
				half := (y + endY) / 2
				fmt.Fprintf(&d, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, half, endX, half, endX, endY)
				if !to.bend() {
					fmt.Fprintf(&d, " V%.1f", to.y)
					break
				}
				x, y, e = endX, l.bottom(to.rank), to.out[0]
				fmt.Fprintf(&d, " V%.1f", y)
			}
			c.line(`    <path class="edge" marker-end="url(#tip)" d="%s"/>`, d.String())
		}
	}
}

// pill draws an input or an output.
func (l *layout) pill(c *canvas, b *box) {
	n := &l.nodes[b.rows[0]]
	c.line(`    <rect class="pill" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="15"/>`, b.x-b.w/2, b.y, b.w, pillHeight)
	c.line(`    <text text-anchor="middle" x="%.1f" y="%.1f"><tspan class="pill-op">%s</tspan><tspan class="pill-side" dx="8">%s</tspan></text>`,
		b.x, b.y+19, words(n.op), words(strings.TrimSpace(n.detail+" "+n.label)))
}

// rows draws a stack.
func (l *layout) rows(c *canvas, b *box) {
	left := b.x - b.w/2
	c.line(`    <rect class="box" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4"/>`, left-.5, b.y-.5, b.w+1, b.h+1)
	for k, i := range b.rows {
		n := &l.nodes[i]
		y := b.y + float64(k*rowHeight)
		c.line(`    <g class="%s"><rect class="row" x="%.1f" y="%.1f" width="%.1f" height="%d"/><rect class="bar" x="%.1f" y="%.1f" width="4" height="%d"/>`,
			kinds[n.op], left, y, b.w, rowHeight-1, left, y, rowHeight-1)
		c.line(`    <text class="op" x="%.1f" y="%.1f">%s</text><text class="side" x="%.1f" y="%.1f">%s</text></g>`,
			left+12, y+16, words(n.op), left+b.w-8, y+16, words(n.detail))
	}
	if label := l.nodes[b.rows[len(b.rows)-1]].label; label != "" {
		c.line(`    <text class="shape" x="%.1f" y="%.1f">%s</text>`, b.x, b.y+b.h-6, words(label))
	}
}
