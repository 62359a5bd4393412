// Package events is what a role tells of its work, for people who watch it and for tests.
//
// Make one [Recorder] for a role and call [Recorder.Emit].
//
// Invariants: events are told and never read back, so nothing that a role decides depends on
// one. They come to the observer in the goroutine that emits them, under the role's own name.
package events

import (
	"log/slog"

	"github.com/tally-network/tally/core/canon"
)

// Event is something that a person watching would like to know.
type Event struct {
	Role  string // Recorder.Name
	Kind  Kind
	Order canon.Hash
	Unit  int     // −1 if it is about the order
	Step  int     // local steps done, or the move of a dispute
	Loss  float32 // nats; of Computed, 0 where nothing is trained
	Rate  float64 // steps a second; of Computed
	Text  string  // in words
}

// Kind says what an event is about.
type Kind string

// The kinds of event.
const (
	Computed   Kind = "computed"    // a provider did a step
	Posted     Kind = "posted"      // a receipt or merge is on chain
	Sells      Kind = "sells"       // a provider has put capacity on sale at auctions
	Probed     Kind = "probed"      // a provider has its speed measured
	Ready      Kind = "ready"       // a provider has asked for a unit
	ProvedDraw Kind = "proved draw" // a provider has shown whether an attempt was forced
	Audited    Kind = "audited"     // an auditor answered
	Attested   Kind = "attested"    // a custodian attested
	Asked      Kind = "asked"       // a custodian was asked on chain to show what it keeps
	Answered   Kind = "answered"    // it did
	Exposed    Kind = "exposed"     // a custodian was shown to keep a wrong fragment, or an order to lie about its cost
	Replayed   Kind = "replayed"    // a challenger re-executed a unit or merge
	Narrowed   Kind = "narrowed"    // a move of a dispute was made
	Found      Kind = "found"       // wrong work was found
	Delivered  Kind = "delivered"   // files have arrived
	Trouble    Kind = "trouble"     // something failed and will be tried again
)

// Recorder tells what one role does.
type Recorder struct {
	Name    string // of the role, for people: "provider-2"
	Log     *slog.Logger
	Observe func(Event) // sees what happens; must return quickly; may be nil
}

// Emit tells the observer, if there is one.
func (r *Recorder) Emit(e Event) {
	e.Role = r.Name
	if r.Observe != nil {
		r.Observe(e)
	}
}
