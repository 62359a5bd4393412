package sessions_test

import (
	"context"
	"crypto/ed25519"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const tally = 1_000_000 // utally

// People of the tests. carol serves nobody, and v0 is a validator.
var (
	alice, anna, carol = chaintest.Named("alice"), chaintest.Named("anna"), chaintest.Named("carol")
	p0, p1, v0         = chaintest.Named("p0"), chaintest.Named("p1"), chaintest.Named("v0")
	purse              = uint64(1_000 * tally)
	stake              = uint64(1_000 * tally)
)

const hour = time.Hour

func network(t testing.TB, more ...chaintest.Option) *chaintest.Chain {
	t.Helper()
	options := []chaintest.Option{
		chaintest.Fund(purse, alice.Name, anna.Name, carol.Name, p0.Name, p1.Name),
		chaintest.Validator(v0.Name, 10_000*tally), chaintest.Provider(p0.Name, v0.Name, stake, 1000), chaintest.Provider(p1.Name, v0.Name, stake, 1000),
		chaintest.Authority(carol.Name),
	}
	return chaintest.New(t, append(options, more...)...)
}

// now returns protocol time after the last block.
func now(c *chaintest.Chain) int64 { return module.Now(c.Ctx()) }

// wallet is the key by which a consumer signs in its sessions: it needs no account.
func wallet(a chaintest.Account) ed25519.PrivateKey {
	return chaintest.Named("wallet of " + a.Name).Peer
}

// deal is a session that somebody opens: its terms, and who signs.
type deal struct {
	session.Terms
	id                 canon.Hash
	consumer, provider chaintest.Account
}

// dealOf returns terms that p serves for an hour: reserves of 8 tally.
func dealOf(c *chaintest.Chain, consumer, provider chaintest.Account, edit ...func(*session.Terms)) deal {
	t := session.Terms{
		Chain:    chaintest.ChainID,
		Consumer: session.Party{Account: consumer.String(), Key: wallet(consumer).Public().(ed25519.PublicKey)},
		Provider: session.Party{Account: provider.String(), Key: provider.PeerKey()},
		Model:    served.Root(), Prices: session.Prices{Prompt: 100_000, Reply: 400_000, Check: 50_000},
		CheckBps: 2_500, Credit: session.Credit{First: tally / 2, GrowthBps: 2_000, Cap: tally},
		Escrow: 20 * tally, OpenBy: now(c) + time.Minute.Milliseconds(), End: now(c) + hour.Milliseconds(),
	}
	for _, e := range edit {
		e(&t)
	}
	return deal{t, t.ID(), consumer, provider}
}

func nonce(n uint64) func(*session.Terms) { return func(t *session.Terms) { t.Nonce = n } }

func sign(key ed25519.PrivateKey, id canon.Hash) []byte { return ed25519.Sign(key, id[:]) }

// open returns the message that opens the session.
func (d deal) open() *sessionsv1.MsgOpen {
	return wire.OpenSession(&d.Terms, sign(d.provider.Peer, d.id))
}

func (d deal) voucher(number, amount uint64) session.Voucher {
	return session.Voucher{Session: d.id, Number: number, Amount: amount, Root: canon.Root(nil)}
}

// redeem returns the message by which somebody posts a voucher.
func (d deal) redeem(by chaintest.Account, number, amount uint64) *sessionsv1.MsgRedeem {
	v := d.voucher(number, amount)
	return wire.RedeemVoucher(by.String(), &v, sign(wallet(d.consumer), v.ID()))
}

// release returns the message by which somebody posts a release.
func (d deal) release(by chaintest.Account, number, claimed, amount uint64) *sessionsv1.MsgReturn {
	r := session.Release{Session: d.id, Number: number, Claimed: claimed, Amount: amount}
	return wire.ReturnEscrow(by.String(), &r, sign(d.provider.Peer, r.ID()))
}

// finish returns the message by which one side settles at what the other has signed.
func (d deal) finish(by chaintest.Account, amount uint64) *sessionsv1.MsgFinish {
	f := session.Final{Session: d.id, Amount: amount}
	key := d.provider.Peer
	if by.Name == d.provider.Name {
		key = wallet(d.consumer)
	}
	return wire.FinishSession(by.String(), &f, sign(key, f.ID()))
}

// served is the model of sessions.
var served = dispute.Model{Layers: 2, Chunks: 4, Steps: canon.Sum("test", []byte("steps"))}

// reply returns a receipt of the provider.
func (d deal) reply(number uint64) session.Receipt {
	return session.Receipt{Session: d.id, Number: number, Model: d.Model, Prompt: 100, Reply: 20, Tokens: canon.Root(nil), Pages: canon.Root(nil)}
}

// dispute returns the message by which somebody disputes a reply.
func (d deal) dispute(by chaintest.Account, number uint64) *disputev1.MsgOpenReply {
	r := d.reply(number)
	return wire.DisputeReply(by.String(), &r, sign(d.provider.Peer, r.ID()), &served)
}

// twoVouchers returns the message that convicts the consumer.
func (d deal) twoVouchers(by chaintest.Account) *sessionsv1.MsgTwoVouchers {
	e := session.TwoVouchers{By: by.String(), Vouchers: [2]session.Voucher{d.voucher(7, 1), d.voucher(7, 2)}}
	for i := range e.Vouchers {
		e.Signatures[i] = sign(wallet(d.consumer), e.Vouchers[i].ID())
	}
	return wire.ShowVouchers(&e)
}

// twoReceipts returns the message that convicts the provider.
func (d deal) twoReceipts(by chaintest.Account) *sessionsv1.MsgTwoReceipts {
	e := session.TwoReceipts{By: by.String()}
	for i := range e.Receipts {
		e.Receipts[i] = session.Receipt{Session: d.id, Number: 3, Model: d.Model, Prompt: uint64(i)}
		e.Signatures[i] = sign(d.provider.Peer, e.Receipts[i].ID())
	}
	return wire.ShowReceipts(&e)
}

// state returns the session, as a query shows it.
func (d deal) state(t testing.TB, c *chaintest.Chain) session.Session {
	t.Helper()
	r, err := sessionsv1.NewQueryClient(c).Session(context.Background(), &sessionsv1.QuerySessionRequest{Session: d.id.String()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := wire.SessionFromProto(&r.Session)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// known reports whether the chain knows the session.
func (d deal) known(t testing.TB, c *chaintest.Chain) bool {
	t.Helper()
	_, err := sessionsv1.NewQueryClient(c).Session(context.Background(), &sessionsv1.QuerySessionRequest{Session: d.id.String()})
	if err != nil && status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	return err == nil
}

// reserved returns the stake of a provider that is reserved.
func reserved(t testing.TB, c *chaintest.Chain, provider chaintest.Account) uint64 {
	t.Helper()
	p, err := c.Provider.Get(c.Ctx(), provider.Address)
	if err != nil {
		t.Fatal(err)
	}
	return p.Reserved
}

// escrow returns what the module holds.
func escrow(c *chaintest.Chain) uint64 { return c.Balance(authtypes.NewModuleAddress(sessions.Name)) }

func insurance(c *chaintest.Chain) uint64 { return c.Balance(authtypes.NewModuleAddress("insurance")) }

// recordOf returns what sessions have shown of a provider.
func recordOf(t testing.TB, c *chaintest.Chain, provider chaintest.Account) sessionsv1.Record {
	t.Helper()
	r, err := sessionsv1.NewQueryClient(c).Record(context.Background(), &sessionsv1.QueryRecordRequest{Provider: provider.String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Record
}

// pass makes blocks until so much time has passed and what it made due is done.
func pass(c *chaintest.Chain, d time.Duration) {
	c.NextBlock(d)
	c.NextBlock(0)
}
