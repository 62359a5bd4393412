package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Files come first: see docs/adr/0023-files-first.md. The first tick of a lease draws custodians that
// fetch the order's files, and say whether these can be had and make up the order. No unit is given out
// before a quorum has them, so nobody computes on what the others will never see; if a quorum says that
// they cannot be had, the lease stops, and the consumer's deposit pays its lead and these custodians.

// Word is what a custodian says of the order's files.
type Word uint8

// The words.
const (
	Silent  Word = iota
	Had          // it keeps them, and they make up the order
	Missing      // they cannot be had, or do not make up the order
	Cannot       // it cannot keep this order, which says nothing of the files
)

// String returns the word's name.
func (w Word) String() string {
	return [...]string{"silent", "had", "missing", "cannot", "unknown"}[min(w, 4)]
}

// FileCustodian is a drawn custodian of the order's files. The penalty for being
// silent is reserved with the draw, until the lease ends.
type FileCustodian struct {
	Account string
	Says    Word
}

// Files is what is said of the order's files.
type Files struct {
	Custodians []FileCustodian // of the last draw; one that is convicted is taken out
	Draws      int             // how often custodians were drawn; 0 until the first tick
	Due        int64           // protocol time, ms, until which they are in time; 0 once a quorum has spoken
	Said       Word            // by a quorum; Silent until then
	Unable     []string        // who cannot keep this order, and is drawn no more

	Questions []Question // open questions to its custodians
}

// says counts the custodians with a word.
func (f *Files) says(w Word) (n int) {
	for _, k := range f.Custodians {
		if k.Says == w {
			n++
		}
	}
	return n
}

// custodian returns an account's place among the custodians of the files, nil if it has none.
func (f *Files) custodian(account string) *FileCustodian {
	for i := range f.Custodians {
		if k := &f.Custodians[i]; k.Account == account {
			return k
		}
	}
	return nil
}

// Owes reports whether account was drawn to keep the order's files, and has yet to say
// whether it could have them.
func (f *Files) Owes(account string) bool {
	k := f.custodian(account)
	return k != nil && k.Says == Silent && f.Said != Missing
}

// Deposit returns what an order of the given maximum price locks beside it, in utally.
func (p *Params) Deposit(price uint64) (uint64, error) {
	part, err := money.Scale(price, p.DepositBps, bps)
	return max(part, p.MinDeposit), err
}

// lateFee is the penalty of whoever does not do what it has taken on, and harms nobody
// by it but through delay.
func (l *Lease) lateFee() (uint64, error) { return money.Scale(l.Quote.Unit, l.Params.LateBps, bps) }

// filesTime returns how long custodians have to fetch the order's files, in ms: as long as
// for an answer, and for the bytes over the slowest connection that the chain counts on.
func (l *Lease) filesTime() (int64, error) {
	move, err := money.Scale(l.Order.Problem.FileBytes(), 1000, l.Params.Link)
	return l.Params.AnswerTime + int64(min(move, maxWindow)), err
}

// drawFiles draws the custodians of the order's files, in place of those before.
func (l *Lease) drawFiles(seed canon.Hash, m *means, now int64) ([]Effect, error) {
	bond, err := l.lateFee()
	if err != nil {
		return nil, err
	}
	time, err := l.filesTime()
	if err != nil {
		return nil, err
	}
	c := &l.Order.Conditions
	drawn, err := m.able(l.lots(seed, beacon.Files, 0, l.Files.Draws), l.referees(), c.Custodians, each(bond))
	if err != nil {
		return nil, err
	}
	if len(drawn) < c.Quorum() {
		return nil, fmt.Errorf("%d of the validators that were tried can put up %d utally to keep the order's files, the order wants %d", len(drawn), bond, c.Quorum())
	}
	l.Files = Files{Draws: l.Files.Draws + 1, Due: now + time, Unable: l.Files.Unable}
	var effects []Effect
	for _, a := range drawn {
		held, err := l.Reserve.hold(a, ForFiles, bond)
		if err != nil {
			return nil, err
		}
		l.Files.Custodians = append(l.Files.Custodians, FileCustodian{Account: a})
		effects = append(append(effects, held...), Effect{Emit, a, uint64(l.Files.Draws), "drawn for files"})
	}
	return effects, nil
}

// AttestFiles is a custodian's word that it keeps the order's files, that they cannot be had, or that it
// cannot keep this order. The last is not the consumer's fault, and costs nobody anything, but the
// custodian is drawn no more in this order. An order has at most 1 + MaxLate draws.
type AttestFiles struct {
	By   string
	Draw int // Files.Draws
	Says Word
}

func (e AttestFiles) apply(l *Lease, now int64) ([]Effect, error) {
	f := &l.Files
	k := f.custodian(e.By)
	switch {
	case l.Phase != Active || f.Said == Missing:
		return nil, fmt.Errorf("the lease is %v: nobody waits for its files", l.Phase)
	case e.Draw != f.Draws:
		return nil, fmt.Errorf("custodians of the order's files were drawn %d times, the word is of draw %d", f.Draws, e.Draw)
	case k == nil:
		return nil, fmt.Errorf("%s is not a custodian of the order's files", e.By)
	case k.Says != Silent:
		return nil, fmt.Errorf("%s has said already that the files are %v", e.By, k.Says)
	case e.Says < Had || e.Says > Cannot:
		return nil, fmt.Errorf("a custodian says of files that they are had or missing, or that it cannot keep them, not %v", e.Says)
	case e.Says == Cannot && f.Said != Silent:
		return nil, fmt.Errorf("a quorum of custodians has the order's files: nobody waits for who cannot keep them")
	}
	k.Says = e.Says
	effects := []Effect{{Emit, e.By, uint64(f.Draws), "files " + e.Says.String()}}
	if e.Says == Cannot {
		f.Unable = append(f.Unable, e.By)
		if f.says(Silent) == 0 { // nobody else is waited for
			f.Due = now
		}
		return effects, nil
	}
	if f.Said != Silent || f.says(e.Says) < l.Order.Conditions.Quorum() {
		return effects, nil
	}
	f.Said, f.Due = e.Says, 0
	if e.Says == Missing {
		l.stop(now, "a quorum of custodians says that the order's files cannot be had, or do not make it up")
		return effects, nil
	}
	l.BegunAt, l.StartedAt = now, now
	l.watchLead(now)
	return append(effects, Effect{Emit, l.Lead(), uint64(f.Draws), "files attested"}), nil
}

// tickFiles draws the custodians of the files and, once, the line of succession. Later it lets
// custodians pay that have not said in time whether the files can be had, and draws again, at most
// as often as a provider may be late. Then the lease ends: who is to blame is not known.
func (l *Lease) tickFiles(e *Tick, now int64) ([]Effect, error) {
	f := &l.Files
	if l.Phase != Active || f.Due == 0 || now <= f.Due {
		return nil, nil
	}
	var effects []Effect
	for _, k := range f.Custodians {
		if fine := l.Reserve.Held(k.Account, ForFiles); k.Says == Silent {
			effects = append(effects, l.slash(k.Account, ForFiles, fine, []Share{{Insurance, fine}})...)
		}
	}
	effects = append(effects, l.freeFiles()...)
	if f.Draws == 0 {
		if err := l.drawSuccession(e.Seed); err != nil {
			return nil, err
		}
	}
	why := "no quorum of custodians said in time whether the order's files can be had"
	if f.Draws <= l.Params.MaxLate {
		more, err := l.drawFiles(e.Seed, &means{affords: e.Affords}, now)
		if err == nil {
			return append(effects, more...), nil
		}
		why = err.Error()
	}
	f.Due, f.Custodians = 0, nil
	l.stop(now, why)
	return effects, nil
}

// freeFiles returns the bonds of the custodians of the order's files, and what they are asked.
func (l *Lease) freeFiles() (effects []Effect) {
	effects = l.dropQuestions(OfFiles, func(*Question) bool { return true })
	for _, k := range l.Files.Custodians {
		effects = append(effects, l.letGo(k.Account, ForFiles)...)
	}
	return effects
}

// dropFileCustodian takes a convicted custodian out of those of the order's files. Suppose that
// nothing was given out, and a quorum does not say any more that it has them. Then the others
// have time again to say so, and after that others are drawn.
func (l *Lease) dropFileCustodian(account string, now int64) (effects []Effect, err error) {
	f := &l.Files
	f.Custodians = slices.DeleteFunc(f.Custodians, func(k FileCustodian) bool {
		if k.Account == account {
			effects = l.letGo(k.Account, ForFiles)
		}
		return k.Account == account
	})
	effects = append(effects, l.dropQuestions(OfFiles, func(r *Question) bool { return r.Custodian == account })...)
	if l.Phase != Active || f.Said != Had || l.Begun() || f.says(Had) >= l.Order.Conditions.Quorum() {
		return effects, nil
	}
	time, err := l.filesTime()
	if err != nil {
		return nil, err
	}
	f.Said, f.Due = Silent, now+time
	l.watchLead(now)
	return append(effects, Effect{Emit, account, uint64(f.Draws), "files lapsed"}), nil
}

// fileWages returns what custodians earn by the order's files, if a unit was done with them.
// If they could not be had, the deposit is shared by the lead and who said so.
func (l *Lease) fileWages(worked bool) (earned, deposit []Share, err error) {
	wage, err := l.Quote.fileWage(&l.Order.Problem, &l.Order.Conditions, l.Params.Tariff)
	if err != nil {
		return nil, nil, err
	}
	each := l.Deposit / uint64(1+l.Files.says(Missing))
	for _, k := range l.Files.Custodians {
		switch {
		case k.Says == Had && worked:
			earned = append(earned, Share{k.Account, wage})
		case k.Says == Missing && l.Files.Said == Missing:
			deposit = append(deposit, Share{k.Account, each})
		}
	}
	if l.Files.Said == Missing {
		deposit = append(deposit, Share{l.Lead(), each})
	}
	return earned, deposit, nil
}

// checkFiles: nothing was given out before the files were had, and each keeps them once.
func (l *Lease) checkFiles() error {
	f := &l.Files
	switch {
	case f.Said != Had && l.Begun():
		return fmt.Errorf("units were given out, and the order's files are %v", f.Said)
	case f.Said > Missing || l.Phase == Active && (f.Said == Silent) != (f.Due != 0):
		return fmt.Errorf("the order's files are %v, due at %d", f.Said, f.Due)
	}
	for i, k := range f.Custodians {
		if k.Says > Cannot || f.custodian(k.Account) != &f.Custodians[i] {
			return fmt.Errorf("%s keeps the order's files twice, or says nothing known of them", k.Account)
		}
	}
	return nil
}

// Code walks the fields of f.
func (f *Files) Code(w *canon.Codec) {
	canon.Seq(w, &f.Custodians, maxCustodians, 2, func(w *canon.Codec, k *FileCustodian) {
		w.String(&k.Account, maxAccount)
		w.U8((*uint8)(&k.Says))
	})
	w.Int(&f.Draws, MaxUnits+1)
	w.I64(&f.Due)
	w.U8((*uint8)(&f.Said))
	canon.Seq(w, &f.Unable, MaxParties, 1, func(w *canon.Codec, s *string) { w.String(s, maxAccount) })
	canon.Seq(w, &f.Questions, maxCustodians, 38, codeQuestion)
}
