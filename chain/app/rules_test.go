package app_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/docs/spec"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// rule is a line of docs/spec/rules.md.
type rule struct {
	text        string // its default
	bounded     bool   // by two numbers
	least, most uint64
}

// readRules returns the table of rules, by module and name.
func readRules(t *testing.T) map[string]map[string]rule {
	t.Helper()
	out := map[string]map[string]rule{}
	for _, line := range spec.Rules() {
		r := rule{text: line.Default}
		r.least, r.most, r.bounded = line.Range()
		if out[line.Module] == nil {
			out[line.Module] = map[string]rule{}
		}
		out[line.Module][line.Name] = r
	}
	return out
}

// noRules are the messages that set no rules, with what bounds them.
var noRules = map[string]string{
	"/tally.drilling.v1.MsgAdmitProject":         "the budget of the project",
	"/tally.drilling.v1.MsgEndProject":           "the one project",
	"/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade": "who runs the version that it names: without two thirds of the seats there is no block",
	"/cosmos.upgrade.v1beta1.MsgCancelUpgrade":   "the one plan",
}

// paramsOf returns the default rules of each module whose rules a vote can set.
func paramsOf(t *testing.T, c *chaintest.Chain) map[string]map[string]any {
	t.Helper()
	r, err := policyv1.NewQueryClient(c).Params(t.Context(), &policyv1.QueryParamsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out, standard := map[string]map[string]any{}, c.DefaultGenesis()
	for _, url := range r.Messages {
		name, ok := strings.CutSuffix(strings.TrimPrefix(url, "/tally."), ".v1.MsgUpdateParams")
		if !ok && noRules[url] != "" {
			continue
		} else if !ok {
			t.Errorf("a vote can execute %s, which sets no rules: how is it bounded?", url)
			continue
		}
		var state struct {
			Params map[string]any `json:"params"`
		}
		if err := json.Unmarshal(standard[name], &state); err != nil {
			t.Fatal(err)
		}
		out[name] = state.Params
	}
	return out
}

// Every rule stands in docs/spec/rules.md, with the default that it has.
func TestRulesAreDocumented(t *testing.T) {
	table, params := readRules(t), paramsOf(t, chaintest.New(t))
	for name, rules := range params {
		for field, v := range rules {
			r, ok := table[name][field]
			if !ok {
				t.Errorf("docs/spec/rules.md has no line for `%s.%s`: add its default, bounds and why", name, field)
			} else if got := spec.Text(v); got != r.text {
				t.Errorf("%s.%s is %s by default, and %s in docs/spec/rules.md", name, field, got, r.text)
			}
			delete(table[name], field)
		}
	}
	for name, rest := range table {
		for field := range rest {
			t.Errorf("docs/spec/rules.md has a line for %s.%s, which is no rule", name, field)
		}
	}
}

// update returns the message by which an account replaces the rules of a module.
func update(t *testing.T, c *chaintest.Chain, by, name string, params map[string]any) sdk.Msg {
	t.Helper()
	text, err := json.Marshal(map[string]any{"@type": "/tally." + name + ".v1.MsgUpdateParams", "authority": by, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	var m sdk.Msg
	if err := c.Codec.UnmarshalInterfaceJSON(text, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// with returns rules with one of them replaced.
func with(params map[string]any, field string, v uint64) map[string]any {
	out := maps.Clone(params)
	if _, number := params[field].(float64); number {
		out[field] = v
	} else {
		out[field] = strconv.FormatUint(v, 10)
	}
	return out
}

// No rule can be set to what is outside of its bounds.
func TestRulesAreBounded(t *testing.T) {
	c := chaintest.New(t)
	table, params := readRules(t), paramsOf(t, c)
	ctx := c.Ctx()
	set := func(name string, p map[string]any) error {
		m := update(t, c, address.Policy().String(), name, p)
		_, err := c.MsgServiceRouter().Handler(m)(ctx, m)
		return err
	}
	for name := range table {
		if err := set(name, params[name]); err != nil {
			t.Errorf("no vote could set the default rules of %s: %v", name, err)
		}
		for field, r := range table[name] {
			if !r.bounded {
				continue
			}
			if r.least > 0 && set(name, with(params[name], field, r.least-1)) == nil {
				t.Errorf("a vote can set %s.%s to %d", name, field, r.least-1)
			}
			if set(name, with(params[name], field, r.most+1)) == nil {
				t.Errorf("a vote can set %s.%s to %d", name, field, r.most+1)
			}
		}
	}
}

// Bounds that are no two numbers hold as well.
func TestRulesAreBoundedByOthers(t *testing.T) {
	c := chaintest.New(t)
	params, ctx := paramsOf(t, c), c.Ctx()
	for _, b := range []struct {
		module, field string
		last, beyond  uint64
	}{
		{"auction", "window_ms", 30_000, 30_001}, {"auction", "reveal_ms", 30_000, 30_001}, {"auction", "age_step", 5_000, 5_001}, {"auction", "age_most", 50, 51},
		{"reserve", "seats_bps", 4_000, 4_001}, {"reserve", "insurance_bps", 1_000, 1_001},
		{"policy", "quorum", 50_000_000_000_000, 50_000_000_000_001}, {"policy", "quorum", 10_000_000_000_000, 9_999_999_999_999},
	} {
		set := func(v uint64) error {
			m := update(t, c, address.Policy().String(), b.module, with(params[b.module], b.field, v))
			branch, _ := ctx.CacheContext()
			_, err := c.MsgServiceRouter().Handler(m)(branch, m)
			return err
		}
		if err := set(b.last); err != nil {
			t.Errorf("%s.%s = %d: %v", b.module, b.field, b.last, err)
		}
		if set(b.beyond) == nil {
			t.Errorf("a vote can set %s.%s to %d", b.module, b.field, b.beyond)
		}
	}
}

// Whatever rules votes have set, within their bounds: blocks go on, and another vote takes them back.
func TestVotesTakeBackWhatVotesSet(t *testing.T) {
	c := chaintest.New(t, append(network(), chaintest.Fund(10_000_000*tally, "carol"), chaintest.Fund(100*tally, "producer"))...)
	table, params := readRules(t), paramsOf(t, c)
	// How fast time passes, and what one game may take, are bounded by themselves.
	delete(table["block"], "max_gap_ms")
	delete(params, "dispute")
	params["block"]["max_gap_ms"] = "9223372036854775807"
	carol, founder, changed := chaintest.Named("carol"), chaintest.Named("producer"), map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		for name := range params {
			drawn := maps.Clone(params[name])
			for _, field := range slices.Sorted(maps.Keys(table[name])) {
				if r := table[name][field]; r.bounded && rapid.Bool().Draw(rt, name+"."+field) {
					drawn = with(drawn, field, rapid.OneOf(rapid.Uint64Range(r.least, r.most), rapid.SampledFrom([]uint64{r.least, r.most})).Draw(rt, field))
				}
			}
			m := update(t, c, address.Policy().String(), name, drawn)
			if c.Do(func(ctx sdk.Context) error { _, err := c.MsgServiceRouter().Handler(m)(ctx, m); return err }) == nil {
				changed[name]++
			}
		}
		rules := rulesOfVotes(t, c)
		change := &policyv1.MsgPropose{Proposer: carol.String(), Title: "Back", Summary: "As it was.", Deposit: rules.NextDeposit}
		for _, name := range slices.Sorted(maps.Keys(params)) {
			packed, err := codectypes.NewAnyWithValue(update(t, c, address.Policy().String(), name, params[name]))
			if err != nil {
				t.Fatal(err)
			}
			change.Messages = append(change.Messages, packed)
		}
		c.QueueWithFee(carol, c.Fee(), change)
		if r := c.NextBlock(time.Second).TxResults[0]; r.Code != 0 {
			rt.Fatalf("nobody can propose: %s", r.Log)
		}
		all, err := policyv1.NewQueryClient(c).Proposals(t.Context(), &policyv1.QueryProposalsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		c.QueueWithFee(founder, c.Fee(), &policyv1.MsgVote{Voter: founder.String(), Proposal: all.Proposals[len(all.Proposals)-1].Id, Option: policyv1.OPTION_YES})
		if r := c.NextBlock(time.Second).TxResults[0]; r.Code != 0 {
			rt.Fatalf("nobody can vote: %s", r.Log)
		}
		c.NextBlock(time.Duration(rules.Params.VotingMs) * time.Millisecond)
		c.NextBlock(time.Duration(rules.Params.DelayMs) * time.Millisecond)
		if again := rulesOfVotes(t, c); again.Params.String() != policyDefaults(t, c, params["policy"]).String() {
			rt.Fatalf("rules of votes stay %+v", again.Params)
		}
	})
	for name := range params {
		if changed[name] == 0 {
			t.Errorf("no rules of %s were ever set", name)
		}
	}
}

func rulesOfVotes(t *testing.T, c *chaintest.Chain) *policyv1.QueryParamsResponse {
	t.Helper()
	r, err := policyv1.NewQueryClient(c).Params(t.Context(), &policyv1.QueryParamsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func policyDefaults(t *testing.T, c *chaintest.Chain, params map[string]any) *policyv1.Params {
	t.Helper()
	return &update(t, c, address.Policy().String(), "policy", params).(*policyv1.MsgUpdateParams).Params
}
