package job

import "slices"

// Windows are the times, of the protocol and in ms, in which work can be disputed, but for
// those of single units. Where an order lets its rounds run ahead, a unit is accepted once a
// quorum keeps it, all drawn audits passed and its forced draw is shown. Its window runs on beside
// later rounds. Nobody is paid before all windows are over.
type Windows struct {
	Final int   // rounds, from the first, whose units' windows are over
	Next  int64 // when those of the next one are, if it is merged
	Truth int64 // until when what was shown of forced attempts can be refuted; 0 if nothing was
	End   int64 // of the closing phase
}

// Windows returns the ms for which windows alone hold up so many rounds, the last one included.
//
//	rounds · unit_window + window                                          if rounds wait
//	⌊(rounds − 1) / speculate⌋ · unit_window + max(window, unit_window)    else
func (c *Conditions) Windows(rounds int) int64 {
	if c.Speculate == 0 {
		return int64(rounds)*c.UnitWindow + c.Window
	}
	return int64((rounds-1)/c.Speculate)*c.UnitWindow + c.closing()
}

// closing returns how long the closing phase is at least: no unit's window outlasts it.
func (c *Conditions) closing() int64 {
	if c.Speculate > 0 {
		return max(c.Window, c.UnitWindow)
	}
	return c.Window
}

// waitsUntil returns the end of the window for which a counted unit waits, 0 if it does not:
// then the word of all its auditors stands behind it.
func (u *Unit) waitsUntil(c *Conditions) int64 {
	doubted := func(a Audit) bool { return !a.Done || !a.Pass || a.Wrong }
	if c.Speculate > 0 && !slices.ContainsFunc(u.Audits, doubted) {
		return 0
	}
	return u.WindowEnd
}

// secretUntil returns until when a provider may not show the forced draw of a unit whose audits
// are answered.
func (u *Unit) secretUntil(c *Conditions) int64 {
	if c.Speculate > 0 {
		return 0
	}
	return u.WindowEnd
}

// ownWindowEnd returns when the window of an accepted unit is over. What auditors said of it can
// be disputed for another one.
func (u *Unit) ownWindowEnd(c *Conditions) int64 { return u.WindowEnd - c.UnitWindow }

// windowRuns reports whether the window of an accepted unit is not over.
func (u *Unit) windowRuns(c *Conditions, now int64) bool {
	return u.Status == Accepted && now < u.ownWindowEnd(c)
}

// attestable reports whether who was drawn to keep a unit and has not said so may still: the unit
// was accepted by the word of others, and its window runs on. Who has not spoken when it is
// over is let go.
func (u *Unit) attestable(c *Conditions) bool { return u.Status == Accepted && c.Speculate > 0 }

// until returns when the windows of a merged round are over.
func (w *Windows) until(c *Conditions, round []Unit) (end int64) {
	for i := range round {
		end = max(end, round[i].ownWindowEnd(c))
	}
	return end
}

// disputed reports whether a unit of the oldest round that is not final was disputed in its
// window, and still is.
func (w *Windows) disputed(l *Lease) bool {
	return slices.ContainsFunc(l.Disputes, func(d Dispute) bool {
		return d.Target.kind == AboutUnit && !d.Void && d.Holds && l.roundOf(d.Target) == w.Final
	})
}

// hasWaited reports whether the windows of the oldest merged round that is not final can be over by
// time alone.
func (w *Windows) waits(l *Lease) bool {
	return l.Phase < Closing && w.Final < l.Round && !w.disputed(l)
}

// pass notes that they are over.
func (w *Windows) pass(l *Lease, now int64) {
	if !w.waits(l) || now < w.Next {
		return
	}
	if w.Final, w.Next = w.Final+1, 0; w.Final < l.Round {
		w.Next = l.Merges[w.Final].Until
	}
}

// full reports whether the round waits for windows of earlier ones before its merge lets the
// next begin.
func (w *Windows) full(l *Lease) bool {
	ahead := l.Order.Conditions.Speculate
	return ahead > 0 && l.Phase == Active && l.Round+1 < len(l.Merges) && l.Round+1-w.Final > ahead
}
