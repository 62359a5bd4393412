package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	sdkquery "github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/messages"
	"github.com/tally-network/tally/docs/spec"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/node/consume"
)

func (r *reader) policyOf() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy [MODULE]", GroupID: "network",
		Short: "Show the rules that votes set, and open proposals",
		Long: `Shows every rule of the chain, or those of a MODULE: its value, its default, what a vote may set
it to, and what it is for. Values that are not the default are marked by a star. A genesis may have
set what no vote could.

It also shows proposals that are voted on or wait to be executed, with the rules that each would
change. To propose: tally tx policy propose RULE=VALUE. To vote: tally tx policy vote.`,
		Example: "  tally policy --home tally-devnet/consumer\n  tally policy reserve --endpoints tally-devnet/endpoints.json --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: r.asks(func(ctx context.Context, args []string) error {
			p, err := r.policy(ctx, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return r.e.show(p, func(w io.Writer) { p.tell(w) })
		}),
	}
	r.flags(cmd.Flags())
	return cmd
}

// policies are what tally policy tells.
type policies struct {
	Rules     []ruleValue `json:"rules"`
	Proposals []proposal  `json:"open_proposals"`
	Deposit   uint64      `json:"next_deposit_utally"` // that a proposal takes now
}

// ruleValue is a rule with its value on the chain.
type ruleValue struct {
	spec.Rule
	Value string `json:"value"`
}

// proposal is one that is voted on, or waits.
type proposal struct {
	ID        uint64         `json:"id"`
	Title     string         `json:"title"`
	Status    string         `json:"status"`
	EndMs     int64          `json:"end_ms"`
	ExecuteMs int64          `json:"execute_ms,omitempty"`
	Quorum    uint64         `json:"quorum_uut"`
	Tally     policyv1.Tally `json:"tally_uut"`
	Changes   []change       `json:"changes"`
	Messages  []string       `json:"messages"` // what it would have executed, by type
}

// change is what a proposal would make of a rule.
type change struct {
	Rule string `json:"rule"`
	From string `json:"from"`
	To   string `json:"to"`
}

// policy asks for the rules of a module, or of all if it is "", and for open proposals.
func (r *reader) policy(ctx context.Context, only string) (*policies, error) {
	q := policyv1.NewQueryClient(r.role.Chain.Conn)
	votes, err := q.Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	now, names := map[string]map[string]any{}, []string{}
	for _, url := range votes.Messages {
		name, ok := strings.CutSuffix(strings.TrimPrefix(url, "/tally."), ".v1.MsgUpdateParams")
		if !ok {
			continue // it sets no rules
		}
		if now[name], err = messages.RulesOf(ctx, r.role.Chain.Conn, name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	if only != "" && now[only] == nil {
		return nil, fmt.Errorf("%q is no module with rules: want one of %s; tally tx policy propose MODULE.RULE=VALUE proposes a change", only, strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
	out := &policies{Rules: ruleValues(now, only), Proposals: []proposal{}, Deposit: votes.NextDeposit}
	for key := []byte(nil); ; {
		page, err := q.Proposals(ctx, &policyv1.QueryProposalsRequest{Pagination: &sdkquery.PageRequest{Key: key, Limit: app.MaxPage}})
		if err != nil {
			return nil, err
		}
		for i := range page.Proposals {
			if p := &page.Proposals[i]; p.Status == policyv1.STATUS_VOTING || p.Status == policyv1.STATUS_PASSED {
				one, err := newProposal(p, now)
				if err != nil {
					return nil, fmt.Errorf("proposal %d: %w", p.Id, err)
				}
				out.Proposals = append(out.Proposals, one)
			}
		}
		if key = page.Pagination.GetNextKey(); len(key) == 0 {
			return out, nil
		}
	}
}

// ruleValues puts values beside the rules that rules.md explains, module by module. Rules of a chain that is newer
// than this program come after them, unexplained.
func ruleValues(now map[string]map[string]any, only string) (out []ruleValue) {
	known := map[string]bool{}
	for _, rule := range spec.Rules() {
		known[rule.Module+"."+rule.Name] = true
		if v, ok := now[rule.Module][rule.Name]; ok {
			out = append(out, ruleValue{rule, spec.Text(v)})
		}
	}
	for module, rules := range now {
		for name, v := range rules {
			if !known[module+"."+name] {
				out = append(out, ruleValue{spec.Rule{Module: module, Name: name, Unit: "–"}, spec.Text(v)})
			}
		}
	}
	out = slices.DeleteFunc(out, func(r ruleValue) bool { return only != "" && r.Module != only })
	slices.SortStableFunc(out, func(a, b ruleValue) int {
		if a.Why == "" && b.Why == "" { // a map gave them
			return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Compare(a.Module, b.Module)
	})
	return out
}

// newProposal says what a proposal would change of the rules that hold now.
func newProposal(p *policyv1.Proposal, now map[string]map[string]any) (proposal, error) {
	out := proposal{
		ID: p.Id, Title: p.Title, Status: wire.NameOf(p.Status), EndMs: p.EndMs, ExecuteMs: p.ExecuteMs,
		Quorum: p.Params.Quorum, Tally: p.Tally, Changes: []change{}, Messages: []string{},
	}
	for _, m := range p.Messages {
		module, _, _ := strings.Cut(strings.TrimPrefix(m.TypeUrl, "/tally."), ".")
		out.Messages = append(out.Messages, m.TypeUrl)
		rules, err := messages.RulesSetBy(m)
		if err != nil {
			return out, err
		}
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			if from, to := spec.Text(now[module][name]), spec.Text(rules[name]); from != to {
				out.Changes = append(out.Changes, change{module + "." + name, from, to})
			}
		}
	}
	return out, nil
}

func (p *policies) tell(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tVALUE\tDEFAULT\tA VOTE MAY SET\tIN\tWHY")
	for _, r := range p.Rules {
		star := ""
		if r.Value != r.Default {
			star = "*"
		}
		fmt.Fprintf(t, "%s.%s\t%s%s\t%s\t%s\t%s\t%s\n", r.Module, r.Name, r.Value, star, r.Default, r.Bounds, r.Unit, r.Why)
	}
	_ = t.Flush() // as for all output: a reader who is gone misses nothing
	if slices.ContainsFunc(p.Rules, func(r ruleValue) bool { return r.Value != r.Default }) {
		fmt.Fprintln(w, "* differs from the default")
	}
	if len(p.Proposals) == 0 {
		fmt.Fprintln(w, "\nNo proposal is open")
	}
	fmt.Fprintf(w, "The next one deposits %v, which comes back unless the vote vetoes it or too few take part\n", consume.Amount(p.Deposit))
	for _, x := range p.Proposals {
		fmt.Fprintf(w, "\nProposal %d, %s: %q\n", x.ID, x.until(), x.Title)
		fmt.Fprintf(w, "  yes %s, no %s, veto %s, abstain %s; %s must take part\n", wire.UtText(x.Tally.Yes), wire.UtText(x.Tally.No), wire.UtText(x.Tally.Veto), wire.UtText(x.Tally.Abstain), wire.UtText(x.Quorum))
		for _, c := range x.Changes {
			fmt.Fprintf(w, "  %s from %s to %s\n", c.Rule, c.From, c.To)
		}
		if len(x.Changes) == 0 {
			fmt.Fprintf(w, "  it would change no rule, and execute %s\n", strings.Join(x.Messages, ", "))
		}
	}
}

// until says what a proposal waits for.
func (p *proposal) until() string {
	if p.ExecuteMs > 0 {
		return "passed, executed at " + wire.Moment(p.ExecuteMs)
	}
	return "voted on until " + wire.Moment(p.EndMs)
}
