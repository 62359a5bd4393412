package adversary

import (
	"slices"

	"github.com/tally-network/tally/core/job"
)

// duties returns what everybody would do now who follows the protocol.
func (p *play) duties() (out []Op) {
	p.refresh()
	for i, o := range p.orders {
		l := p.live(i)
		if l == nil {
			continue
		}
		add := func(by, msg string, unit, pick int) {
			if name := nameOf(by); name != "" {
				out = append(out, Op{By: name, Msg: msg, Order: i, Unit: unit, Pick: pick})
			}
		}
		p.leading(o, l, add)
		for u := range l.Units {
			if l.Units[u].Receipt != nil || l.Units[u].Provider != "" {
				p.working(o, l, u, add)
			}
			seats{p, o, l}.comparing(u, add)
		}
		for j, r := range questions(l) {
			if r.Due != 0 && (r.Unit == job.OfFiles || p.available(o, l.Units[r.Unit].Receipt)) {
				add(r.Custodian, "work.MsgAnswer", r.Unit, j)
			}
		}
		p.watching(o, l, add)
	}
	for i, g := range p.open() {
		if name := nameOf(g.seat(g.Turn)); name != "" && !g.Dispute.Waiting && p.witness(g, p.lies(name)) != nil {
			out = append(out, Op{By: name, Msg: "dispute.MsgMove", Order: i})
		}
	}
	return out
}

type adder func(by, msg string, unit, pick int)

// leading is what a lead does, and who may take its place.
func (p *play) leading(o *order, l *job.Lease, add adder) {
	now := p.clock()
	for _, d := range l.Leads {
		if l.MayTakeLead(d.Account, now) && (o.mind != nil || o.named) {
			add(d.Account, "work.MsgTakeLead", 0, 0)
			break
		}
	}
	if l.Phase != job.Active && !l.AwaitsMerge() || l.Lead() == "" || l.Round == len(l.Merges) {
		return
	}
	if l.Files.Said != job.Had { // no work before
		for _, k := range l.Files.Custodians {
			if k.Says == job.Silent {
				add(k.Account, "work.MsgAttestFiles", 0, 0)
			}
		}
		return
	}
	if o.mind == nil && !o.named {
		return
	}
	accepted, given := 0, 0
	for s, u := range l.RoundUnits() {
		unit := l.Unit(l.Round, s)
		switch {
		case u.Status == job.Accepted:
			accepted++
		case u.Status == job.Open && given <= len(l.Providers):
			if replicated(l) && placeable(l) || !replicated(l) && len(p.able(o, l, unit)) > 0 {
				add(l.Lead(), "work.MsgAssign", unit, unit+u.Attempt)
				given++
			}
		}
	}
	if accepted == len(l.RoundUnits()) {
		add(l.Lead(), "work.MsgMerge", 0, 0)
	}
}

// able returns the providers that take a unit.
func (p *play) able(o *order, l *job.Lease, unit int) (out []string) {
	for _, a := range l.Eligible() {
		if !l.Withheld(unit, a) && p.accepts(nameOf(a), o, l) {
			out = append(out, a)
		}
	}
	return out
}

// accepts reports whether a provider can be given a unit of the round: it has said on
// chain that it is ready, or would sign for it.
func (p *play) accepts(name string, o *order, l *job.Lease) bool {
	waits := slices.ContainsFunc(l.Queue, func(w job.Waiting) bool { return nameOf(w.Provider) == name })
	return waits || p.signs(name, o, l)
}

// signs reports whether a provider would sign for a unit of the round.
func (p *play) signs(name string, o *order, l *job.Lease) bool {
	if h, hostile := p.script.Hostile[name]; hostile {
		return !p.alone && !h.skips("accept")
	}
	return name != "" && o.checkpoints(false, l.Unit(l.Round, 0), l.RoundStart(l.Round)) != nil
}

// working is what the people behind a unit do.
func (p *play) working(o *order, l *job.Lease, i int, add adder) {
	u := &l.Units[i]
	if u.Status == job.Assigned && !l.ForcedDrawn(i) {
		return
	}
	if u.Status == job.Assigned {
		if p.clock() >= p.computed(l, u) {
			add(u.Provider, "work.MsgSubmit", i, 0)
		}
		return
	}
	if u.Receipt == nil {
		return
	}
	if l.ForcedDrawDue(i, p.clock()) {
		add(u.Provider, "work.MsgProveDraw", i, 0)
	}
	if u.Status != job.Received && u.Status != job.Counted || !p.available(o, u.Receipt) {
		return
	}
	for _, k := range u.Attested {
		if u.Status == job.Received && l.MayAttest(i, k.Custodian) {
			add(k.Custodian, "work.MsgAttest", i, 0)
		}
	}
	for _, a := range u.Audits {
		if !a.Done && !a.Forfeit {
			add(a.Auditor, "work.MsgReport", i, 0)
		}
	}
}

// computed is when the provider of a unit has done it.
func (p *play) computed(l *job.Lease, u *job.Unit) int64 {
	given := l.Order.Conditions.UnitTimeout
	if p.Kind != Crowd {
		return u.Due - given
	}
	return u.Due - given + min(pace, given/4)
}

// watching is what a challenger does who computes everything again, and an auditor
// that has found something.
func (p *play) watching(o *order, l *job.Lease, add adder) {
	if o.mind == nil {
		return
	}
	open := func(by string, t target, segment int) {
		if !p.disputes(l, by, t) {
			add(by, "dispute.MsgOpen", t.Index, t.pick(segment))
		}
	}
	w := named(challenger).String()
	for i := range l.Units {
		u := &l.Units[i]
		if u.Receipt == nil || !p.available(o, u.Receipt) {
			continue
		}
		if s := o.wrong(u.Receipt); s >= 0 {
			open(w, target{kind: ofUnit, Index: i}, s)
			for _, a := range u.Audits {
				if a.Done && !a.Pass && u.Status != job.Accepted {
					open(a.Auditor, target{kind: ofUnit, Index: i}, s)
				}
			}
		}
		for j, a := range u.Audits {
			for _, s := range a.Segments {
				truth, ok := o.mind.outcome(i, s, u.Receipt.Checkpoints[s])
				if ok && a.Done && a.Pass && a.Bonded && a.Auditor != w && truth.End != u.Receipt.Checkpoints[s+1] {
					open(w, target{kind: ofVerdict, Index: i, which: j}, s)
				}
			}
		}
	}
	for r := range l.Round {
		if root, ok := o.merge(l.Merges[r].Inputs); ok && root != l.Merges[r].Root {
			open(w, target{kind: ofMerge, Index: r}, 0)
		}
	}
	for j, f := range forced(l) {
		for s, t := range f.Truth {
			truth, ok := o.mind.outcome(f.Index, s, f.Unit.Receipt.Checkpoints[s])
			if ok && (truth.End != t.End || !t.Before.IsZero() && truth.Before != t.Before) {
				open(w, target{kind: ofTruth, Index: f.Index, which: j}, s)
			}
		}
	}
}

// disputes reports whether an account disputes a target already.
func (p *play) disputes(l *job.Lease, by string, t target) bool {
	want := p.target(l, t, 0)
	return slices.ContainsFunc(l.Disputes, func(c job.Dispute) bool { return c.Challenger == by && c.Target == want })
}

func (p *play) lies(name string) bool { return p.script.Hostile[name].Lie }

// skips reports whether a hostile account leaves out a message.
func (h Habit) skips(msg string) bool {
	return slices.Contains(h.Skip, "*") || slices.Contains(h.Skip, msg)
}

// due returns the duties that are done now: all of honest people, those of hostile
// people that they do not leave out.
func (p *play) due() []Op {
	return slices.DeleteFunc(p.duties(), func(o Op) bool {
		h, hostile := p.script.Hostile[o.By]
		return hostile && h.skips(o.Msg)
	})
}
