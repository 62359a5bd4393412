package messages

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cosmos/gogoproto/proto"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"

	chainaddress "github.com/tally-network/tally/chain/address"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// Projects are the messages of tally drill project.
var Projects = []Message{
	{"new NAME BUDGET SUMMARY CONTACT", "Propose a project, and lock its deposit; BUDGET is in ut", `tally drill project new "iris search" 1000 "which settings learn irises best" https://example.org --home tally-devnet/consumer -y`,
		func(_ context.Context, by Sender, args []string) (proto.Message, error) {
			budget, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("budget %q is no whole number of ut", args[1])
			}
			return &drillingv1.MsgRegisterProject{Partner: by.Account, Name: args[0], BudgetUt: budget, Summary: args[2], Contact: args[3]}, nil
		}},
	{"admit PROJECT", "Propose that votes admit a project, and lock the proposal's deposit", "tally drill project admit 1 --home tally-devnet/consumer -y\ntally tx policy vote 3 yes --home tally-devnet/validator-0 -y # as many as admit says",
		func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
			n, err := ProjectNumber(args[0])
			if err != nil {
				return nil, err
			}
			m, err := codectypes.NewAnyWithValue(&drillingv1.MsgAdmitProject{Authority: chainaddress.Policy().String(), Project: n})
			if err != nil {
				return nil, err
			}
			return propose(ctx, by, &policyv1.MsgPropose{Title: fmt.Sprintf("Admit project %d", n), Summary: "Its tasks count as drilling.", Messages: []*codectypes.Any{m}})
		}},
	{"end PROJECT", "End a project of the sender's, and take its deposit back; tasks under way go on", "tally drill project end 1 --home tally-devnet/consumer -y",
		func(_ context.Context, by Sender, args []string) (proto.Message, error) {
			n, err := ProjectNumber(args[0])
			return &drillingv1.MsgEndProject{Sender: by.Account, Project: n}, err
		}},
}

// ProjectNumber reads the number of a project.
func ProjectNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("project %q is no number: tally drill project ls shows them", text)
	}
	return n, nil
}
