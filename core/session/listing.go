package session

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Limits on listings.
const (
	MaxListings = 16 // of one provider, so that what it offers is bounded
	MaxName     = 96 // characters

	maxParallel = 1 << 16
)

// ListingLasts is for how long a listing stands unless it is renewed, in ms of protocol time: a machine may be gone.
const ListingLasts = 7 * 24 * 3600 * 1000

// Listing is what a provider offers to serve. It binds nobody: terms do.
type Listing struct {
	Model       canon.Hash // root of what is served
	Name        string     // as people call the model; nothing is checked of it but its form
	Prices      Prices
	Credit      Credit
	Context     uint64 // tokens of a prompt and its reply together
	Parallel    uint64 // replies at once
	MinCheckBps uint64 // the least odds of a check that it accepts in terms; 0: any
}

// Check returns an error that says what is wrong with a listing.
func (l *Listing) Check() error {
	switch {
	case l.Model.IsZero():
		return fmt.Errorf("a listing has no model: want the root of what is served")
	case l.Name == "" || len(l.Name) > MaxName || !printable(l.Name):
		return fmt.Errorf("a model is called %.96q: want 1 to %d visible characters of ASCII, with spaces between them alone", l.Name, MaxName)
	case l.Context == 0 || l.Context > 2*MaxTokens:
		return fmt.Errorf("a context of %d tokens: want 1 to %d", l.Context, 2*MaxTokens)
	case l.Parallel == 0 || l.Parallel > maxParallel:
		return fmt.Errorf("%d replies at once: want 1 to %d", l.Parallel, maxParallel)
	case l.MinCheckBps > money.Bps:
		return fmt.Errorf("min_check_bps = %d: want at most %d, which is every reply", l.MinCheckBps, uint64(money.Bps))
	case l.Credit.History != 0:
		return fmt.Errorf("a listing is for strangers, and names a history of %d utally: want 0", l.Credit.History)
	}
	if err := l.Prices.check(); err != nil {
		return err
	}
	if err := l.Credit.Check(); err != nil {
		return err
	}
	_, err := l.Reserve()
	return err
}

// printable reports whether a text is of ASCII's visible characters, with spaces between them alone: what is printable beyond
// changes with Unicode's versions.
func printable(text string) bool {
	for i := range len(text) {
		inside := i > 0 && i < len(text)-1
		if c := text[i]; c > '~' || c < ' ' || c == ' ' && !inside {
			return false
		}
	}
	return true
}

// Reserve returns the least stake, in utally, that a session of this listing can reserve: that of terms by which every reply
// is checked, or none.
func (l *Listing) Reserve() (uint64, error) { return money.Times(l.Credit.Cap, 2) }

// Admits returns an error unless terms keep to a listing: its model, its prices, its credit but for history, and its odds.
func (l *Listing) Admits(t *Terms) error {
	credit := t.Credit
	credit.History = 0
	switch {
	case t.Model != l.Model:
		return fmt.Errorf("the terms are of model %s, the listing of %s", t.Model, l.Model)
	case t.Prices != l.Prices:
		return fmt.Errorf("the terms have prices of %v, the listing of %v", t.Prices, l.Prices)
	case credit != l.Credit:
		return fmt.Errorf("the terms have a credit of %+v, the listing of %+v", credit, l.Credit)
	case t.CheckBps < l.MinCheckBps:
		return fmt.Errorf("the terms have check_bps = %d, the listing asks for %d at least", t.CheckBps, l.MinCheckBps)
	}
	return nil
}

// Code walks the fields of l.
func (l *Listing) Code(w *canon.Codec) {
	w.Hash(&l.Model)
	w.String(&l.Name, MaxName)
	l.Prices.code(w)
	l.Credit.code(w)
	for _, v := range []*uint64{&l.Context, &l.Parallel, &l.MinCheckBps} {
		w.U64(v)
	}
}
