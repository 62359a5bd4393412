package job

import "fmt"

// Timely returns an error that shows the inequality if an order leaves others less time
// than what it asks of them takes. Who is late with a unit, or has its data attested
// too late, loses a part of its bond: a consumer could take that from honest people
// by a short timeout, at no cost. A short window would let what nobody had time to
// look at count as verified work.
//
//	unit_timeout ≥ allowance + unit FLOPs / speed + checkpoint bytes / link
//	unit_window  ≥ allowance
//	window       ≥ allowance + unit FLOPs / speed + checkpoint bytes / link
//
// Speed and link are those of the slowest machine that the chain counts on. A longer
// time is the consumer's own: its money is locked as long as anybody's, and keepers are
// paid by the hour. How long an order waits for an offer harms nobody else.
func (p *Params) Timely(o *Order) error {
	q, c := &o.Problem, &o.Conditions
	compute, err := scale(q.UnitFLOPs(), 1000, p.Speed)
	if err != nil {
		return err
	}
	move, err := scale(q.UnitBytes(), 1000, p.Link)
	if err != nil {
		return err
	}
	work, err := sum(compute, move)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name  string
		given int64
		work  uint64
		why   string
	}{
		{"unit timeout", c.UnitTimeout, work, "honest providers would lose a part of their bond"},
		{"unit window", c.UnitWindow, 0, "nobody could dispute a unit"},
		{"challenge window", c.Window, work, "nobody could compute a unit again in it"},
	} {
		need, err := sum(t.work, uint64(p.Allowance))
		if err != nil {
			return err
		}
		if uint64(t.given) >= need {
			continue
		}
		detail := fmt.Sprintf("%d ms for blocks", p.Allowance)
		if t.work > 0 {
			detail += fmt.Sprintf(" + %d FLOP at %d FLOP/s + %d bytes at %d B/s", q.UnitFLOPs(), p.Speed, q.UnitBytes(), p.Link)
		}
		return fmt.Errorf("%s: the %s must be at least %s = %d ms > %d ms", t.why, t.name, detail, need, t.given)
	}
	return nil
}
