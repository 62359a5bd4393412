package messages

import (
	"errors"
	"strings"
	"testing"

	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

// asked are the rules of modules as a node answers.
func asked(module string) (map[string]any, error) {
	switch module {
	case "block":
		return rulesIn(&blockv1.QueryParamsResponse{Params: blockv1.Params{GasPrice: 100, MaxGapMs: 7}})
	case "reserve":
		return rulesIn(&reservev1.QueryParamsResponse{Params: reservev1.Params{Cap: 800}})
	case "provider":
		return rulesIn(&providerv1.QueryParamsResponse{Params: providerv1.Params{Tiers: []providerv1.Tier{{Label: "A"}}}})
	}
	return nil, errors.New("no such module")
}

func TestProposalOfTypedRules(t *testing.T) {
	all, typed, err := assignments([]string{"block.gas_price=200", "reserve.cap=5", "block.max_gap_ms=8"})
	if err != nil || !typed {
		t.Fatal(err)
	}
	m, err := proposalOf(all, asked)
	if err != nil || len(m.Messages) != 2 {
		t.Fatalf("%v, %v", m, err)
	}
	for i, want := range []map[string]string{{"gas_price": "200", "max_gap_ms": "8"}, {"cap": "5"}} {
		got, err := RulesSetBy(m.Messages[i])
		for name, value := range want {
			if err != nil || got[name] != value {
				t.Errorf("message %d sets %s to %v, want %s: %v", i, name, got[name], value, err)
			}
		}
	}
	if m.Title != "block.gas_price = 200, reserve.cap = 5, block.max_gap_ms = 8" || !strings.Contains(m.Summary, "block.gas_price from 100 to 200; reserve.cap from 800 to 5") {
		t.Errorf("%q, %q", m.Title, m.Summary)
	}
}

func TestRulesThatCannotBeTyped(t *testing.T) {
	for want, arg := range map[string]string{
		"block has no rule \"gas\", only": "block.gas=1", "no such module": "block2.gas=1", "no single value": "provider.tiers=A", "set block.gas_price": "block.gas_price=much",
	} {
		all, _, err := assignments([]string{arg})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proposalOf(all, asked); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
	long, _, err := assignments([]string{"block.gas_price=" + strings.Repeat("0", maxTitle) + "1"})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := proposalOf(long, asked); err == nil && len(m.Title) > maxTitle {
		t.Errorf("a title of %d bytes", len(m.Title))
	}
}
