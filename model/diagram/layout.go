package diagram

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// Measures of a picture, in pixels.
const (
	rowHeight    = 24
	footerHeight = 20
	pillHeight   = 30
	leastWidth   = 132
	rankGap      = 42 // between layers
	boxGap       = 30 // between boxes of a layer
	besideGap    = 22 // between a box and an edge that passes it
	bendGap      = 10 // between edges
	bendWidth    = 4
	sweeps       = 24 // over the order in layers
	settlings    = 160
)

// box is a stack of rows, or a bend: a place where an edge passes a layer.
type box struct {
	rows     []int // drawn nodes; of a bend none
	frame    int
	rank     int
	x, y     float64 // of its centre, of its top
	w, h     float64
	in, out  []int // edges
	position int   // within its layer
}

func (b *box) bend() bool { return b.rows == nil }

// apart is the least distance of the centres of boxes beside one another.
func (b *box) apart(o *box) float64 {
	gap := float64(boxGap)
	switch {
	case b.bend() && o.bend():
		gap = bendGap
	case b.bend() || o.bend():
		gap = besideGap
	}
	return (b.w+o.w)/2 + gap
}

// edge leads from a box to one of the next layer.
type edge struct {
	from, to   int
	weight     float64 // of being straight
	begin, end float64 // where it leaves and enters, from the centres
}

// layout is a drawing with the places of everything.
type layout struct {
	*drawing
	boxes  []box
	edges  []edge
	layers [][]int   // boxes, from left to right
	tops   []float64 // of layers
	depth  []float64 // their heights
}

func layOut(d *drawing) (*layout, error) {
	l := &layout{drawing: d}
	links := l.stack()
	l.rank(links)
	if err := l.connect(links); err != nil {
		return nil, err
	}
	l.order()
	l.place()
	l.straighten()
	l.ports()
	return l, nil
}

// stack makes boxes of nodes that follow one another alone, and returns what reads what.
func (l *layout) stack() (links [][2]int) {
	readers := make([]int, len(l.nodes))
	for i := range l.nodes {
		if n := &l.nodes[i]; !n.gone {
			slices.Sort(n.from)
			n.from = slices.Compact(n.from)
			for _, from := range n.from {
				readers[from]++
			}
		}
	}
	at := make([]int, len(l.nodes))
	for i := range l.nodes {
		n := &l.nodes[i]
		if n.gone {
			continue
		}
		if len(n.from) == 1 && !l.end(i) && !l.end(n.from[0]) && readers[n.from[0]] == 1 && l.nodes[n.from[0]].frame == n.frame {
			at[i] = at[n.from[0]]
			l.boxes[at[i]].rows = append(l.boxes[at[i]].rows, i)
			continue
		}
		at[i] = len(l.boxes)
		l.boxes = append(l.boxes, box{rows: []int{i}, frame: n.frame})
		for _, from := range n.from {
			links = append(links, [2]int{at[from], at[i]})
		}
	}
	for i := range l.boxes {
		l.measure(&l.boxes[i])
	}
	return links
}

// end reports whether a node is an input or an output.
func (l *layout) end(i int) bool {
	key := l.nodes[i].key
	return len(key) > 6 && (key[:6] == "input " || key[:7] == "output ")
}

func (l *layout) measure(b *box) {
	b.w = leastWidth
	for _, i := range b.rows {
		n := &l.nodes[i]
		b.w = max(b.w, 34+7.4*letters(n.op)+6.2*letters(n.detail))
		if l.end(i) {
			b.w = max(b.w, 48+7.4*letters(n.op)+6.2*(letters(n.detail)+letters(n.label)))
		}
	}
	last := &l.nodes[b.rows[len(b.rows)-1]]
	b.w = max(b.w, 24+6.2*letters(last.label))
	b.h = float64(len(b.rows) * rowHeight)
	if l.end(b.rows[0]) {
		b.h = pillHeight
	} else if last.label != "" {
		b.h += footerHeight
	}
}

func letters(s string) float64 { return float64(min(utf8.RuneCountInString(s), maxLetter)) }

// rank puts every box below those that it reads, and those that read nothing close to who reads them.
func (l *layout) rank(links [][2]int) {
	for _, k := range links { // in the order of readers
		l.boxes[k[1]].rank = max(l.boxes[k[1]].rank, l.boxes[k[0]].rank+1)
	}
	reads := make([]bool, len(l.boxes))
	next := make([]int, len(l.boxes))
	for _, k := range links {
		reads[k[1]] = true
		if r := l.boxes[k[1]].rank; next[k[0]] == 0 || r < next[k[0]] {
			next[k[0]] = r
		}
	}
	for i := range l.boxes {
		if !reads[i] && next[i] > 0 {
			l.boxes[i].rank = next[i] - 1
		}
	}
}

// connect makes the edges, with a bend in each layer that one passes.
func (l *layout) connect(links [][2]int) error {
	bends := 0
	for _, k := range links {
		bends += l.boxes[k[1]].rank - l.boxes[k[0]].rank - 1
	}
	if bends > maxBends {
		return fmt.Errorf("edges of the graph pass others in %d places, limit %d: draw a part of it, or look at it with Netron", bends, maxBends)
	}
	for _, k := range links {
		at := k[0]
		for r := l.boxes[k[0]].rank + 1; r < l.boxes[k[1]].rank; r++ {
			l.boxes = append(l.boxes, box{frame: -1, rank: r, w: bendWidth})
			l.link(at, len(l.boxes)-1)
			at = len(l.boxes) - 1
		}
		l.link(at, k[1])
	}
	return nil
}

// Weights of edges: a path of boxes is straight before all, then a long edge.
const (
	straight = 8
	long     = 4
	short    = 1
)

func (l *layout) link(from, to int) {
	weight := float64(short)
	switch a, b := l.boxes[from].bend(), l.boxes[to].bend(); {
	case a && b:
		weight = long
	case !a && !b:
		weight = straight
	}
	l.edges = append(l.edges, edge{from: from, to: to, weight: weight})
	e := len(l.edges) - 1
	l.boxes[from].out, l.boxes[to].in = append(l.boxes[from].out, e), append(l.boxes[to].in, e)
}

// order sorts each layer by where its neighbours are, several times, so that few edges cross.
func (l *layout) order() {
	for i := range l.boxes {
		r := l.boxes[i].rank
		for len(l.layers) <= r {
			l.layers = append(l.layers, nil)
		}
		l.boxes[i].position = len(l.layers[r])
		l.layers[r] = append(l.layers[r], i)
	}
	centre := make([]float64, len(l.boxes))
	for s := range sweeps {
		for k := range l.layers {
			down := s%2 == 0
			layer := l.layers[k]
			if !down {
				layer = l.layers[len(l.layers)-1-k]
			}
			for _, i := range layer {
				b := &l.boxes[i]
				sum, n := 0.0, 0
				l.neighbours(b, down, func(o *box, _ *edge) { sum, n = sum+float64(o.position), n+1 })
				if centre[i] = float64(b.position); n > 0 {
					centre[i] = sum / float64(n)
				}
			}
			slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(centre[a], centre[b]) })
			for p, i := range layer {
				l.boxes[i].position = p
			}
		}
	}
}

// neighbours gives the boxes of the layer above, or below.
func (l *layout) neighbours(b *box, above bool, do func(*box, *edge)) {
	list := b.out
	if above {
		list = b.in
	}
	for _, e := range list {
		o := &l.boxes[l.edges[e].to]
		if above {
			o = &l.boxes[l.edges[e].from]
		}
		do(o, &l.edges[e])
	}
}

// place finds where boxes are: close to their neighbours, by least squares, and not upon one another.
func (l *layout) place() {
	y := 0.0
	for _, layer := range l.layers {
		x, h := 0.0, 0.0
		for _, i := range layer {
			b := &l.boxes[i]
			b.x = x + b.w/2
			x += b.w + boxGap
			h = max(h, b.h)
		}
		for _, i := range layer {
			l.boxes[i].x -= x / 2
			l.boxes[i].y = y + (h-l.boxes[i].h)/2
		}
		l.tops, l.depth = append(l.tops, y), append(l.depth, h)
		y += h + rankGap
	}
	for s := range settlings {
		for k := range l.layers {
			if s%2 == 0 {
				l.settle(l.layers[k], s)
			} else {
				l.settle(l.layers[len(l.layers)-1-k], s)
			}
		}
	}
}

// settle places a layer, by the one that was placed before it; after the first times by both around it.
func (l *layout) settle(layer []int, sweep int) {
	want, weight, shift := make([]float64, len(layer)), make([]float64, len(layer)), make([]float64, len(layer))
	for p, i := range layer {
		b := &l.boxes[i]
		sum, all := 0.0, 0.0
		add := func(o *box, e *edge) { sum, all = sum+e.weight*o.x, all+e.weight }
		both := sweep >= 8
		if both || sweep%2 == 0 {
			l.neighbours(b, true, add)
		}
		if both || sweep%2 == 1 {
			l.neighbours(b, false, add)
		}
		if want[p], weight[p] = b.x, 0.01; all > 0 {
			want[p], weight[p] = sum/all, all
		}
		if p > 0 {
			shift[p] = shift[p-1] + l.boxes[layer[p-1]].apart(b)
		}
		want[p] -= shift[p]
	}
	for p, x := range rising(want, weight) {
		l.boxes[layer[p]].x = x + shift[p]
	}
}

// straighten brings the bends of an edge below one another, as far as there is room.
func (l *layout) straighten() {
	for range 4 { // one edge makes room for another
		for i := range l.boxes {
			if l.boxes[i].bend() {
				continue
			}
			for _, e := range l.boxes[i].out {
				l.align(l.edges[e].to)
			}
		}
	}
}

// align brings bends from one on below one another.
func (l *layout) align(at int) {
	var run []int
	low, high := math.Inf(-1), math.Inf(1)
	finish := func() {
		sum := 0.0
		for _, i := range run {
			sum += l.boxes[i].x
		}
		for _, i := range run {
			l.boxes[i].x = min(max(sum/float64(len(run)), low), high)
		}
		run, low, high = nil, math.Inf(-1), math.Inf(1)
	}
	for l.boxes[at].bend() {
		b := &l.boxes[at]
		least, most := math.Inf(-1), math.Inf(1)
		layer := l.layers[b.rank]
		if p := b.position; p > 0 {
			o := &l.boxes[layer[p-1]]
			least = o.x + o.apart(b)
		}
		if p := b.position; p+1 < len(layer) {
			o := &l.boxes[layer[p+1]]
			most = o.x - b.apart(o)
		}
		least, most = min(least, b.x), max(most, b.x)
		if max(low, least) > min(high, most) {
			finish()
		}
		run, low, high = append(run, at), max(low, least), min(high, most)
		at = l.edges[b.out[0]].to
	}
	if run != nil {
		finish()
	}
}

// rising returns the numbers that never fall and are closest to those given, by weighted least squares: it pools
// neighbours that fall.
func rising(want, weight []float64) []float64 {
	type pool struct {
		mean, weight float64
		n            int
	}
	var pools []pool
	for i := range want {
		pools = append(pools, pool{want[i], weight[i], 1})
		for k := len(pools) - 1; k > 0 && pools[k-1].mean > pools[k].mean; k-- {
			a, b := pools[k-1], pools[k]
			w := a.weight + b.weight
			pools[k-1] = pool{(a.mean*a.weight + b.mean*b.weight) / w, w, a.n + b.n}
			pools = pools[:k]
		}
	}
	out := make([]float64, 0, len(want))
	for _, p := range pools {
		for range p.n {
			out = append(out, p.mean)
		}
	}
	return out
}

// ports spreads where edges leave and enter a box.
func (l *layout) ports() {
	for i := range l.boxes {
		b := &l.boxes[i]
		if b.bend() {
			continue
		}
		spread := func(list []int, other func(*edge) int, set func(*edge, float64)) {
			slices.SortStableFunc(list, func(p, q int) int {
				return cmp.Compare(l.boxes[other(&l.edges[p])].x, l.boxes[other(&l.edges[q])].x)
			})
			step := min(18, (b.w-40)/float64(max(len(list)-1, 1)))
			for k, e := range list {
				set(&l.edges[e], (float64(k)-float64(len(list)-1)/2)*step)
			}
		}
		spread(b.in, func(e *edge) int { return e.from }, func(e *edge, x float64) { e.end = x })
		spread(b.out, func(e *edge) int { return e.to }, func(e *edge, x float64) { e.begin = x })
	}
}
