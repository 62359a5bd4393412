package adversary

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tally-network/tally/internal/testkit/adversary/bend"
)

// writer writes a history while it is played.
type writer struct {
	*play
	*rand.Rand
	kinds  []string
	side   *rand.Rand // for what orders with replicas need, so that all others are drawn as they were
	few    []string   // the only kinds, if there are any
	steady bool       // time never jumps further than honest people can follow
}

// Attack writes the history of a seed and plays it. It returns what was found, nil if
// nothing was, and how many messages were sent.
func (w *World) Attack(seed uint64) (*Finding, int) {
	h := w.writer(seed)
	h.play = w.branch(h.script)
	h.begin()
	blocks := 4 + h.IntN(28)
	for range blocks {
		if h.found != nil {
			break
		}
		h.write()
	}
	h.end()
	if h.found != nil {
		h.found.Script, h.found.Txs = *h.script, h.txs
	}
	return h.found, h.txs
}

// writer draws what a seed's history begins with: who is hostile, and how.
func (w *World) writer(seed uint64) *writer {
	r := rand.New(rand.NewPCG(seed, 0x7a11))
	h := &writer{Rand: r, kinds: w.messages(), steady: r.IntN(2) == 0}
	h.play = &play{World: w, script: &Script{World: w.Kind, Hostile: map[string]Habit{}}}
	h.side = rand.New(rand.NewPCG(seed, 6))
	h.people(h.script)
	h.replicaHabits()
	if h.IntN(2) == 0 {
		h.few = []string{h.kind(), h.kind(), h.kind()}[:1+h.IntN(3)]
	}
	return h
}

// people draws who is hostile, and in what way.
func (h *writer) people(s *Script) {
	groups := [][]string{house0, {house0[0]}, leads[:1], {"consumer"}, {"mallory"}, others, {others[h.IntN(len(others))]}, {challenger}, house1, {"trudy"}, leads[1:]}
	odds := []int{3, 3, 3, 2, 2, 8, 4, 8, 8, 8, 8}
	for i, g := range groups {
		if h.IntN(odds[i]) > 0 {
			continue
		}
		habit := h.habit()
		for _, name := range g {
			s.Hostile[name] = habit
		}
	}
	if h.IntN(4) == 0 {
		h.coalition(s)
	}
	if len(s.Hostile) == 0 {
		s.Hostile["mallory"] = Habit{}
	}
	for _, b := range buyers {
		if _, hostile := s.Hostile[b]; !hostile && h.IntN(2) == 0 {
			s.Orders = append(s.Orders, b)
		}
	}
	if len(s.Orders) > 0 && h.IntN(4) == 0 {
		s.Pick = h.kindOfOrder()
	}
	s.Pick += h.copies(s.Pick)
}

// coalition makes hostile, in one way, whom one person may be at once: a consumer, a lead
// and its providers, validators, a challenger.
func (h *writer) coalition(s *Script) {
	habit := h.habit()
	for _, part := range [][]string{{buyers[0]}, leads[:1], house0, others[:1+h.IntN(len(others))], {challenger}} {
		if h.IntN(3) == 0 {
			continue
		}
		for _, name := range part {
			s.Hostile[name] = habit
		}
	}
}

func (h *writer) habit() (b Habit) {
	b.Lie, b.Withhold = h.IntN(4) == 0, h.IntN(4) == 0
	switch h.IntN(4) {
	case 0:
		b.Skip = []string{"*"}
	case 1:
		for range 1 + h.IntN(2) {
			b.Skip = append(b.Skip, h.kinds[h.IntN(len(h.kinds))])
		}
	}
	return b
}

// write makes the next block, or some that are alike.
func (h *writer) write() {
	b := Block{Wait: h.wait()}
	if h.IntN(5) == 0 {
		b.Times = 1 << h.IntN([]int{4, 7}[h.IntN(2)])
	}
	if h.steady && b.Wait > follows {
		const wait = 2000 // a clock of a dispute lasts for many such blocks
		h.add(Block{Wait: wait, Times: int(min(b.Wait/wait, 1<<h.IntN(7)))})
		b.Wait = 1000
	}
	hostile := h.hostile()
	for range h.IntN(4) {
		b.Ops = append(b.Ops, h.op(hostile))
	}
	h.add(b)
}

// add plays a block of the history.
func (h *writer) add(b Block) {
	h.script.Blocks = append(h.script.Blocks, b)
	for range max(b.Times, 1) {
		h.step(b)
	}
}

// wait draws what passes before a block: mostly little, sometimes about as much as
// some window of the world, rarely hours.
func (h *writer) wait() int64 {
	switch h.IntN(12) {
	case 0:
		return 20_000 + h.Int64N(42)*1000
	case 1:
		return []int64{10_000, 30_000, 300_000, clock, clock/3 + 1}[h.IntN(5)]
	case 2:
		if h.IntN(8) == 0 {
			return 3_600_000 << h.IntN(6)
		}
	}
	return 1000 << h.IntN(3)
}

// hostile returns the names of hostile people, always in one order.
func (h *writer) hostile() (out []string) {
	for _, name := range everybody {
		if _, ok := h.script.Hostile[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

// op draws a message: one that is due, of whoever it is, or any; bent or not.
func (h *writer) op(hostile []string) Op {
	by := hostile[h.IntN(len(hostile))]
	if h.IntN(16) == 0 && len(h.sent) > 0 {
		return Op{By: by, Msg: "again", Pick: h.IntN(len(h.sent))}
	}
	var o Op
	due := h.duties()
	switch {
	case h.quiet(): // where nothing goes on, something is begun
		o = Op{By: by, Msg: "market.MsgPostOrder"}
	case len(due) > 0 && h.IntN(2) == 0:
		o = due[h.IntN(len(due))]
		if _, ok := h.script.Hostile[o.By]; !ok {
			o.By = by // in somebody else's place
		}
	default:
		o = Op{By: by, Msg: h.kind(), Order: h.IntN(3), Unit: h.IntN(4)}
		if h.IntN(2) == 0 {
			o.Pick = h.IntN(8)
		}
	}
	switch {
	case o.Msg == "dispute.MsgOpen" && h.IntN(4) > 0:
		h.aimAtWork(&o)
	case o.Msg == "market.MsgPostOrder" && h.IntN(2) == 0:
		o.Pick = h.kindOfOrder()
	}
	if o.Msg == "market.MsgPostOrder" {
		o.Pick += h.copies(o.Pick)
	}
	if h.IntN(3) > 0 {
		most := 2
		if o.Msg == "market.MsgPostOrder" {
			most = 4 // it has more fields than all others together
		}
		near := h.IntN(2) == 0                 // fields beside one another, which may contradict
		for range 1 + h.IntN(1+h.IntN(most)) { // few, so that the rest still fits
			within := ""
			if n := len(o.Bend); near && n > 0 {
				within = parent(o.Bend[n-1])
			}
			if b := h.bend(o, within); b != "" {
				o.Bend = append(o.Bend, b)
			}
		}
	}
	if h.IntN(24) == 0 {
		o.Times = 1 << h.IntN(6)
	}
	return o
}

// kindOfOrder draws what kind of order is posted: mostly one with names that are as
// long as they may be, or of some power of two; sometimes one of many shards, or one in
// which some time is a power of two.
func (h *writer) kindOfOrder() int {
	switch h.IntN(5) {
	case 0:
		return tails - 1
	case 1:
		if h.Kind == Crowd || h.IntN(8) == 0 { // each takes long
			return tails * h.IntN(sizes)
		}
	case 2:
		return tails * sizes * h.IntN(times*powers)
	}
	return h.IntN(tails)
}

// aimAtWork aims an op that opens a dispute at what can be disputed now: kinds that
// there are few of come as often as others. Where some attempts are forced, hostile people
// dispute of their own work only what is: they know it before everybody else.
func (h *writer) aimAtWork(o *Op) {
	var all [kinds][]Op
	for i := range h.orders {
		l := h.live(i)
		if l == nil {
			continue
		}
		add := func(t target, segment int) {
			all[t.kind] = append(all[t.kind], Op{Order: i, Unit: t.Index, Pick: t.pick(segment)})
		}
		for r := range l.Round {
			add(target{kind: ofMerge, Index: r}, 0)
		}
		for u := range l.Units {
			for _, t := range shown(l, u) {
				add(t, h.side.IntN(3))
			}
			if l.Units[u].Receipt == nil {
				continue
			}
			if _, own := h.script.Hostile[nameOf(l.Units[u].Provider)]; !own || h.Kind != Forced || h.forced(i, u) {
				add(target{kind: ofUnit, Index: u}, h.IntN(3))
			}
			for j, a := range l.Units[u].Audits {
				for _, s := range a.Segments {
					add(target{kind: ofVerdict, Index: u, which: j}, s)
				}
			}
		}
		for j, f := range forced(l) {
			add(target{kind: ofTruth, Index: f.Index, which: j}, h.IntN(3))
		}
	}
	some := slices.DeleteFunc(all[:], func(ops []Op) bool { return len(ops) == 0 })
	if len(some) == 0 {
		return
	}
	at := some[h.IntN(len(some))]
	w := at[h.IntN(len(at))]
	o.Order, o.Unit, o.Pick = w.Order, w.Unit, w.Pick
}

// forced reports whether an attempt of hostile people is forced, which they know.
func (h *writer) forced(order, unit int) bool {
	by := nameOf(h.views[order].Units[unit].Provider)
	return h.composer(Op{By: by, Order: order, Unit: unit}).truth() != nil
}

// kind draws a message; those by which most begins come more often. Half of the
// histories have a few kinds only: what needs many of one kind comes in these.
func (h *writer) kind() string {
	if n := len(h.few); n > 0 {
		return h.few[h.IntN(n)]
	}
	switch h.IntN(8) {
	case 0, 1:
		return "market.MsgPostOrder"
	case 2, 3:
		return "dispute.MsgOpen"
	case 4:
		return "dispute.MsgMove"
	}
	return h.kinds[h.IntN(len(h.kinds))]
}

// parent is the message that holds what a bend is about.
func parent(bend string) string {
	path, _, _ := strings.Cut(bend, "=")
	return path[:strings.LastIndex(path, ".")+1]
}

// bend draws a bend of an op within a message of it, "" if nothing there can be bent.
func (h *writer) bend(o Op, within string) string {
	c := h.composer(o)
	_, m, err := c.message()
	if err != nil || m == nil {
		return ""
	}
	spots := slices.DeleteFunc(bend.Spots(m, c.coded, c.known()), func(s bend.Spot) bool { return !strings.HasPrefix(s.Path, within) })
	slices.SortFunc(spots, func(x, y bend.Spot) int { return strings.Compare(x.Path, y.Path) })
	if len(spots) == 0 {
		return ""
	}
	s := spots[h.IntN(len(spots))]
	return s.Path + "=" + s.Draw(h.Rand)
}
