package chaintest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/app"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// A role that was killed after it had sent a message may send it once more, and both may be
// executed. So what a block has executed is executed again here, and what was executed in some
// blocks before. It must be refused, or change nothing.

// Repeats says what becomes of a message that is sent twice.
type Repeats int

// How messages repeat.
const (
	Once  Repeats = iota // it takes effect once, whatever comes between: all that are not listed
	State                // it says how something shall stand: the same at once changes nothing
	Adds                 // it moves as much money again: people send it, and no role
)

var repeats = map[string]Repeats{
	"/cosmos.auth.v1beta1.MsgUpdateParams":           State,
	"/cosmos.bank.v1beta1.MsgUpdateParams":           State,
	"/cosmos.bank.v1beta1.MsgSetSendEnabled":         State,
	"/cosmos.consensus.v1.MsgUpdateParams":           State,
	"/cosmos.feegrant.v1beta1.MsgPruneAllowances":    State,
	"/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade":     State,
	"/cosmos.upgrade.v1beta1.MsgCancelUpgrade":       State,
	sdk.MsgTypeURL(&banktypes.MsgSend{}):             Adds,
	sdk.MsgTypeURL(&banktypes.MsgMultiSend{}):        Adds,
	sdk.MsgTypeURL(&providerv1.MsgDeposit{}):         Adds,
	sdk.MsgTypeURL(&providerv1.MsgWithdraw{}):        Adds,
	sdk.MsgTypeURL(&feegrant.MsgGrantAllowance{}):    State,
	sdk.MsgTypeURL(&feegrant.MsgRevokeAllowance{}):   State,
	sdk.MsgTypeURL(&providerv1.MsgUpdate{}):          State,
	sdk.MsgTypeURL(&providerv1.MsgDeclareOwner{}):    State,
	sdk.MsgTypeURL(&providerv1.MsgUpdateParams{}):    State,
	sdk.MsgTypeURL(&probev1.MsgOpen{}):               State, // another seed is drawn
	sdk.MsgTypeURL(&beaconv1.MsgProve{}):             Once,
	sdk.MsgTypeURL(&beaconv1.MsgSetKey{}):            State,
	sdk.MsgTypeURL(&marketv1.MsgPostOffer{}):         State,
	sdk.MsgTypeURL(&marketv1.MsgWithdrawOffer{}):     State,
	sdk.MsgTypeURL(&auctionv1.MsgPostClearing{}):     Once,
	sdk.MsgTypeURL(&auctionv1.MsgSell{}):             State,
	sdk.MsgTypeURL(&auctionv1.MsgSeal{}):             Once,
	sdk.MsgTypeURL(&auctionv1.MsgReveal{}):           Once,
	sdk.MsgTypeURL(&auctionv1.MsgTakeOn{}):           Once,
	sdk.MsgTypeURL(&auctionv1.MsgUpdateParams{}):     State,
	sdk.MsgTypeURL(&reservev1.MsgClaim{}):            State, // another epoch may have ended
	sdk.MsgTypeURL(&reservev1.MsgUpdateParams{}):     State,
	sdk.MsgTypeURL(&workv1.MsgUpdateParams{}):        State,
	sdk.MsgTypeURL(&workv1.MsgReady{}):               State,
	sdk.MsgTypeURL(&workv1.MsgAsk{}):                 State, // what was answered may be asked anew, for another fee
	sdk.MsgTypeURL(&workv1.MsgAnswer{}):              State, // the same may be asked anew
	sdk.MsgTypeURL(&disputev1.MsgOpen{}):             State, // a dispute that is over may be opened anew
	sdk.MsgTypeURL(&disputev1.MsgSubstitute{}):       State,
	sdk.MsgTypeURL(&disputev1.MsgUpdateParams{}):     State,
	sdk.MsgTypeURL(&policyv1.MsgPropose{}):           Adds,
	sdk.MsgTypeURL(&policyv1.MsgVote{}):              State,
	sdk.MsgTypeURL(&policyv1.MsgUpdateParams{}):      State,
	sdk.MsgTypeURL(&seatsv1.MsgJoin{}):               State, // who has left since comes back
	sdk.MsgTypeURL(&seatsv1.MsgUnjail{}):             State, // who was away again since returns again
	sdk.MsgTypeURL(&seatsv1.MsgLeave{}):              State, // who has joined again leaves again
	sdk.MsgTypeURL(&seatsv1.MsgBond{}):               Adds,
	sdk.MsgTypeURL(&seatsv1.MsgUnbond{}):             Adds,
	sdk.MsgTypeURL(&seatsv1.MsgDelegate{}):           State,
	sdk.MsgTypeURL(&seatsv1.MsgProve{}):              Once,
	sdk.MsgTypeURL(&seatsv1.MsgUpdateParams{}):       State,
	sdk.MsgTypeURL(&drillingv1.MsgRegisterProject{}): Adds,
	sdk.MsgTypeURL(&drillingv1.MsgUpdateParams{}):    State,
	sdk.MsgTypeURL(&sessionsv1.MsgOpen{}):            Once,
	sdk.MsgTypeURL(&sessionsv1.MsgFund{}):            Adds,
	sdk.MsgTypeURL(&sessionsv1.MsgRedeem{}):          State, // a voucher above the escrow pays more once that is funded
	sdk.MsgTypeURL(&sessionsv1.MsgList{}):            State,
	sdk.MsgTypeURL(&sessionsv1.MsgUpdateParams{}):    State,
}

// RepeatsOf returns how a message repeats.
func RepeatsOf(m sdk.Msg) Repeats { return repeats[sdk.MsgTypeURL(m)] }

// memory is how many executed transactions are tried again after each block.
const memory = 6

// tryAgain executes again what was executed, in a state that is then thrown away.
func (c *Chain) tryAgain(txs [][]byte, executed func(i int) bool) {
	c.t.Helper()
	now := 0
	for i, bytes := range txs {
		if tx, err := c.Tx.TxDecoder()(bytes); err == nil && executed(i) {
			c.executed = append(c.executed, tx.GetMsgs())
			now++
		}
	}
	if extra := len(c.executed) - max(now, memory); extra > 0 {
		c.executed = slices.Delete(c.executed, 0, extra)
	}
	for i, msgs := range c.executed {
		kind := Once
		for _, m := range msgs {
			kind = max(kind, RepeatsOf(m))
		}
		// Of the newest block, only the last transaction had nothing come between.
		if kind == Adds || kind == State && (i < len(c.executed)-1 || now == 0) {
			continue
		}
		for _, m := range msgs {
			tried.Store(sdk.MsgTypeURL(m), true)
		}
		if c.takesEffect(msgs) {
			c.t.Errorf("height %d: sent again, %s takes effect again: %v", c.height, sdk.MsgTypeURL(msgs[0]), msgs[0])
		}
	}
}

// takesEffect reports whether messages are executed, and change the state.
func (c *Chain) takesEffect(msgs []sdk.Msg) bool {
	ctx := c.Ctx()
	for i, m := range msgs {
		if _, err := c.MsgServiceRouter().Handler(m)(ctx.WithMsgIndex(i), m); err != nil {
			return false
		}
	}
	before, err := c.Export(c.Ctx())
	if err != nil {
		c.t.Fatal(err)
	}
	after, err := c.Export(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return !bytes.Equal(before, after)
}

// tried are the types of messages that were executed again in this process.
var tried sync.Map

// Main runs the tests of a package that between them must have each message of a module executed,
// and so tried again. Some may take part alone: then it asks for none.
func Main(m *testing.M, module string) {
	code := m.Run()
	all := !testing.Short()
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.bench", "test.fuzz"} {
		all = all && flag.Lookup(name).Value.String() == ""
	}
	if code == 0 && all {
		types, err := Messages()
		if err != nil {
			panic(err)
		}
		for _, t := range types {
			if _, ok := tried.Load(t); !ok && strings.HasPrefix(t, "/tally."+module+".") && repeats[t] != Adds {
				fmt.Printf("no test sends %s, which is then tried again\n", t)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// Messages returns the types of all messages that the chain registers.
func Messages() ([]string, error) {
	enc, err := app.NewEncoding()
	if err != nil {
		return nil, err
	}
	types := enc.Registry.ListImplementations(sdk.MsgInterfaceProtoName)
	slices.Sort(types)
	return types, nil
}
