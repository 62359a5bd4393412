package match

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/money"
)

// Capability is what is known of a provider.
type Capability struct {
	Account string
	Declared
	Speed uint64 // FLOP/s, as measured
	Power uint64 // effective, in millionths of a ut
}

// Declared is what a provider says of itself. Nobody has proved it.
type Declared struct {
	Region  string   // ISO 3166-1 alpha-2; empty if it says none
	Tags    []string // in order, each once
	Memory  uint64   // bytes that a program may take
	Privacy Privacy
}

// Check returns an error that says what is wrong with a declaration.
func (d *Declared) Check() error {
	if d.Region != "" {
		if err := checkRegion(d.Region); err != nil {
			return err
		}
	}
	switch {
	case d.Memory > maxQuantity:
		return fmt.Errorf("memory of %d bytes, the limit is %d", d.Memory, uint64(maxQuantity))
	case int(d.Privacy) >= len(privacies):
		return fmt.Errorf("privacy %v is not known: choose of %s", d.Privacy, strings.Join(privacies[:], ", "))
	}
	return checkList("tags", d.Tags, checkTag)
}

// Miss says how many providers do not meet a condition.
type Miss struct {
	Condition string
	Providers int
}

// Census counts who meets needs, and who does not meet which condition. The zero value has seen nobody.
type Census struct {
	missed  [len(conditions)]int
	Out     int // who do not meet them
	example error
}

// Add enters a provider, and reports whether it meets the needs.
func (s *Census) Add(n *Needs, c *Capability) (meets bool) {
	meets = true
	for i := range conditions {
		if x := &conditions[i]; x.asked(n) && !x.met(n, c) {
			s.missed[i]++
			meets = false
		}
	}
	if meets {
		return true
	}
	if s.Out++; s.example == nil {
		s.example = n.Meets(c)
	}
	return false
}

// Misses returns the conditions that somebody did not meet.
func (s *Census) Misses() (out []Miss) {
	for i, n := range s.missed {
		if n > 0 {
			out = append(out, Miss{conditions[i].name, n})
		}
	}
	return out
}

// Err says who falls short, and by what; nil if nobody does.
func (s *Census) Err() error {
	if s.Out == 0 {
		return nil
	}
	var text []string
	for _, m := range s.Misses() {
		text = append(text, fmt.Sprintf("%s %d", m.Condition, m.Providers))
	}
	return fmt.Errorf("%d providers do not fit (%s), for example %w", s.Out, strings.Join(text, ", "), s.example)
}

// Tier is a class of speed.
type Tier struct {
	Label string
	Speed uint64 // FLOP/s from which on it is of this tier
}

// Tiers are a chain's classes of speed, the fastest first.
type Tiers []Tier

// maxTiers bounds them.
const maxTiers = 16

// Check returns an error unless each speed is of one tier. A chain may have none.
func (t Tiers) Check() error {
	if len(t) > maxTiers {
		return fmt.Errorf("%d tiers, want at most %d", len(t), maxTiers)
	}
	for i, x := range t {
		switch {
		case x.Label == "" || len(x.Label) > maxLabel || strings.ContainsFunc(x.Label, func(r rune) bool { return r <= ' ' || r > '~' }):
			return fmt.Errorf("tier %.40q: a label has 1 to %d letters", x.Label, maxLabel)
		case slices.ContainsFunc(t[:i], func(y Tier) bool { return y.Label == x.Label }):
			return fmt.Errorf("two tiers are called %s", x.Label)
		case i > 0 && x.Speed >= t[i-1].Speed:
			return fmt.Errorf("tier %s begins at %d FLOP/s, not below tier %s: name the fastest first", x.Label, x.Speed, t[i-1].Label)
		}
	}
	if len(t) > 0 && t[len(t)-1].Speed != 0 {
		return fmt.Errorf("the last tier, %s, begins at %d FLOP/s: slower providers would have none, let it begin at 0", t[len(t)-1].Label, t[len(t)-1].Speed)
	}
	return nil
}

// Of returns the label of a speed.
func (t Tiers) Of(speed uint64) string {
	for _, x := range t {
		if speed >= x.Speed {
			return x.Label
		}
	}
	return ""
}

// Least returns the speed from which on a provider is of a tier.
func (t Tiers) Least(label string) (uint64, error) {
	var known []string
	for _, x := range t {
		if x.Label == label {
			return x.Speed, nil
		}
		known = append(known, x.Label)
	}
	return 0, fmt.Errorf("the chain has no tier %.40q, its tiers are %s", label, strings.Join(known, ", "))
}

// Pace is how fast a provider was: its verified work, and the time in which it had work. The zero value
// has seen none.
type Pace struct {
	Work   uint64 // FLOP
	Time   uint64 // ms of protocol time
	Probed uint64 // FLOP/s that a probe has shown (core/probe); 0 if none has
}

// What a pace remembers, in ms. Of more than a day of work it halves work and time, so that it follows a
// machine that changes. Work is spread over ten minutes at least: a moment proves no speed.
const (
	remembered = 24 * 3600 * 1000
	leastTime  = 600 * 1000
)

// mostUnprobed is the most that ordinary work shows, in FLOP/s: whoever orders from itself may have the results already. A
// larger machine shows its speed by a probe.
const mostUnprobed = 1_000_000_000_000

// AddWork enters work that was verified. Its time must be added after it.
func (p *Pace) AddWork(flops uint64) {
	for flops > math.MaxUint64-p.Work {
		p.halve()
	}
	p.Work += flops
}

// AddTime enters the time in which the work was done, in ms.
func (p *Pace) AddTime(ms uint64) {
	p.Time += min(ms, math.MaxUint64-p.Time)
	for p.Time > remembered {
		p.halve()
	}
}

// halve forgets half, and rounds the speed down.
func (p *Pace) halve() { p.Work, p.Time = p.Work/2, p.Time-p.Time/2 }

// Speed returns the speed in FLOP/s, rounded down. It is what a probe has shown. Without one it is what the work shows, and mostUnprobed
// at most. Work takes nothing off a probe: whoever computes for several orders is slow for each, and others choose those.
func (p Pace) Speed() uint64 {
	if p.Probed > 0 {
		return p.Probed
	}
	return min(SpeedOf(p.Work, max(p.Time, leastTime)), mostUnprobed)
}

// Seen reports whether a probe or enough work has shown the speed. Until then it is a lower bound.
func (p Pace) Seen() bool { return p.Probed > 0 || p.Time >= leastTime }

// SpeedOf returns how many FLOP/s so many FLOP in so many ms are, rounded down.
func SpeedOf(flops, ms uint64) uint64 { return money.ScaleClamped(flops, 1000, ms) }
