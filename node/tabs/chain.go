package tabs

import (
	"context"
	"math"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// Chain is what either side needs of the chain.
type Chain interface {
	Head() client.Block
	Session(ctx context.Context, id canon.Hash) (session.Session, error)
	Listings(ctx context.Context, model canon.Hash, name string) ([]wire.Listed, error)
	Send(ctx context.Context, msgs ...sdk.Msg) error
}

// ChainOf returns the chain of an env, to which its account sends.
func ChainOf(env *role.Env) Chain { return envChain{env.Chain, env} }

type envChain struct {
	*client.Client
	env *role.Env
}

// Send implements Chain.
func (e envChain) Send(ctx context.Context, msgs ...sdk.Msg) error { return e.env.Send(ctx, msgs...) }

// PriceOf returns what a question costs by how many tokens its reply has, in utally. What nobody can pay is MaxUint64.
func PriceOf(k session.Kind, p session.Prices, prompt int) func(tokens int) uint64 {
	terms := session.Terms{Prices: p}
	return func(tokens int) uint64 {
		price, err := (&session.Receipt{Kind: k, Prompt: uint64(prompt), Reply: uint64(tokens)}).Price(&terms)
		if err != nil {
			return math.MaxUint64
		}
		return price
	}
}
