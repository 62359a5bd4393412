package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/proof"
)

// Piece is what a custodian keeps of a unit whose checkpoints are cut among its custodians.
// Whoever has the checkpoints knows the root of each piece.
type Piece struct {
	Number int        // of the code
	Root   canon.Hash // over the roots of this piece of each checkpoint after the first
	Data   File       // names these pieces
}

// checkPiece returns an error unless p can be what a custodian keeps of a unit: a piece
// that nobody else keeps, if the checkpoints are cut, so that a quorum of custodians
// always has that many.
func (l *Lease) checkPiece(u *Unit, p *Piece) error {
	code := l.Order.Pieces()
	switch {
	case !code.Cuts() && p != nil:
		return fmt.Errorf("each custodian of this lease keeps all: an attestation names no piece")
	case !code.Cuts():
		return nil
	case p == nil || p.Number < 0 || p.Number >= code.Pieces:
		return fmt.Errorf("the checkpoints are cut into %d pieces: an attestation names one of them", code.Pieces)
	case l.pieces(u)[p.Number]:
		return fmt.Errorf("piece %d is kept already", p.Number)
	}
	return p.Data.check()
}

// pieces returns which pieces custodians keep whose word counts for a unit.
func (l *Lease) pieces(u *Unit) (kept [erasure.MaxPieces]bool) {
	for i := range u.Attested {
		if a := &u.Attested[i]; a.Piece != nil && l.counts(u, a) {
			kept[a.Piece.Number] = true
		}
	}
	return kept
}

// FreePiece returns the number of the piece of a unit that a custodian should keep: that
// of its own place among the custodians, or the first that nobody keeps; false if all are
// kept.
func (l *Lease) FreePiece(unit int, custodian string) (number int, ok bool) {
	kept, n := l.pieces(&l.Units[unit]), l.Order.Pieces().Pieces
	own := slices.IndexFunc(l.Units[unit].Attested, func(a Attestation) bool { return a.Custodian == custodian })
	if own >= 0 && own < n && !kept[own] {
		return own, true
	}
	number = slices.Index(kept[:n], false)
	return number, number >= 0
}

// open reports whether somebody may begin to keep a unit: until it is accepted, and a
// piece of it until the lease closes, so that there is time to ask for it.
func (l *Lease) open(u *Unit) bool {
	switch u.Status {
	case Received, Counted:
		return true
	case Accepted:
		return l.Phase < Closing && l.Order.Pieces().Cuts()
	}
	return false
}

// MayAttest reports whether a validator was drawn to keep a unit and may attest to it.
func (l *Lease) MayAttest(unit int, custodian string) bool {
	u := &l.Units[unit]
	if a := u.custodian(custodian); !l.open(u) || a == nil || a.Done || !l.trusts(custodian) {
		return false
	}
	_, free := l.FreePiece(unit, custodian)
	return free || !l.Order.Pieces().Cuts()
}

// Expose shows that what a custodian keeps as its piece of a unit's checkpoints is none.
// It is convicted like one that does not answer.
type Expose struct {
	By, Custodian string
	Unit, Attempt int
	Wrong         proof.WrongPiece
}

func (e Expose) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Received, Counted, Accepted)
	if err != nil {
		return nil, err
	}
	a := u.attestation(e.Custodian)
	switch {
	case l.Phase == Closing && now >= l.WindowEnd:
		return nil, fmt.Errorf("the lease's window closed at protocol time %d ms: nobody can be exposed any more", l.WindowEnd)
	case a == nil || a.Piece == nil:
		return nil, fmt.Errorf("no attestation of %s to a piece of unit %d stands", e.Custodian, e.Unit)
	case e.By == e.Custodian:
		return nil, fmt.Errorf("%s cannot expose itself", e.By)
	}
	if err := e.Wrong.Check(l.Order.Pieces(), a.Piece.Number, a.Piece.Root, u.Receipt.Checkpoints); err != nil {
		return nil, err
	}
	return l.failCustodian(e.Custodian, e.Unit, e.By, "exposed", now)
}

func (p *Piece) code(w *canon.Codec) {
	w.Int(&p.Number, erasure.MaxPieces-1)
	w.Hash(&p.Root)
	p.Data.Code(w)
}
