package consume

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"cosmossdk.io/math"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume/choice"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/store"
)

// Buyer is who posts an order, and the peer that hands over its files.
type Buyer struct {
	Chain   string      `json:"chain"`
	Account string      `json:"account"`
	Contact job.Contact `json:"contact"`
}

// BuyerOf returns who posts from an Env.
func BuyerOf(env *role.Env) Buyer {
	key := ed25519.PrivateKey(env.Keys.Peer).Public().(ed25519.PublicKey)
	return Buyer{env.Chain.ChainID, env.Account.Address, job.Contact{Key: key, Addrs: env.Host.Addrs()}}
}

// Order returns the order that posting a draft would sign.
func (d *Draft) Order(by Buyer) (job.Order, error) {
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return job.Order{}, err
	}
	o := job.Order{
		Chain: by.Chain, Consumer: by.Account, Nonce: binary.LittleEndian.Uint64(nonce[:]), Contact: by.Contact,
		Problem: d.Problem, Conditions: d.Terms, Project: d.Project,
	}
	o.Problem.Files = nil
	for _, f := range d.Files {
		o.Problem.Files = append(o.Problem.Files, blobs.File(f.Role, f.ref()))
	}
	return o, o.Check()
}

// Body returns the bytes of a draft's files, one after the other.
func (d *Draft) Body() io.Reader {
	var parts [][]byte
	for _, f := range d.Files {
		parts = append(parts, f.Parts...)
	}
	return &body{store.Joined(parts), d}
}

// body reads the files of a draft, which it holds.
type body struct {
	io.Reader
	of *Draft
}

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
	if o.Conditions.Auction {
		sealed, more, err := seals.Rules(ctx, env.Chain.Conn)
		if err != nil {
			return err
		}
		if sealed { // of its bid, until that is revealed
			deposit += more
		}
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

// Post locks the maximum price and the deposit, and puts the order into the book. Its files
// must be kept before: from the next block on, others ask for them.
func Post(ctx context.Context, env *role.Env, o *job.Order) (canon.Hash, error) {
	id := o.ID()
	m, err := Message(env, o)
	if err != nil {
		return id, err
	}
	if o.Conditions.Auction { // where bids are open this is never asked for
		if err := env.Seals.Want(id.String(), auction.MaxAsk); err != nil {
			return id, err
		}
	}
	if _, err := env.Account.Send(ctx, m); err != nil {
		return id, fmt.Errorf("post the order: %w", err)
	}
	return id, nil
}

// Keep puts the files of an order into the consumer's store, under the order's name. body has
// their bytes, one after the other.
func Keep(env *role.Env, o *job.Order, body io.Reader) error {
	pin := blobs.Pin(o.ID())
	for _, f := range o.Problem.Files {
		want, err := blobs.RefOf(f)
		if err != nil {
			return err
		}
		got, err := env.Store.Put(pin, io.LimitReader(body, want.Size))
		if err != nil {
			return fmt.Errorf("keep file %q: %w", f.Role, err)
		}
		if got != want {
			return errors.Join(fmt.Errorf("file %q is not the one that the order names", f.Role), env.Store.Unpin(pin, got))
		}
	}
	return nil
}

// Serve hands over the files of the account's live orders, and gives results to nobody but their
// parties, until ctx is done. It bids for orders at auctions whose bids are sealed.
func Serve(ctx context.Context, env *role.Env) error {
	b, rounds := newBidder(env), choice.NewWatcher(env)
	defer b.tasks.Wait()
	defer rounds.Wait()
	return env.EachBlock(ctx, func(ctx context.Context, at client.Block) error {
		return errors.Join(b.block(ctx, at), env.ServeOrders(ctx), rounds.Block(ctx)) // what is unread holds up no files
	})
}

// Message returns what posts an order. The peer signs that it is the consumer's contact.
func Message(env *role.Env, o *job.Order) (*marketv1.MsgPostOrder, error) {
	account, err := address.Parse(o.Consumer)
	if err != nil {
		return nil, err
	}
	statement := wire.Statement(o.Chain, account)
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
