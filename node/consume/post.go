package consume

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"

	"cosmossdk.io/math"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/role"
)

// Order returns the order that posting a draft would sign. Its files are put
// into the consumer's store.
func (d *Draft) Order(env *role.Env) (job.Order, error) {
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return job.Order{}, err
	}
	o := job.Order{
		Chain: env.Chain.ChainID, Consumer: env.Account.Address, Nonce: binary.LittleEndian.Uint64(nonce[:]),
		Contact: job.Contact{Key: ed25519.PrivateKey(env.Keys.Peer).Public().(ed25519.PublicKey), Addrs: env.Host.Addrs()},
		Problem: d.Problem, Conditions: d.Terms,
	}
	o.Problem.Files = nil
	for _, f := range d.Files {
		ref, err := env.Store.PutBytes(draftPin, f.Bytes)
		if err != nil {
			return o, err
		}
		o.Problem.Files = append(o.Problem.Files, blobs.File(f.Role, ref))
	}
	return o, o.Check()
}

// draftPin keeps the files of an order until it has a name.
const draftPin = "draft"

// Discard lets go of the files of orders that were never posted.
func Discard(env *role.Env) error { return env.Store.Unpin(draftPin) }

// Quote asks every offer what it would take for the order, and why it does not
// meet it.
func Quote(ctx context.Context, env *role.Env, o *job.Order) (*marketv1.QueryQuoteResponse, error) {
	r, err := marketv1.NewQueryClient(env.Chain.Conn).Quote(ctx, &marketv1.QueryQuoteRequest{Order: wire.OrderToProto(o)})
	if err != nil {
		return nil, fmt.Errorf("ask for a quote: %w", err)
	}
	return r, nil
}

// Deposit returns what an order locks beside its maximum price, in utally.
func Deposit(ctx context.Context, env *role.Env, o *job.Order) (uint64, error) {
	r, err := workv1.NewQueryClient(env.Chain.Conn).Params(ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return 0, fmt.Errorf("ask for the rules: %w", err)
	}
	rules := wire.ParamsFromProto(r.Params)
	return rules.Deposit(o.Conditions.MaxPrice)
}

// Afford returns an error that says what is missing if the consumer's account
// cannot lock the maximum price of an order and its deposit.
func Afford(ctx context.Context, env *role.Env, o *job.Order) error {
	r, err := banktypes.NewQueryClient(env.Chain.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: o.Consumer, Denom: coin.Denom})
	if err != nil {
		return fmt.Errorf("ask for the balance of %s: %w", o.Consumer, err)
	}
	deposit, err := Deposit(ctx, env, o)
	if err != nil {
		return err
	}
	need := math.NewIntFromUint64(o.Conditions.MaxPrice).Add(math.NewIntFromUint64(deposit))
	if have := r.Balance.Amount; have.LT(need) {
		return &PoorError{o.Consumer, Amount(have.Uint64()), Amount(o.Conditions.MaxPrice), Amount(deposit)}
	}
	return nil
}

// PoorError says that an account cannot lock the price of an order and its deposit.
type PoorError struct {
	Account             string
	Have, Need, Deposit Amount
}

func (e *PoorError) Error() string {
	return fmt.Sprintf("account %s has %v, and the order locks up to %v and a deposit of %v", e.Account, e.Have, e.Need, e.Deposit)
}

// Post locks the maximum price and the deposit, and puts the order into the book. The files stay
// in the consumer's store under the order's name.
func Post(ctx context.Context, env *role.Env, o *job.Order) (canon.Hash, error) {
	id := o.ID()
	if err := Keep(env, id, o); err != nil {
		return id, err
	}
	m, err := Message(env, o)
	if err != nil {
		return id, err
	}
	if _, err := env.Account.Send(ctx, m); err != nil {
		return id, fmt.Errorf("post the order: %w", err)
	}
	return id, Discard(env)
}

// Keep keeps the files of an order in the consumer's store under an order's name.
func Keep(env *role.Env, id canon.Hash, o *job.Order) error {
	for _, f := range o.Problem.Files {
		ref, err := blobs.RefOf(f)
		if err != nil {
			return err
		}
		if err := env.Store.Pin(blobs.Pin(id), ref); err != nil {
			return err
		}
	}
	return nil
}

// Message returns what posts an order. The peer signs that it is the consumer's contact.
func Message(env *role.Env, o *job.Order) (*marketv1.MsgPostOrder, error) {
	account, err := address.Parse(o.Consumer)
	if err != nil {
		return nil, err
	}
	statement := wire.Statement(o.Chain, account, providerv1.ROLE_UNSPECIFIED)
	return &marketv1.MsgPostOrder{Consumer: o.Consumer, Order: wire.OrderToProto(o), Signature: ed25519.Sign(env.Keys.Peer, statement)}, nil
}

// Obstacles says in words why no offer meets an order.
func Obstacles(bids []marketv1.Bid) string {
	if len(bids) == 0 {
		return "there are no offers: no validator sells computation at present"
	}
	var out []string
	for _, b := range bids {
		if b.Obstacle != "" {
			out = append(out, fmt.Sprintf("%s: %s", b.Validator, b.Obstacle))
		}
	}
	return strings.Join(out, "; ")
}
