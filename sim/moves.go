package sim

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// What providers, custodians, auditors and challengers of a bout do.

// alone reports whether the consumer hands the order's files to its own alone.
func (b *bout) alone() bool { return b.chooses(consumer, chooseFiles) == toItsOwn }

// files lets their custodians say whether the order's files can be had.
func (b *bout) files() (acted bool, err error) {
	for _, k := range slices.Clone(b.lease.Files.Custodians) {
		action := b.chooses(k.Account, chooseKeeping)
		if !b.lease.Files.Owes(k.Account) || action == attestsNever {
			continue
		}
		says := job.Had
		if b.alone() && action == 0 {
			says = job.Missing
		}
		ok, err := b.try(job.AttestFiles{By: k.Account, Draw: b.lease.Files.Draws, Says: says})
		if err != nil {
			return acted, err
		}
		if acted = acted || ok; !ok || says == job.Missing {
			continue
		}
		if action == keepsNothing {
			b.bare[keepingOf(k.Account, job.OfFiles, 0)] = true
		} else {
			b.worth[k.Account] += int64(b.lease.Quote.Keep)
		}
	}
	return acted, nil
}

// forcedDraw returns the output of a provider's VRF for an attempt, and whether it is forced.
// It is the same whoever has the attempt.
func (b *bout) forcedDraw(unit, attempt int) (output []byte, forced bool) {
	for i := range 8 {
		n := b.luck("forced draw", unit, attempt, i)
		for k := range 8 {
			output = append(output, byte(n>>(8*k)))
		}
	}
	if attempt == 0 {
		b.economy.tilt(output)
	}
	return output, proof.Forced(output, b.lease.Params.ForcedBps)
}

// compute lets providers post receipts.
func (b *bout) compute() (acted bool, err error) {
	l := &b.lease
	for shard, u := range l.RoundUnits() {
		i := l.Unit(l.Round, shard)
		if u.Status != job.Assigned || !l.ForcedDrawn(i) {
			continue
		}
		output, forced := b.forcedDraw(i, u.Attempt)
		action := b.chooses(u.Provider, choosePlain)
		if forced {
			action = b.chooses(u.Provider, chooseForced)
		}
		if action == isLate || b.economy.deal.waits(b, i, u.Attempt) {
			continue
		}
		altered := -1
		if forced {
			altered = proof.Altered(output, segments)
		}
		points, w := b.receipt(i, u.Attempt, altered, action)
		r := job.Receipt{
			Order: l.Order.ID(), Unit: i, Attempt: u.Attempt, Provider: u.Provider, Start: points[0],
			Checkpoints: points, FLOPs: b.problem.UnitFLOPs(), Data: job.File{Role: "receipt", CID: "data", Size: 1},
		}
		ok, err := b.try(job.Submit{Receipt: r, Signature: ed25519.Sign(key(u.Provider), r.SignBytes())})
		if err != nil {
			return acted, err
		}
		if ok {
			b.made[r.ID()], acted = w, true
			b.charge(u.Provider, action)
		}
	}
	return acted, nil
}

// charge counts what a provider has computed for a receipt.
func (b *bout) charge(who string, action uint8) {
	switch action {
	case 0:
		b.worth[who] += b.pay()
	case forgesOne:
		b.worth[who] += b.pay() * (segments - 1) / segments
	}
}

// receipt returns the checkpoints that a provider shows of an attempt, and how they
// came to be. altered is the segment that its forced draw makes it show wrong, −1 if none.
func (b *bout) receipt(unit, attempt, altered int, action uint8) ([]canon.Hash, work) {
	points := []canon.Hash{b.lease.RoundStart(b.lease.Round)}
	w := work{computed: action == 0, available: action != withholds && !b.alone()}
	forged := int(b.luck("forged", unit, attempt) % segments)
	for g := range segments {
		from := points[g]
		truth := trulyGives(unit, g, from)
		if action > forgesOne || action == forgesOne && g == forged {
			truth.End = canon.Sum(canon.Domain("sim/forged"), from[:], []byte{byte(attempt)})
			truth.Before = canon.Sum(canon.Domain("sim/forged before"), from[:])
		}
		end := truth.End
		if g == altered {
			end = canon.Sum(canon.Domain("sim/altered"), end[:])
		}
		points, w.truth = append(points, end), append(w.truth, truth)
	}
	return points, w
}

// attest lets custodians say that they have the data.
func (b *bout) attest() (acted bool, err error) {
	l := &b.lease
	for shard, u := range l.RoundUnits() {
		i := l.Unit(l.Round, shard)
		if u.Status != job.Received && u.Status != job.Counted {
			continue
		}
		available := b.made[u.Receipt.ID()].available
		for _, k := range u.Attested {
			action := b.chooses(k.Custodian, chooseKeeping)
			friend := action == attestsForFriends && b.mine(u.Provider)
			if !l.MayAttest(i, k.Custodian) || action == attestsNever || !available && !friend {
				continue
			}
			ok, err := b.try(job.Attest{By: k.Custodian, Unit: i, Attempt: u.Attempt})
			if err != nil {
				return acted, err
			}
			if !ok {
				continue
			}
			if acted = true; action == keepsNothing || !available {
				b.bare[keepingOf(k.Custodian, i, u.Attempt)] = true
			} else {
				b.worth[k.Custodian] += int64(l.Quote.Keep)
			}
		}
	}
	return acted, nil
}

// ask lets the challenger ask custodians that hand nothing over.
func (b *bout) ask() (acted bool, err error) {
	l := &b.lease
	for j, k := range slices.Clone(l.Files.Custodians) {
		if !b.bare[keepingOf(k.Account, job.OfFiles, 0)] || b.luck("asked for files", j)%lookedAt > 0 || !b.first("ask for files %s", k.Account) {
			continue
		}
		ok, err := b.try(job.Ask{By: honestChallenger, Custodian: k.Account, Unit: job.OfFiles})
		if err != nil {
			return acted, err
		}
		acted = acted || ok
	}
	for i := range l.Units {
		u := &l.Units[i]
		for j, k := range u.Attested {
			if u.Status < job.Counted || !u.Keeps(k.Custodian) || !b.bare[keepingOf(k.Custodian, i, u.Attempt)] || l.Phase == job.Closing && b.now >= l.Windows.End {
				continue
			}
			if b.luck("asked", i, u.Attempt, j)%lookedAt > 0 || !b.first("ask %d %d %s", i, u.Attempt, k.Custodian) {
				continue
			}
			ok, err := b.try(job.Ask{By: honestChallenger, Custodian: k.Custodian, Unit: i, Attempt: u.Attempt})
			if err != nil {
				return acted, err
			}
			acted = acted || ok
		}
	}
	return acted, nil
}

// verdictOf and keepingOf name what somebody says about an attempt. One account may audit a unit and keep it.
func verdictOf(who string, unit, attempt int) string {
	return fmt.Sprint("verdict ", who, " ", unit, " ", attempt)
}
func keepingOf(who string, unit, attempt int) string {
	return fmt.Sprint("keeping ", who, " ", unit, " ", attempt)
}

// audit lets auditors answer, and honest ones dispute what they find wrong.
func (b *bout) audit() (acted bool, err error) {
	l := &b.lease
	for shard := range l.RoundUnits() {
		i := l.Unit(l.Round, shard)
		u := l.Units[i]
		if u.Status != job.Counted {
			continue
		}
		for _, a := range u.Audits {
			if a.Done || a.Forfeit {
				continue
			}
			did, pass, err := b.report(i, &u, a.Auditor)
			if err != nil {
				return acted, err
			}
			acted = acted || did
			if did && !pass && b.chooses(a.Auditor, chooseVerdict) != alarms {
				return true, b.dispute(a.Auditor, job.UnitTarget(i), u.Attempt, wrongSegment(u.Receipt))
			}
		}
	}
	return acted, nil
}

// report lets an auditor say what it says.
func (b *bout) report(i int, u *job.Unit, auditor string) (did, pass bool, err error) {
	r, w := u.Receipt, b.made[u.Receipt.ID()]
	action := b.chooses(auditor, chooseVerdict)
	if vouches := action == vouches && b.mine(u.Provider); !vouches && (action == saysNothing || !w.available) {
		return false, false, nil
	}
	secret := canon.Sum(canon.Domain("sim/vrf"), []byte(auditor), proof.AuditInput(r.ID(), auditor))
	var outcomes []proof.Outcome
	pass = true
	for _, g := range proof.Segments(secret[:], segments, u.Audited) {
		o := trulyGives(i, g, r.Checkpoints[g])
		switch {
		case action == passesUnseen || action == alarms: // from what everybody knows
			o = proof.Outcome{Before: r.Checkpoints[g], End: r.Checkpoints[g+1]}
		case action == vouches && b.mine(u.Provider):
			o = w.truth[g]
		}
		outcomes = append(outcomes, o)
		pass = pass && o.End == r.Checkpoints[g+1]
	}
	if action == alarms {
		pass = false
	}
	did, err = b.try(job.Report{By: auditor, Unit: i, Attempt: u.Attempt, Output: secret[:], Pass: pass, Digest: proof.Digest(auditor, r.ID(), outcomes)})
	// Who is told by its own provider what that has computed saves nobody's work but its own.
	if looked := action == 0 || action == vouches && (w.computed || !b.mine(u.Provider)); did && looked {
		b.worth[auditor] += int64(b.lease.Quote.Audit)
	} else {
		b.bare[verdictOf(auditor, i, u.Attempt)] = true
	}
	return did, pass, err
}

// challenge lets the coalition's challenger do what it does.
func (b *bout) challenge() (acted bool, err error) {
	action := b.chooses(griever, chooseChallenge)
	for shard := range b.lease.RoundUnits() {
		i := b.lease.Unit(b.lease.Round, shard)
		u := b.lease.Units[i]
		if action == 0 || u.Status != job.Counted || !b.first("challenge %d %d", i, u.Attempt) {
			continue
		}
		own, wrong := b.mine(u.Provider), wrongSegment(u.Receipt)
		output, forced := b.forcedDraw(i, u.Attempt)
		segment := int(b.luck("challenged", i, u.Attempt) % segments)
		switch {
		case action == toldOfForcedDraws && own && forced:
			segment = proof.Altered(output, segments)
		case (action == itself || action == loses) && own && !forced && wrong >= 0:
			segment = wrong
		case action == trueWork && !own && !forced && wrong < 0:
		case action == blindly && !own:
		default:
			continue
		}
		return true, b.dispute(griever, job.UnitTarget(i), u.Attempt, segment)
	}
	return false, nil
}

// dispute opens a dispute and lets the referee decide: it is right, but a challenger of
// the coalition may lose on purpose.
func (b *bout) dispute(challenger string, t job.Target, attempt, segment int) error {
	s, err := b.lease.Subject(t, attempt)
	if err != nil || segment < 0 {
		return nil //nolint:nilerr // it is gone
	}
	bond, err := b.lease.ChallengeBond(t, segment)
	if err != nil {
		return err
	}
	b.games++
	if ok, err := b.try(job.OpenDispute{ID: b.games, Target: t, Attempt: attempt, Segment: min(segment, s.Claim.Segments()-1), Challenger: challenger}); !ok || err != nil {
		return err
	}
	b.now += 1000
	if t.Kind() == job.AboutUnit {
		if _, err := b.proveDraws(); err != nil {
			return err
		}
	}
	loser := dispute.Challenger
	if wrong := t.Kind() != job.AboutUnit || b.wrongAt(t.Index(), segment); wrong && !(challenger == griever && b.strategy.does(chooseChallenge, loses)) {
		loser = dispute.Defender
	}
	return b.defeat(loser, challenger, s.Defender, bond)
}

// wrongAt reports whether the standing receipt of a unit is wrong in a segment.
func (b *bout) wrongAt(unit, segment int) bool {
	r := b.lease.Units[unit].Receipt
	return r != nil && trulyGives(unit, segment, r.Checkpoints[segment]).End != r.Checkpoints[segment+1]
}

// proveDraws lets providers show their forced draws.
func (b *bout) proveDraws() (acted bool, err error) {
	l := &b.lease
	for shard, u := range l.RoundUnits() {
		i := l.Unit(l.Round, shard)
		if !l.ForcedDrawDue(i, b.now) || b.chooses(u.Provider, chooseForcedDraw) == hides {
			continue
		}
		e := job.ProveDraw{By: u.Provider, Unit: i, Attempt: u.Attempt}
		var forced bool
		if e.Output, forced = b.forcedDraw(i, u.Attempt); forced {
			e.Truth = b.truth(i, &u)
		}
		challenger := ""
		if c := l.DisputesAbout(job.UnitTarget(i), u.Attempt); len(c) > 0 {
			challenger = c[0].Challenger
		}
		ok, err := b.try(e)
		if err != nil {
			return acted, err
		}
		if acted = acted || ok; ok && forced {
			b.shown = append(b.shown, share{u.Provider, challenger})
		}
	}
	return acted, nil
}

// truth is what the provider of a forced attempt shows as such.
func (b *bout) truth(i int, u *job.Unit) []proof.Outcome {
	truth := slices.Clone(b.made[u.Receipt.ID()].truth)
	if b.chooses(u.Provider, chooseForced) != spares {
		return truth
	}
	for _, g := range u.AuditedSegments() { // what somebody has looked at is computed now
		truth[g] = trulyGives(i, g, u.Receipt.Checkpoints[g])
		b.worth[u.Provider] += b.pay() / segments
	}
	return truth
}

// watch lets the challenger look at some of the work, and auditors defend their word.
func (b *bout) watch() (acted bool, err error) {
	l := &b.lease
	for i := range l.Units {
		u := &l.Units[i]
		if u.Status < job.Counted || !b.made[u.Receipt.ID()].available || b.luck("watched", i, u.Attempt)%lookedAt > 0 || !b.first("watch %d %d", i, u.Attempt) {
			continue
		}
		if g := wrongSegment(u.Receipt); g >= 0 {
			return true, b.dispute(honestChallenger, job.UnitTarget(i), u.Attempt, g)
		}
	}
	for r := range l.Round {
		m := &l.Merges[r]
		if m.Root != merged(m.Inputs) && b.luck("merge", r, m.Attempt)%lookedAt == 0 && b.first("merge %d %d", r, m.Attempt) {
			return true, b.dispute(honestChallenger, job.MergeTarget(r), m.Attempt, 0)
		}
	}
	for _, v := range l.Verdicts() {
		for _, g := range v.Audit.Segments {
			if trulyGives(v.Unit, g, v.Receipt.Checkpoints[g]).End != v.Receipt.Checkpoints[g+1] && b.first("verdict %d %d %s", v.Unit, v.Receipt.Attempt, v.Audit.Auditor) {
				return true, b.dispute(honestChallenger, job.VerdictTarget(v.Unit, v.Audit.Auditor), v.Receipt.Attempt, g)
			}
		}
	}
	return b.doubt()
}

// doubt disputes a false truth: the challenger where it looks, an honest auditor wherever
// it would lose its bond.
func (b *bout) doubt() (bool, error) {
	for _, f := range b.lease.Forced() {
		who := ""
		for j := range f.Unit.Audits {
			if a := &f.Unit.Audits[j]; a.Done && a.Bonded && !f.Right(a) && b.chooses(a.Auditor, chooseVerdict) == 0 {
				who = a.Auditor
			}
		}
		for g, o := range f.Truth {
			truth := trulyGives(f.Index, g, f.Unit.Receipt.Checkpoints[g])
			if o.End == truth.End && (o.Before.IsZero() || o.Before == truth.Before) {
				continue
			}
			by := who
			if by == "" && b.luck("truth", f.Index, f.Unit.Attempt, g)%lookedAt == 0 {
				by = honestChallenger
			}
			if by != "" && b.first("truth %d %d %d", f.Index, f.Unit.Attempt, g) {
				return true, b.dispute(by, job.TruthTarget(f.Index, g), f.Unit.Attempt, 0)
			}
		}
	}
	return false, nil
}
