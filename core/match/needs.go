package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
)

// Limits on what needs and capabilities say.
const (
	MaxListed   = 32      // regions, tags or accounts of a list
	maxTag      = 32      // bytes of a tag
	maxTeam     = 1 << 10 // providers of a lease
	maxAccount  = 128     // bytes
	maxLabel    = 16      // bytes of a tier's label
	maxQuantity = 1 << 60 // FLOP/s, bytes or millionths of a ut
	maxDeadline = 30 * 24 * 3600 * 1000
)

// Privacy is what a provider promises of an order's files. No level is proved.
type Privacy uint8

// The levels, each of which promises what those before it do.
const (
	Public   Privacy = iota // nothing: whoever takes part sees model and data, and may tell
	Discreet                // to show the files to nobody, and to delete them when the order has ended
	Enclosed                // to compute where the machine's operator cannot read memory
)

var privacies = [...]string{"public", "discreet", "enclosed"}

// String returns the name of the level.
func (p Privacy) String() string {
	if int(p) < len(privacies) {
		return privacies[p]
	}
	return fmt.Sprintf("level %d", uint8(p))
}

// ParsePrivacy returns the level of a name.
func ParsePrivacy(name string) (Privacy, error) {
	i := slices.Index(privacies[:], name)
	if i < 0 {
		return 0, fmt.Errorf("privacy %.40q: choose of %s", name, strings.Join(privacies[:], ", "))
	}
	return Privacy(i), nil
}

// Needs is what an order asks of those who compute it. The zero value asks nothing.
type Needs struct {
	// Of each provider.
	Accounts []string // one of these
	Regions  []string // it has declared one of these
	Excluded []string // it has declared a region that is none of these
	Tags     []string // it has declared all of these
	Privacy  Privacy  // it has declared at least this
	Memory   uint64   // bytes that it has declared at least
	Tier     string   // label of a tier that its speed reaches
	Speed    uint64   // FLOP/s that it was measured at, at least
	Power    uint64   // effective power at least, in millionths of a ut

	// Of all of them together.
	Most       int    // providers at most; 0: as many as there are
	Throughput uint64 // FLOP/s, the sum of their speeds, at least
	Deadline   int64  // ms of protocol time from the match, until when the last round is merged; 0: whenever
}

// condition is one thing that a provider may be asked for.
type condition struct {
	name  string
	asked func(*Needs) bool
	met   func(*Needs, *Capability) bool
	wants func(*Needs) string
	has   func(*Capability) string
}

// conditions are all that needs ask of a single provider, in the order in which they are told.
var conditions = [...]condition{
	{"providers",
		func(n *Needs) bool { return len(n.Accounts) > 0 },
		func(n *Needs, c *Capability) bool { return slices.Contains(n.Accounts, c.Account) },
		func(n *Needs) string { return fmt.Sprintf("one of %d accounts", len(n.Accounts)) },
		func(c *Capability) string { return c.Account }},
	{"regions",
		func(n *Needs) bool { return len(n.Regions) > 0 },
		func(n *Needs, c *Capability) bool { return slices.Contains(n.Regions, c.Region) },
		func(n *Needs) string { return strings.Join(n.Regions, " or ") },
		func(c *Capability) string { return said(c.Region) }},
	{"excluded regions",
		func(n *Needs) bool { return len(n.Excluded) > 0 },
		func(n *Needs, c *Capability) bool { return c.Region != "" && !slices.Contains(n.Excluded, c.Region) },
		func(n *Needs) string { return "a region other than " + strings.Join(n.Excluded, ", ") },
		func(c *Capability) string { return said(c.Region) }},
	{"tags",
		func(n *Needs) bool { return len(n.Tags) > 0 },
		func(n *Needs, c *Capability) bool { return len(lacking(n.Tags, c.Tags)) == 0 },
		func(n *Needs) string { return strings.Join(n.Tags, " and ") },
		func(c *Capability) string { return said(strings.Join(c.Tags, ", ")) }},
	{"privacy",
		func(n *Needs) bool { return n.Privacy > Public },
		func(n *Needs, c *Capability) bool { return c.Privacy >= n.Privacy },
		func(n *Needs) string { return n.Privacy.String() },
		func(c *Capability) string { return c.Privacy.String() }},
	{"memory",
		func(n *Needs) bool { return n.Memory > 0 },
		func(n *Needs, c *Capability) bool { return c.Memory >= n.Memory },
		func(n *Needs) string { return fmt.Sprintf("%d bytes", n.Memory) },
		func(c *Capability) string { return fmt.Sprintf("%d", c.Memory) }},
	{"speed",
		func(n *Needs) bool { return n.Speed > 0 },
		func(n *Needs, c *Capability) bool { return c.Speed >= n.Speed },
		func(n *Needs) string {
			if n.Tier != "" {
				return fmt.Sprintf("%d GFLOP/s measured (tier %s)", n.Speed/giga, n.Tier)
			}
			return fmt.Sprintf("%d GFLOP/s measured", n.Speed/giga)
		},
		func(c *Capability) string { return fmt.Sprintf("%d", c.Speed/giga) }},
	{"power",
		func(n *Needs) bool { return n.Power > 0 },
		func(n *Needs, c *Capability) bool { return c.Power >= n.Power },
		func(n *Needs) string {
			return fmt.Sprintf("%d.%06d ut of effective power", n.Power/million, n.Power%million)
		},
		func(c *Capability) string { return fmt.Sprintf("%d.%06d", c.Power/million, c.Power%million) }},
}

const (
	giga    = 1_000_000_000
	million = 1_000_000
)

// said returns what was declared, or that nothing was.
func said(what string) string {
	if what == "" {
		return "none declared"
	}
	return what
}

// lacking returns what of a list is not in another.
func lacking(wanted, there []string) (out []string) {
	for _, w := range wanted {
		if !slices.Contains(there, w) {
			out = append(out, w)
		}
	}
	return out
}

// AskEach reports whether anything is asked of single providers.
func (n *Needs) AskEach() bool {
	return n.Tier != "" || slices.ContainsFunc(conditions[:], func(c condition) bool { return c.asked(n) })
}

// Meets returns an error that says what a provider lacks. The tier must have been entered by Under.
func (n *Needs) Meets(c *Capability) error {
	for i := range conditions {
		if x := &conditions[i]; x.asked(n) && !x.met(n, c) {
			return fmt.Errorf("%s: the order wants %s, the provider has %s", x.name, x.wants(n), x.has(c))
		}
	}
	return nil
}

// Describe says what is asked, a text for each condition.
func (n *Needs) Describe() (out []string) {
	for i := range conditions {
		if x := &conditions[i]; x.asked(n) {
			out = append(out, x.name+": "+x.wants(n))
		}
	}
	if n.Tier != "" && n.Speed == 0 {
		out = append(out, "tier: "+n.Tier)
	}
	if n.Most > 0 {
		out = append(out, fmt.Sprintf("at most %d providers", n.Most))
	}
	if n.Throughput > 0 {
		out = append(out, fmt.Sprintf("throughput: %d GFLOP/s together", n.Throughput/giga))
	}
	if n.Deadline > 0 {
		out = append(out, fmt.Sprintf("deadline: %d s after the match", n.Deadline/1000))
	}
	return out
}

// Under returns the needs with the speed that their tier stands for.
func (n *Needs) Under(t Tiers) (Needs, error) {
	out := *n
	if n.Tier == "" {
		return out, nil
	}
	least, err := t.Least(n.Tier)
	out.Speed = max(n.Speed, least)
	return out, err
}

// Check returns, in words for the consumer, the first thing that is wrong.
func (n *Needs) Check() error {
	for _, l := range []struct {
		name string
		all  []string
		one  func(string) error
	}{
		{"providers", n.Accounts, checkAccount}, {"regions", n.Regions, checkRegion}, {"excluded regions", n.Excluded, checkRegion}, {"tags", n.Tags, checkTag},
	} {
		if err := checkList(l.name, l.all, l.one); err != nil {
			return err
		}
	}
	if both := lacking(n.Regions, lacking(n.Regions, n.Excluded)); len(both) > 0 {
		return fmt.Errorf("region %s is wanted and excluded", both[0])
	}
	switch {
	case int(n.Privacy) >= len(privacies):
		return fmt.Errorf("privacy %v is not known: choose of %s", n.Privacy, strings.Join(privacies[:], ", "))
	case len(n.Tier) > maxLabel || strings.ContainsFunc(n.Tier, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("tier %.40q: a label has at most %d letters", n.Tier, maxLabel)
	case max(n.Memory, n.Speed, n.Power, n.Throughput) > maxQuantity:
		return fmt.Errorf("memory, speed, power or throughput is above %d", uint64(maxQuantity))
	case n.Most < 0 || n.Most > maxTeam:
		return fmt.Errorf("%d providers at most, want between 1 and %d", n.Most, maxTeam)
	case n.Deadline < 0 || n.Deadline > maxDeadline:
		return fmt.Errorf("a deadline of %d ms, want between 1 and %d", n.Deadline, int64(maxDeadline))
	}
	return nil
}

// checkList returns an error unless a list is short, in order, and holds each item once.
func checkList(name string, all []string, one func(string) error) error {
	if len(all) > MaxListed {
		return fmt.Errorf("%d %s, at most %d may be named", len(all), name, MaxListed)
	}
	for i, x := range all {
		if err := one(x); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i > 0 && all[i-1] >= x {
			return fmt.Errorf("%s: %.40q is named twice, or out of order", name, x)
		}
	}
	return nil
}

func checkAccount(a string) error {
	if a == "" || len(a) > maxAccount {
		return fmt.Errorf("%.40q is no account", a)
	}
	return nil
}

// checkRegion returns an error unless r has the form of a country's code in ISO 3166-1 alpha-2.
func checkRegion(r string) error {
	if len(r) != 2 || strings.ContainsFunc(r, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		return fmt.Errorf("region %.40q: write a country's two letters, as DE or US", r)
	}
	return nil
}

// checkTag returns an error unless t is a tag.
func checkTag(t string) error {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if t == "" || len(t) > maxTag || strings.ContainsFunc(t, odd) {
		return fmt.Errorf("tag %.40q: write 1 to %d small letters, digits and dashes, as gdpr", t, maxTag)
	}
	return nil
}

// isZero reports whether nothing is asked.
func (n *Needs) isZero() bool {
	return !n.AskEach() && n.Most == 0 && n.Throughput == 0 && n.Deadline == 0
}

// Code walks the fields of n. Needs of nothing are one byte.
func (n *Needs) Code(w *canon.Codec) {
	some := !n.isZero()
	if w.Bool(&some); !some {
		return
	}
	for _, l := range []struct {
		all  *[]string
		size int
	}{{&n.Accounts, maxAccount}, {&n.Regions, 2}, {&n.Excluded, 2}, {&n.Tags, maxTag}} {
		canon.Seq(w, l.all, MaxListed, 1, func(w *canon.Codec, s *string) { w.String(s, l.size) })
	}
	w.U8((*uint8)(&n.Privacy))
	w.String(&n.Tier, maxLabel)
	for _, q := range []*uint64{&n.Memory, &n.Speed, &n.Power, &n.Throughput} {
		w.U64(q)
	}
	w.Int(&n.Most, maxTeam)
	w.I64(&n.Deadline)
	if n.isZero() {
		w.Fail("needs of nothing are written out")
	}
}
