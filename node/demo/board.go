package demo

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/events"
)

// Board is how the demo stands.
type Board struct {
	Stage    string // what it is doing
	Round    int
	Rounds   int
	Units    []job.Status  // of the round
	Batch    []job.Status  // units of the batch
	Workers  []Worker      // providers
	Loss     []float32     // after each merged round, nats a character
	Audits   [2]int        // passed, failed
	Replayed int           // pieces of work that the challenger has re-executed
	Dispute  *DisputeBoard // the newest, if any
	Lines    []string      // the last things that happened
}

// Worker is how a provider gets on.
type Worker struct {
	Name  string
	Unit  int // −1: none
	Step  int
	Steps int // of a unit
	Loss  float32
	Rate  float64 // steps a second
	Out   bool    // convicted
}

// DisputeBoard is how far a dispute has narrowed.
type DisputeBoard struct {
	Order           string // its name
	Defender, Stage string
	Unit            int
	StepLo, StepHi  int
	Node            int // −1: not found yet
	Op              string
	Tile            [2]int
	FoldLo, FoldHi  int
	Moves           int
	Over            bool
	Loser           string
}

// String says in one line how far the dispute has narrowed.
func (d *DisputeBoard) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unit %d", d.Unit)
	fmt.Fprintf(&b, ", steps %d–%d", d.StepLo, d.StepHi)
	if d.Node >= 0 {
		fmt.Fprintf(&b, ", node %d %s", d.Node, d.Op)
	}
	if d.FoldHi > 0 {
		fmt.Fprintf(&b, ", tile %d/%d, fold blocks %d–%d", d.Tile[0], d.Tile[1], d.FoldLo, d.FoldHi)
	}
	return b.String()
}

// boardLines is how many lines a board shows.
const boardLines = 8

// scribe keeps the board and tells the observers.
type scribe struct {
	mu    sync.Mutex
	begun time.Time
	board Board
	o     *Options
	names map[string]string     // roles by account
	calls map[canon.Hash]string // what people call an order

	trained map[trainedUnit]events.Event // the last event of units whose receipts are not posted
}

// trainedUnit is a unit that a provider trains.
type trainedUnit struct {
	provider string
	unit     int
}

func newScribe(o *Options) *scribe {
	return &scribe{begun: time.Now(), o: o, names: map[string]string{}, calls: map[canon.Hash]string{}, trained: map[trainedUnit]events.Event{}, board: Board{Stage: "starting the network"}}
}

// change edits the board and shows it.
func (s *scribe) change(edit func(*Board)) {
	s.mu.Lock()
	edit(&s.board)
	b := s.board
	b.Units, b.Batch, b.Workers, b.Loss, b.Lines = slices.Clone(b.Units), slices.Clone(b.Batch), slices.Clone(b.Workers), slices.Clone(b.Loss), slices.Clone(b.Lines)
	s.mu.Unlock()
	if s.o.Board != nil {
		s.o.Board(b)
	}
}

// say tells that something happened.
func (s *scribe) say(format string, args ...any) {
	line := fmt.Sprintf("%6.1fs  ", time.Since(s.begun).Seconds()) + fmt.Sprintf(format, args...)
	s.change(func(b *Board) {
		b.Lines = append(b.Lines, line)
		b.Lines = b.Lines[max(0, len(b.Lines)-boardLines):]
	})
	if s.o.Line != nil {
		s.o.Line(line)
	}
}

// stage says what the demo does now.
func (s *scribe) stage(what string) {
	s.change(func(b *Board) { b.Stage = what })
}

// name returns what people call an account.
func (s *scribe) name(account string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.names[account]; n != "" {
		return n
	}
	return account
}

// call gives an order its name.
func (s *scribe) call(order canon.Hash, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[order] = name
}

// order returns what people call an order.
func (s *scribe) order(id canon.Hash) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// observe takes in what a role tells.
func (s *scribe) observe(e events.Event) {
	of := s.order(e.Order)
	switch {
	case e.Kind == events.Audited:
		s.say("%s audited unit %d of the %s: %s", e.Role, e.Unit, of, e.Text)
	case e.Kind == events.Replayed:
		s.change(func(b *Board) { b.Replayed++ })
	case e.Kind == events.Found:
		s.say("%s found unit %d of the %s wrong: %s", e.Role, e.Unit, of, e.Text)
	case of != batch:
		s.observeTraining(e)
	case e.Kind == events.Posted && e.Unit >= 0:
		s.o.line(s.begun, "%s posted the receipt of unit %d of the batch", e.Role, e.Unit)
	}
}

// observeTraining takes in who computes what, and how the loss falls.
func (s *scribe) observeTraining(e events.Event) {
	switch e.Kind {
	case events.Computed:
		s.change(func(b *Board) {
			s.trained[trainedUnit{e.Role, e.Unit}] = e
			for i := range b.Workers {
				if w := &b.Workers[i]; w.Name == e.Role {
					w.Unit, w.Step, w.Loss, w.Rate = e.Unit, e.Step, e.Loss, e.Rate
				}
			}
		})
	case events.Posted:
		if e.Unit >= 0 {
			s.change(func(b *Board) {
				at := trainedUnit{e.Role, e.Unit}
				last := s.trained[at]
				delete(s.trained, at)
				for i := range b.Workers {
					if w := &b.Workers[i]; w.Name == e.Role {
						s.o.line(s.begun, "%s posted the receipt of unit %d: loss %.3f, %.1f steps/s", w.Name, e.Unit, last.Loss, last.Rate)
						if w.Unit == e.Unit {
							w.Unit = -1
						}
					}
				}
			})
			return
		}
		s.change(func(b *Board) { b.Loss = append(b.Loss[:min(e.Step, len(b.Loss))], e.Loss) })
		s.say("%s merged round %d: mean loss %.3f", e.Role, e.Step, e.Loss)
	}
}

// line sends a line that is not worth a place on the board.
func (o *Options) line(begun time.Time, format string, args ...any) {
	if o.Line != nil {
		o.Line(fmt.Sprintf("%6.1fs  ", time.Since(begun).Seconds()) + fmt.Sprintf(format, args...))
	}
}
