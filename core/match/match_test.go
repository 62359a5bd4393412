package match

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
)

var chainTiers = Tiers{{"A", 20_000 * giga}, {"B", 5_000 * giga}, {"C", 0}}

// anybody is a provider that meets what the table below asks.
func anybody() Capability {
	return Capability{
		Account:  "p0",
		Declared: Declared{Region: "DE", Tags: []string{"gdpr", "iso-27001"}, Memory: 16 * giga, Privacy: Discreet},
		Speed:    5_000 * giga, Power: 3 * million,
	}
}

func TestMeets(t *testing.T) {
	for name, x := range map[string]struct {
		needs   Needs
		lacking func(*Capability)
		words   string
	}{
		"named":             {Needs{Accounts: []string{"p0", "p1"}}, func(c *Capability) { c.Account = "p2" }, "one of 2 accounts, the provider has p2"},
		"region":            {Needs{Regions: []string{"DE", "FR"}}, func(c *Capability) { c.Region = "US" }, "DE or FR, the provider has US"},
		"no region":         {Needs{Regions: []string{"DE"}}, func(c *Capability) { c.Region = "" }, "none declared"},
		"excluded":          {Needs{Excluded: []string{"US"}}, func(c *Capability) { c.Region = "US" }, "other than US"},
		"perhaps excluded":  {Needs{Excluded: []string{"US"}}, func(c *Capability) { c.Region = "" }, "none declared"},
		"tags":              {Needs{Tags: []string{"gdpr", "iso-27001"}}, func(c *Capability) { c.Tags = []string{"gdpr"} }, "gdpr and iso-27001"},
		"privacy":           {Needs{Privacy: Discreet}, func(c *Capability) { c.Privacy = Public }, "wants discreet"},
		"memory":            {Needs{Memory: 16 * giga}, func(c *Capability) { c.Memory-- }, "16000000000 bytes"},
		"speed":             {Needs{Speed: 5_000 * giga}, func(c *Capability) { c.Speed-- }, "wants 5000 GFLOP/s measured, the provider has 4999"},
		"tier":              {Needs{Tier: "B"}, func(c *Capability) { c.Speed-- }, "(tier B)"},
		"tier and a speed":  {Needs{Tier: "C", Speed: 5_000 * giga}, func(c *Capability) { c.Speed-- }, "5000 GFLOP/s"},
		"computing power":   {Needs{Power: 3 * million}, func(c *Capability) { c.Power-- }, "3.000000 ut of effective power, the provider has 2.999999"},
		"whatever is there": {Needs{Most: 3, Throughput: 1, Deadline: 1}, nil, ""},
	} {
		needs, err := x.needs.Under(chainTiers)
		if err != nil {
			t.Fatal(name, err)
		}
		c := anybody()
		if err := needs.Meets(&c); err != nil {
			t.Errorf("%s: at the bound, which is included: %v", name, err)
		}
		if x.lacking == nil {
			if needs.AskEach() {
				t.Errorf("%s: asks something of single providers", name)
			}
			continue
		}
		x.lacking(&c)
		if err := needs.Meets(&c); err == nil || !strings.Contains(err.Error(), x.words) || !x.needs.AskEach() {
			t.Errorf("%s: %v does not say %q", name, err, x.words)
		}
	}
	if _, err := (&Needs{Tier: "S"}).Under(chainTiers); err == nil || !strings.Contains(err.Error(), "A, B, C") {
		t.Errorf("a tier that is none: %v", err)
	}
}

func TestWhatNeedsMayNotSay(t *testing.T) {
	many := make([]string, MaxListed+1)
	for i := range many {
		many[i] = strings.Repeat("a", i%maxTag+1)
	}
	for words, n := range map[string]Needs{
		"two letters":         {Regions: []string{"Germany"}},
		"DE or US":            {Excluded: []string{"us"}},
		"wanted and excluded": {Regions: []string{"DE", "FR"}, Excluded: []string{"FR"}},
		"out of order":        {Regions: []string{"FR", "DE"}},
		"named twice":         {Tags: []string{"gdpr", "gdpr"}},
		"small letters":       {Tags: []string{"GDPR"}},
		"at most 32":          {Tags: many},
		"is no account":       {Accounts: []string{""}},
		"level 3":             {Privacy: 3},
		"a label has":         {Tier: "tier B"},
		"is above":            {Memory: maxQuantity + 1},
		"providers at most":   {Most: maxTeam + 1},
		"a deadline of -1":    {Deadline: -1},
	} {
		if err := n.Check(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v does not say %q", n, err, words)
		}
	}
	for words, d := range map[string]Declared{"two letters": {Region: "D"}, "tag": {Tags: []string{""}}, "level 9": {Privacy: 9}, "memory": {Memory: math.MaxUint64}} {
		if err := d.Check(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v does not say %q", d, err, words)
		}
	}
}

func TestTiers(t *testing.T) {
	if err := chainTiers.Check(); err != nil {
		t.Fatal(err)
	}
	for speed, want := range map[uint64]string{0: "C", 5_000*giga - 1: "C", 5_000 * giga: "B", 20_000*giga - 1: "B", 20_000 * giga: "A", math.MaxUint64: "A"} {
		if got := chainTiers.Of(speed); got != want {
			t.Errorf("%d FLOP/s are of tier %s, want %s", speed, got, want)
		}
	}
	for words, x := range map[string]Tiers{
		"at most 16": make(Tiers, maxTiers+1), "a label has": {{"", 0}}, "two tiers": {{"A", 2}, {"A", 0}}, "fastest first": {{"A", 2}, {"B", 2}, {"C", 0}}, "begin at 0": {{"A", 2}},
	} {
		if err := x.Check(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: %v does not say %q", x, err, words)
		}
	}
}

// some draws a list of a few words, in order.
func some(t *rapid.T, what string, of ...string) []string {
	all := rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, len(of), rapid.ID[string]).Draw(t, what)
	slices.Sort(all)
	return all
}

func drawNeeds(t *rapid.T) (n Needs) {
	few := func(what string) uint64 { return rapid.Uint64Range(0, 4).Draw(t, what) }
	n = Needs{
		Accounts: some(t, "accounts", "p0", "p1"), Tags: some(t, "tags", "gdpr", "iso", "x"), Privacy: Privacy(few("privacy") % 3),
		Memory: few("memory"), Speed: few("speed"), Power: few("power"), Most: int(few("most")), Throughput: few("throughput"), Deadline: int64(few("deadline")),
	}
	for _, r := range some(t, "regions", "DE", "FR", "US") {
		switch few("of " + r) {
		case 0:
			n.Regions = append(n.Regions, r)
		case 1:
			n.Excluded = append(n.Excluded, r)
		}
	}
	return n
}

func drawCapability(t *rapid.T) Capability {
	few := func(what string) uint64 { return rapid.Uint64Range(0, 4).Draw(t, "its "+what) }
	return Capability{
		Account:  rapid.SampledFrom([]string{"p0", "p1", "p2"}).Draw(t, "account"),
		Declared: Declared{rapid.SampledFrom([]string{"", "DE", "FR", "US"}).Draw(t, "region"), some(t, "its tags", "gdpr", "iso", "x"), few("memory"), Privacy(few("privacy") % 3)},
		Speed:    few("speed"), Power: few("power"),
	}
}

// Whoever lacks something lacks it however much more is asked, and whoever has more lacks no more.
func TestMoreNeedsNeverHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, c, more := drawNeeds(t), drawCapability(t), drawNeeds(t)
		was := n.Meets(&c)
		asked := n
		asked.Speed, asked.Memory, asked.Power = max(n.Speed, more.Speed), max(n.Memory, more.Memory), max(n.Power, more.Power)
		asked.Privacy, asked.Tags = max(n.Privacy, more.Privacy), union(n.Tags, more.Tags)
		asked.Excluded = union(n.Excluded, more.Excluded)
		if len(n.Accounts) == 0 {
			asked.Accounts = more.Accounts
		}
		if len(n.Regions) == 0 {
			asked.Regions = more.Regions
		}
		if was != nil && asked.Meets(&c) == nil {
			t.Fatalf("%+v meets %+v, and not %+v: %v", c, asked, n, was)
		}
		better := c
		better.Speed, better.Memory, better.Power, better.Privacy = c.Speed+1, c.Memory+1, c.Power+1, min(c.Privacy+1, Enclosed)
		better.Tags = union(c.Tags, []string{"gdpr"})
		if was == nil && n.Meets(&better) != nil {
			t.Fatalf("%+v meets %+v, and with more it does not: %v", c, n, n.Meets(&better))
		}
		var s Census
		if met := s.Add(&n, &c); met != (was == nil) || (s.Err() == nil) != met || (len(s.Misses()) == 0) != met {
			t.Fatalf("counted as %v: %v, %v", met, was, s.Err())
		}
	})
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

func TestCensusCountsEveryConditionThatSomebodyLacks(t *testing.T) {
	n := Needs{Regions: []string{"DE"}, Memory: 2, Tags: []string{"gdpr"}}
	var s Census
	for _, d := range []Declared{{Region: "DE", Memory: 2, Tags: []string{"gdpr"}}, {Region: "US", Memory: 1, Tags: []string{"gdpr"}}, {Region: "FR", Memory: 2, Tags: []string{"gdpr"}}} {
		s.Add(&n, &Capability{Declared: d})
	}
	if want := []Miss{{"regions", 2}, {"memory", 1}}; !slices.Equal(s.Misses(), want) || s.Out != 2 {
		t.Errorf("%d do not fit, %v, want 2, %v", s.Out, s.Misses(), want)
	}
	if text := s.Err().Error(); text != "2 providers do not fit (regions 2, memory 1), for example regions: the order wants DE, the provider has US" {
		t.Error(text)
	}
}

func TestPace(t *testing.T) {
	var p Pace
	if p.AddWork(math.MaxUint64); p.Speed() != mostUnprobed {
		t.Errorf("no time: %d FLOP/s", p.Speed())
	}
	p = Pace{}
	for range 10 * 24 { // ten days of hours at a speed, then two at half of it
		p.AddWork(3_600_000)
		p.AddTime(3_600_000)
	}
	if r := p.Speed(); r != 999 && r != 1000 || p.Time > remembered {
		t.Errorf("%+v is %d FLOP/s", p, p.Speed())
	}
	for range 2 * 24 {
		p.AddWork(1_800_000)
		p.AddTime(3_600_000)
	}
	if r := p.Speed(); r < 500 || r > 600 {
		t.Errorf("after two days at half the speed %d FLOP/s", r)
	}
}

// However work and time are cut into parts: no pace is above the fastest part, and none above what
// was computed, spread over ten minutes.
func TestPaceIsNoFasterThanItsFastestPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pace
		fastest := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "parts") {
			ms := rapid.Uint64Range(1, 3*remembered).Draw(t, "ms")
			speed := rapid.Uint64Range(0, 1<<30).Draw(t, "speed")
			work := ms * speed / 1000
			fastest = max(fastest, speed)
			p.AddWork(work)
			p.AddTime(ms)
			if p.Speed() > fastest || p.Speed() > p.Work/600 {
				t.Fatalf("%+v is %d FLOP/s, the fastest part %d", p, p.Speed(), fastest)
			}
		}
	})
}

// A probe stands, whatever other work shows. Work alone shows no more than a processor has.
func TestProbesAndWork(t *testing.T) {
	const minute, fast = 60_000, 20e12
	for name, c := range map[string]struct {
		pace Pace
		want uint64
	}{
		"nothing":                          {Pace{}, 0},
		"work alone":                       {Pace{Work: 600e9, Time: 10 * minute}, 1e9},
		"faster work than is believed":     {Pace{Work: 60_000e12, Time: 10 * minute}, mostUnprobed},
		"a probe alone":                    {Pace{Probed: fast}, fast},
		"a probe, and work at a twentieth": {Pace{Probed: fast, Work: fast / 20 * 600, Time: 10 * minute}, fast},
		"a slow probe, and faster work":    {Pace{Probed: 1e9, Work: fast * 600, Time: 10 * minute}, 1e9},
	} {
		if got := c.pace.Speed(); got != c.want {
			t.Errorf("%s: %d FLOP/s, want %d", name, got, c.want)
		}
	}
}

func TestPlanTakes(t *testing.T) {
	p := Plan{Rounds: 3, Shards: 4, UnitFLOPs: 10_000, Ahead: 10, Window: 7000}
	for _, x := range []struct {
		bend   func(*Plan)
		speeds []uint64
		want   uint64
	}{
		{nil, []uint64{10_000}, 3 * 4000},                                        // one after another
		{nil, []uint64{10_000, 10_000}, 3 * 2000},                                // half each
		{nil, []uint64{10_000, 10_000, 10_000}, 3 * 2000},                        // one of them computes two
		{nil, []uint64{10_000, 10_000, 10_000, 10_000, 10_000}, 3 * 1000},        // one has nothing to do
		{nil, []uint64{30_000, 10_000}, 3 * 1000},                                // three and one
		{func(p *Plan) { p.Ahead = 0 }, []uint64{30_000, 10_000}, 3000 + 14_000}, // each round waits for the windows of the one before
		{func(p *Plan) { p.Ahead = 1 }, []uint64{30_000, 10_000}, 3000 + 7000},
		{func(p *Plan) { p.UnitFLOPs = math.MaxUint64 }, []uint64{1}, math.MaxUint64},
	} {
		p := p
		if x.bend != nil {
			x.bend(&p)
		}
		if got, ok := p.Takes(x.speeds); !ok || got != x.want {
			t.Errorf("%+v takes %d ms of %v, want %d", p, got, x.speeds, x.want)
		}
	}
	if _, ok := p.Takes([]uint64{0, 0}); ok {
		t.Error("nobody has a speed, and it takes a time")
	}
}

// The time of a round is the least in which the units can be done, and more providers never make it longer.
func TestPlanTakesTheLeastTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{Rounds: 1, Shards: rapid.IntRange(1, 4096).Draw(t, "shards"), UnitFLOPs: rapid.Uint64Range(1, 1<<50).Draw(t, "unit")}
		speeds := rapid.SliceOfN(rapid.Uint64Range(1, 1<<50), 1, 20).Draw(t, "speeds")
		ms, _ := p.Takes(speeds)
		if ms == math.MaxUint64 {
			return
		}
		done := func(ms uint64) bool {
			units := new(big.Int)
			for _, v := range speeds {
				x := new(big.Int).Mul(new(big.Int).SetUint64(ms), new(big.Int).SetUint64(v))
				units.Add(units, x.Quo(x, new(big.Int).Mul(big.NewInt(1000), new(big.Int).SetUint64(p.UnitFLOPs))))
			}
			return units.Cmp(big.NewInt(int64(p.Shards))) >= 0
		}
		if !done(ms) || ms > 1 && len(speeds) > 1 && done(ms-1) {
			t.Fatalf("%d ms for %+v of %v", ms, p, speeds)
		}
		if more, _ := p.Takes(append(slices.Clone(speeds), rapid.Uint64Range(0, 1<<50).Draw(t, "one more"))); more > ms {
			t.Fatalf("%d ms, with one more %d", ms, more)
		}
	})
}

func TestSuffices(t *testing.T) {
	p := Plan{Rounds: 1, Shards: 2, UnitFLOPs: giga}
	for words, n := range map[string]Needs{
		"": {Throughput: 2 * giga, Deadline: 1000},
		"wants 3 GFLOP/s, its providers were measured at 2": {Throughput: 3 * giga},
		"take 1000 ms": {Deadline: 999},
	} {
		err := n.Suffices(p, []uint64{giga, giga})
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%v does not say %q", err, words)
		}
	}
	if err := (&Needs{Deadline: 1}).Suffices(p, nil); err == nil || !strings.Contains(err.Error(), "measured at any speed") {
		t.Error(err)
	}
}

func TestNeedsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNeeds(t)
		n.Tier = rapid.SampledFrom([]string{"", "B"}).Draw(t, "tier")
		var back Needs
		if err := canon.Unmarshal(canon.Marshal(&n), &back); err != nil {
			t.Fatal(err)
		}
		if a, b := canon.Marshal(&n), canon.Marshal(&back); string(a) != string(b) || n.Check() != nil && back.Check() == nil {
			t.Fatalf("%+v came back as %+v", n, back)
		}
	})
	if b := canon.Marshal(&Needs{}); len(b) != 1 {
		t.Errorf("needs of nothing are %d bytes", len(b))
	}
	if err := canon.Unmarshal(append([]byte{1}, make([]byte, 12)...), &Needs{}); err == nil {
		t.Error("needs of nothing have two encodings")
	}
}

func FuzzNeeds(f *testing.F) {
	f.Add(canon.Marshal(&Needs{}))
	f.Add(canon.Marshal(&Needs{Accounts: []string{"p"}, Regions: []string{"DE"}, Tags: []string{"gdpr"}, Tier: "A", Deadline: -1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n Needs
		if canon.Unmarshal(b, &n) != nil {
			return
		}
		if got := canon.Marshal(&n); string(got) != string(b) {
			t.Fatalf("%x is read as %+v, and written as %x", b, n, got)
		}
		c := anybody()
		if n.Check() == nil && n.Meets(&c) == nil {
			_ = n.Suffices(Plan{Rounds: 4096, Shards: 4096, UnitFLOPs: 1 << 60, Window: maxDeadline}, []uint64{c.Speed})
		}
	})
}
