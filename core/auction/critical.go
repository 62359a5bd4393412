package auction

import "sort"

// walk looks for the least net budget with which a winner would still win.
//
// The others are cleared without it, in their order. At each place of it, the task could stand before the next one if it
// bid enough, and would pay what is then left for sale. Going on, standing there takes less, and what is left costs more.
// Where they meet is the answer.
type walk struct {
	begun  bool
	at     int    // the place by rank of the task that would be next
	levels levels // what those before it have taken
	size   uint64
}

// critical goes on by one place; found is false until the walk is over.
func (c *checker) critical(t *Trade) (least uint64, found bool) {
	w, task := &c.walk, &c.rank.b.Tasks[t.Task]
	if !w.begun {
		*w = walk{true, t.at + 1, *t.levels, c.rank.b.size(task, c.rank.m)}
	}
	_, score, ok := c.stock.take(&w.levels, task, task.net())
	switch {
	case !ok: // one place before, there was enough for it, and it had to outbid who took that
		least = c.outbid(t.Task, w.at-1)
	case w.at == len(c.cert.Tasks) || c.before(t.Task, score, w.at):
		least = score
		if w.at > t.at+1 {
			least = min(score, c.outbid(t.Task, w.at-1))
		}
	default:
		next := &c.rank.b.Tasks[c.cert.Tasks[w.at]]
		if to, _, ok := c.stock.take(&w.levels, next, next.net()); ok {
			w.levels = to
		}
		w.at++
		return 0, false
	}
	w.begun = false
	return least, true
}

// before says whether a task would stand before the one at a place if its net budget were so much.
func (c *checker) before(i uint32, net uint64, at int) bool {
	return c.rank.ranked(i, net, c.walk.size).compare(c.rank.task(c.cert.Tasks[at])) < 0
}

// outbid is the least net budget with which a task would stand before the one at a place, which it does by its own.
func (c *checker) outbid(i uint32, at int) uint64 {
	most := int(c.rank.b.Tasks[i].net())
	return uint64(sort.Search(most, func(net int) bool { return c.before(i, uint64(net), at) }))
}
