package cli

import (
	"bytes"
	"strings"
	"testing"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"

	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

// Rules that this program knows are explained; others of a newer chain are shown, and those of an older one are not.
func TestRuleValues(t *testing.T) {
	now := map[string]map[string]any{"reserve": {"cap": "801", "zeal": "2", "awe": "1"}, "block": {"gas_price": "100"}}
	got := ruleValues(now, "")
	var names []string
	for _, r := range got {
		names = append(names, r.Module+"."+r.Name+"="+r.Value)
	}
	if text := strings.Join(names, " "); text != "block.gas_price=100 reserve.cap=801 reserve.awe=1 reserve.zeal=2" {
		t.Error(text)
	}
	if got[1].Default != "800" || got[1].Bounds != "0 to 999" || got[1].Why == "" || got[2].Why != "" {
		t.Errorf("%+v", got)
	}
	if only := ruleValues(now, "block"); len(only) != 1 {
		t.Errorf("%+v", only)
	}
	var b bytes.Buffer
	(&policies{Rules: got, Deposit: 2_500_000}).tell(&b)
	if !strings.Contains(b.String(), "801*") || strings.Contains(b.String(), "100*") || !strings.Contains(b.String(), "No proposal is open") || !strings.Contains(b.String(), "deposits 2.5 TALLY") {
		t.Error(b.String())
	}
}

func TestProposalChanges(t *testing.T) {
	packed, err := codectypes.NewAnyWithValue(&reservev1.MsgUpdateParams{Params: reservev1.Params{Cap: 5, JoiningUt: 7}})
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]map[string]any{"reserve": {"cap": "800", "joining_ut": "7"}}
	p, err := newProposal(&policyv1.Proposal{Status: policyv1.STATUS_PASSED, Messages: []*codectypes.Any{packed}}, now)
	if err != nil || p.Status != "passed" || len(p.Changes) == 0 || p.Changes[0] != (change{"reserve.cap", "800", "5"}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, c := range p.Changes {
		if c.Rule == "reserve.joining_ut" {
			t.Errorf("%+v changes nothing", c)
		}
	}
	packed.TypeUrl = "/tally.later.v1.MsgUpdateParams"
	if _, err := newProposal(&policyv1.Proposal{Messages: []*codectypes.Any{packed}}, now); err == nil || !strings.Contains(err.Error(), "older than the chain") {
		t.Error(err)
	}
}

// A proposal that sets no rule says what it would execute.
func TestProposalOfNoRules(t *testing.T) {
	packed, err := codectypes.NewAnyWithValue(&drillingv1.MsgAdmitProject{Project: 3})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProposal(&policyv1.Proposal{Messages: []*codectypes.Any{packed}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	(&policies{Proposals: []proposal{p}}).tell(&out)
	if got := out.String(); !strings.Contains(got, "would change no rule, and execute /tally.drilling.v1.MsgAdmitProject") {
		t.Error(got)
	}
}
