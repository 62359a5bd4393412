package dispute_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Rules are changed by the authority alone, for disputes that begin later, and only
// to such as an honest side can play by; the refusal shows the inequality.
func TestUpdateParams(t *testing.T) {
	boss, stranger := authority, worktest.Challenger
	c := chaintest.New(t, worktest.Network(chaintest.Authority(boss.Name))...)
	q := disputev1.NewQueryClient(c)
	before, err := q.Params(t.Context(), &disputev1.QueryParamsRequest{})
	if err != nil || before.Authority != boss.String() {
		t.Fatalf("%+v, %v", before, err)
	}
	update := func(depth uint32, clock, answer int64) *disputev1.MsgUpdateParams {
		return &disputev1.MsgUpdateParams{Authority: boss.String(), Params: disputev1.Params{Depth: depth, ClockMs: clock, AnswerMs: answer, Parallel: 4}}
	}
	for why, m := range map[string]*disputev1.MsgUpdateParams{
		"depth between 1 and 8":                                    update(9, 1_800_000, 600_000),
		"got 6, 600000 and 600001 ms":                              update(6, 600_000, 600_001),
		"answer_ms = 4999 < 5000":                                  update(6, 1_800_000, 4_999),
		"clock_ms − answer_ms = 704999 − 600000 < 21 moves · 5000": update(6, 704_999, 600_000),
		"clock_ms − answer_ms = 600000 − 300000 < 72 moves · 5000": update(1, 600_000, 300_000),
		"clock_ms = 604800001 > 604800000":                         update(6, 604_800_001, 600_000),
	} {
		if text := c.Refuse(module.ErrRules, boss, m); !strings.Contains(text, why) {
			t.Errorf("refused with %q, want %q", text, why)
		}
	}
	none := update(6, 1_800_000, 600_000)
	none.Params.Parallel = 0
	if text := c.Refuse(module.ErrRules, boss, none); !strings.Contains(text, "0 games about one defender's work at once, want between 1 and 64") {
		t.Error(text)
	}
	crowded := update(6, 1_800_000, 600_000)
	crowded.Params.Parallel = 5
	for why, m := range map[string]*disputev1.MsgUpdateParams{
		"answer_ms / parallel = 599999 / 4 < 600000 / 4": update(6, 1_800_000, 599_999),
		"answer_ms / parallel = 600000 / 5 < 600000 / 4": crowded,
	} {
		if text := c.Refuse(module.ErrRules, boss, m); !strings.Contains(text, why) {
			t.Errorf("refused with %q, want %q", text, why)
		}
	}
	good := update(6, 705_000, 600_000)
	foreign := *good
	foreign.Authority = stranger.String()
	c.Refuse(module.ErrAuthority, stranger, &foreign)

	c.Deliver(boss, good)
	after, err := q.Params(t.Context(), &disputev1.QueryParamsRequest{})
	if err != nil || after.Params != good.Params {
		t.Fatalf("%+v, %v", after, err)
	}
	g, err := c.Dispute.ExportGenesis(c.Ctx())
	if err != nil || g.Authority != boss.String() || g.Params != good.Params || dispute.ValidateGenesis(g) != nil {
		t.Errorf("exported %+v, %v", g, err)
	}
	g.Authority = "nobody"
	if err := dispute.ValidateGenesis(g); err == nil || !strings.Contains(err.Error(), "authority") {
		t.Errorf("a genesis with the authority %q: %v", g.Authority, err)
	}
}

// A game goes on by the rules under which it began.
func TestGamesKeepTheirRules(t *testing.T) {
	a := newAffair(t)
	id := a.challenge()
	_, before := a.Game(id)
	m := &disputev1.MsgUpdateParams{Authority: authority.String(), Params: dispute.DefaultParams()}
	m.Params.Depth = 3
	a.Deliver(authority, m)
	if rules, err := a.Chain.Dispute.Rules(a.Ctx()); err != nil || rules.Depth != 3 {
		t.Fatalf("%+v, %v", rules, err)
	}
	if _, g := a.Game(id); g.Rules != before.Rules {
		t.Errorf("the game has the rules %+v, it began with %+v", g.Rules, before.Rules)
	}
	defender, challenger := a.sides()
	if d, _ := a.PlayOut(id, defender, challenger); d.Loser != disputev1.SIDE_DEFENDER {
		t.Errorf("%v has lost", d.Loser)
	}
}
