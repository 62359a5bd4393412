package diagram

// Limits on parts that repeat.
const (
	leastPart = 4       // nodes
	mostPart  = 1 << 9  // nodes
	mostTries = 1 << 25 // comparisons of nodes, however hostile a graph is
)

// collapse draws parts that repeat once: those first that save most.
func (d *drawing) collapse() {
	free := make([]bool, len(d.nodes))
	for i := range free {
		free[i] = true
	}
	d.tries = mostTries
	for {
		best := frame{}
		for size := leastPart; size <= min(mostPart, len(d.nodes)/2) && d.tries > 0; size++ {
			if f := d.repeated(size, free); f.size*(f.times-1) > best.size*(best.times-1) {
				best = f
			}
		}
		if best.times < 2 {
			return
		}
		d.fold(best, free)
	}
}

// repeated returns the longest run of parts of a size that are like one another, and of which only the last is
// read by what follows them.
func (d *drawing) repeated(size int, free []bool) (best frame) {
	for i := 0; i+2*size <= len(d.nodes) && d.tries > 0; {
		n := i
		for n+size < len(d.nodes) && free[n] && free[n+size] && d.alike(n, n+size, i, size) {
			n++
		}
		times := (n-i)/size + 1
		for ; times > max(best.times, 1) && d.tries > 0; times-- { // of one size more are better
			least := 0
			for slack := n - i + size - times*size; slack >= 0 && d.tries > 0; slack-- { // the last start is behind what only looks like an end
				f := frame{i + slack, size, times}
				if cut := d.cut(f); d.closed(f) && (best.times != times || cut < least) {
					best, least = f, cut
				}
			}
		}
		if n-i >= size {
			i = n // no start within a run gives more of it
			continue
		}
		i++
	}
	return best
}

// alike reports whether node b does what node a does, one part later: it reads the same of its own part and of the
// one before, or the same value from before all parts.
func (d *drawing) alike(a, b, start, size int) bool {
	d.tries--
	x, y := &d.nodes[a], &d.nodes[b]
	if x.key != y.key || len(x.from) != len(y.from) {
		return false
	}
	for i := range x.from {
		before := x.from[i] == y.from[i] && x.from[i] < start
		if along := x.from[i] == y.from[i]-size && y.from[i] >= start; !before && !along {
			return false
		}
	}
	return true
}

// cut counts the values that lead into a part and out of it.
func (d *drawing) cut(f frame) int {
	d.tries -= len(d.nodes)
	last, end := f.from+(f.times-1)*f.size, f.from+f.times*f.size
	in, out := map[int]bool{}, map[int]bool{}
	for i := f.from; i < len(d.nodes); i++ {
		for _, from := range d.nodes[i].from {
			switch {
			case i < f.from+f.size && from < f.from:
				in[from] = true
			case i >= end && from >= last && from < end:
				out[from] = true
			}
		}
	}
	return len(in) + len(out)
}

// closed reports whether what follows the parts reads the last of them alone.
func (d *drawing) closed(f frame) bool {
	d.tries -= len(d.nodes)
	last, end := f.from+(f.times-1)*f.size, f.from+f.times*f.size
	for i := f.from; i < len(d.nodes); i++ {
		for _, from := range d.nodes[i].from {
			switch {
			case from < f.from || from >= end: // outside
			case i >= end && from < last:
				return false
			case i < end && from < i-(i-f.from)%f.size-f.size: // two parts back
				return false
			}
		}
	}
	return true
}

// fold leaves the first of the parts in the drawing.
func (d *drawing) fold(f frame, free []bool) {
	for i := f.from; i < f.from+f.times*f.size; i++ {
		free[i] = false
		if i < f.from+f.size {
			d.nodes[i].frame = len(d.frames)
		} else {
			d.nodes[i].gone = true
		}
	}
	last, end := f.from+(f.times-1)*f.size, f.from+f.times*f.size
	for i := end; i < len(d.nodes); i++ {
		for j, from := range d.nodes[i].from {
			if from >= last && from < end {
				d.nodes[i].from[j] = from - (f.times-1)*f.size
			}
		}
	}
	d.frames = append(d.frames, f)
}
