package sim

import (
	"fmt"
	"math/bits"
	"strings"
)

// A coalition is people of several roles who act as one, against everybody else, who
// is honest. It plays whole orders by core/job's rules; what it computes is only named,
// since the referee of disputes is taken to be right.

// Part is a role that members of a coalition have.
type Part uint8

// The parts. Two of four providers are the coalition's if it provides, a third of the
// validators if it audits or keeps: of more the chain's consensus is not safe either.
const (
	Consumer Part = iota
	Lead
	Provider
	Auditor
	Custodian
	Challenger
	parts
)

// maxMembers is how many parts a coalition has at most.
const maxMembers = 4

var partNames = [...]string{"consumer", "lead", "provider", "auditor", "custodian", "challenger"}

// String returns the part's name.
func (p Part) String() string { return partNames[min(p, parts-1)] }

// Coalition is a set of parts, one bit each.
type Coalition uint8

// has reports whether the coalition has a part.
func (c Coalition) has(p Part) bool { return c>>p&1 == 1 }

// String lists the parts.
func (c Coalition) String() string {
	var out []string
	for p := range parts {
		if c.has(p) {
			out = append(out, p.String())
		}
	}
	return strings.Join(out, " + ")
}

// coalitions returns all of one to four parts, the smallest first.
func coalitions() (out []Coalition) {
	for n := 1; n <= maxMembers; n++ {
		for c := Coalition(1); c < 1<<parts; c++ {
			if bits.OnesCount8(uint8(c)) == n {
				out = append(out, c)
			}
		}
	}
	return out
}

// choice is something that a part decides, by place in choices.
type choice int

// The choices. The first action of each is what the protocol asks for.
const (
	chooseAudits choice = iota
	chooseFiles
	chooseLeading
	chooseProviders
	choosePlain
	chooseForced
	chooseForcedDraw
	chooseVerdict
	chooseKeeping
	chooseChallenge
	numChoices
)

// The actions. Their names are what reports print.
const (
	noAuditors = 1

	toItsOwn = 1

	idles, declines, mergesWrongly = 1, 2, 3

	givesToOthers = 1

	forgesOne, forgesAll, withholds, isLate = 1, 2, 3, 4
	spares, lies                            = 5, 6 // of a forced attempt

	hides = 1

	passesUnseen, saysNothing, alarms, vouches = 1, 2, 3, 4

	keepsNothing, attestsNever, attestsForFriends = 1, 2, 3

	toldOfForcedDraws, blindly, itself, loses, trueWork = 1, 2, 3, 4, 5
)

var choices = [numChoices]struct {
	part    Part
	actions []string
}{
	chooseAudits:    {Consumer, []string{"asks for an auditor", "asks for no auditors"}},
	chooseFiles:     {Consumer, []string{"hands its files over", "hands its files to its own alone"}},
	chooseLeading:   {Lead, []string{"leads", "idles", "declines", "merges wrongly"}},
	chooseProviders: {Lead, []string{"gives units to its own", "gives units to others"}},
	choosePlain:     {Provider, []string{"computes", "forges a segment", "forges a unit", "withholds its data", "is late"}},
	chooseForced: {Provider, []string{"computes forced attempts", "forges a segment of forced attempts", "forges forced attempts",
		"withholds forced attempts", "is late with forced attempts", "spares what nobody audited of them", "shows a false truth of them"}},
	chooseForcedDraw: {Provider, []string{"shows its forced draws", "hides its forced draws"}},
	chooseVerdict:    {Auditor, []string{"looks", "passes unseen", "says nothing", "alarms falsely", "vouches for its own"}},
	chooseKeeping:    {Custodian, []string{"keeps", "keeps nothing", "attests never", "attests for its own"}},
	chooseChallenge:  {Challenger, []string{"challenges nobody", "challenges forced attempts of its own", "challenges blindly", "challenges its own forgeries", "challenges them and loses", "challenges true work"}},
}

// Strategy is what a coalition does: an action for each choice.
type Strategy [numChoices]uint8

// does reports whether a strategy takes an action.
func (s *Strategy) does(c choice, action uint8) bool { return s[c] == action }

// tell says in what a strategy differs from another.
func (s *Strategy) tell(from Strategy) string {
	var out []string
	for c := range numChoices {
		if a := s[c]; a != from[c] {
			out = append(out, fmt.Sprintf("%v %s", choices[c].part, choices[c].actions[a]))
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

// open returns the choices that a coalition has.
func (c Coalition) open() (out []choice) {
	for i := range numChoices {
		if c.has(choices[i].part) {
			out = append(out, i)
		}
	}
	return out
}
