package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// Cost is what the moves of games took.
type Cost struct {
	Games, Moves, Bytes  int
	MostMoves, MostBytes int // of one game
	Largest              int // bytes of one move
}

// Add counts what others took.
func (c *Cost) Add(o Cost) {
	c.Games, c.Moves, c.Bytes = c.Games+o.Games, c.Moves+o.Moves, c.Bytes+o.Bytes
	c.MostMoves, c.MostBytes, c.Largest = max(c.MostMoves, o.MostMoves), max(c.MostBytes, o.MostBytes), max(c.Largest, o.Largest)
}

// Hunt puts a random fault into a node and plays both games about it. An error
// says what went against the rules.
func (s *Subject) Hunt(r *rand.Rand, node int) (Fault, Cost, error) {
	var all Cost
	wrong, f, err := s.faulty(r, node)
	if err != nil {
		return f, all, err
	}
	fail := func(err error) (Fault, Cost, error) {
		return f, all, fmt.Errorf("%v in %s: %+v: %w", s.Nodes[node].Fn, s.Nodes[node].Origin.Op, f, err)
	}
	for _, author := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		defender, challenger := &s.truth, wrong
		if author == dispute.Defender {
			defender, challenger = wrong, &s.truth
		}
		g, cost, err := s.play(r, defender, challenger)
		all.Add(cost)
		switch {
		case err != nil:
			return fail(err)
		case g.Loser != author:
			return fail(fmt.Errorf("the author of the fault is the %v, but the %v lost: %s", author, g.Loser, g.Reason))
		case g.Lo != f.Step || g.Node != f.Node || g.Opcode == nil || g.Element != f.Element || f.Block >= 0 && g.From != f.Block:
			return fail(fmt.Errorf("with the %v at fault the dispute ended at step %d, node %d, element %d, block %d", author, g.Lo, g.Node, g.Element, g.From))
		}
	}
	return f, all, nil
}

// play plays a game about the defender's claim to its end. Every move travels
// as bytes. A side that has nothing left to say lets its clock run out.
func (s *Subject) play(r *rand.Rand, defender, challenger *account) (dispute.Game, Cost, error) {
	c, checkpoints, err := s.claim(defender)
	if err != nil {
		return dispute.Game{}, Cost{}, err
	}
	o, err := dispute.Challenge(c, checkpoints, challenger)
	if err != nil {
		return dispute.Game{}, Cost{}, err
	}
	rules := dispute.DefaultRules
	rules.Depth = 1 + r.IntN(rules.Depth)
	g, err := dispute.Open(c, rules, o, 0)
	cost := Cost{Games: 1, Bytes: len(canon.Marshal(&o))}
	for err == nil && g.Stage != dispute.Over {
		side, w := g.Stage.Turn(), defender
		if side == dispute.Challenger {
			w = challenger
		}
		var m dispute.Move
		if m, err = dispute.Play(&g, w); errors.Is(err, dispute.ErrAgree) {
			g, err = dispute.Expire(g, g.Deadline()+1), nil
			continue
		}
		if err != nil {
			break
		}
		b := dispute.EncodeMove(m)
		cost.Bytes, cost.Largest = cost.Bytes+len(b), max(cost.Largest, len(b))
		if m, err = dispute.DecodeMove(b); err == nil {
			g, err = dispute.Apply(g, side, m, g.Since)
		}
	}
	cost.Moves, cost.MostMoves, cost.MostBytes = g.Moves, g.Moves, cost.Bytes
	return g, cost, err
}

// String tells the mean of all games, and the worst.
func (c Cost) String() string {
	n := max(c.Games, 1)
	return fmt.Sprintf("%d games of %d moves and %d bytes each, at most %d moves, %d bytes, %d in one move",
		c.Games, c.Moves/n, c.Bytes/n, c.MostMoves, c.MostBytes, c.Largest)
}
