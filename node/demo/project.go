package demo

import (
	"context"

	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/partner"
)

// votes are rules of votes that somebody who watches waits for.
func votes() policyv1.Params {
	p := devnet.Default().Policy
	p.VotingMs, p.DelayMs = 3_000, 1_000
	return p
}

// found has the validators admit a project of the consumer's.
func (d *demo) found(ctx context.Context, n *devnet.Network) (err error) {
	d.scribe.stage("voting on a project")
	var founders []*client.Account
	for _, v := range n.Validators {
		founders = append(founders, v.Env.Account)
	}
	d.project, err = partner.Found(ctx, d.env.Chain, d.env.Account, founders, partner.Project{
		Name: "foresight", Summary: "How well an untrained model foresees a text.", Contact: "https://example.org", Budget: projectBudget,
	})
	if err == nil {
		d.scribe.say("project %d admitted by the votes of %d validators: the batch is its task, and counts as drilling", d.project, len(founders))
	}
	return err
}

// projectBudget is far more than all batches of a demo's network come to, in ut.
const projectBudget = 1_000_000
