package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/gogoproto/jsonpb"
	"github.com/cosmos/gogoproto/proto"
	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authtx "github.com/cosmos/cosmos-sdk/x/auth/tx"

	"github.com/tally-network/tally/chain/wire"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	nodeclient "github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
)

// receipts is a node whose refusal of a transaction is an error, and that remembers the one it took. The SDK's
// commands print either as a receipt with a code, and succeed.
type receipts struct {
	client.CometRPC
	taken cmttypes.Tx
}

// unless is a writer that writes nothing once the node took a transaction: what a block made of it is told then.
type unless struct {
	io.Writer
	r *receipts
}

func (u unless) Write(text []byte) (int, error) {
	if u.r.taken != nil {
		return len(text), nil
	}
	return u.Writer.Write(text)
}

// follow lets a command that sends a transaction fail if the node or the block refuses it, and say what came of it.
func follow(e *env, cmd *cobra.Command) error {
	c := client.GetClientContextFromCmd(cmd)
	if c.Client == nil {
		return nil
	}
	if f := cmd.Flags().Lookup(flags.FlagNode); f != nil {
		f.Changed = false // c has that node; the command would make another client of it
	}
	r := &receipts{CometRPC: c.Client}
	c = c.WithClient(r).WithOutput(unless{c.Output, r})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		switch {
		case errors.Is(err, io.EOF):
			return errUnasked // the pipe that should have answered had nothing
		case err != nil || r.taken == nil:
			return err
		}
		return included(cmd.Context(), e, c, r.taken)
	}
	return client.SetCmdClientContext(cmd, c)
}

const (
	inclusion = time.Minute            // in which a block takes a transaction, or somebody is told that none did
	pollPause = 200 * time.Millisecond // between two questions, as blocks take about a second
)

// included waits until a block has taken a transaction, and shows what came of it.
func included(ctx context.Context, e *env, c client.Context, tx cmttypes.Tx) error {
	ctx, cancel := context.WithTimeout(ctx, inclusion)
	defer cancel()
	hash := fmt.Sprintf("%X", tx.Hash())
	for {
		if _, err := c.Client.Tx(ctx, tx.Hash(), false); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node took transaction %s, and no block has it yet: tally query wait-tx %s says whether one does: %w", hash, hash, ctx.Err())
		case <-time.After(pollPause):
		}
	}
	res, err := authtx.QueryTx(c, hash)
	if err != nil {
		return fmt.Errorf("a block took transaction %s; what came of it: %w", hash, err)
	}
	if res.Code != abci.CodeTypeOK {
		return fmt.Errorf("block %d took transaction %s, which cost its fee and failed: %w", res.Height, hash, nodeclient.Refusal(res.Codespace, res.Code, res.RawLog))
	}
	// What was sent is known, and what the SDK's modules tell of fees and accounts is of no use here: tally query tx has all.
	res.Tx, res.Data, res.RawLog, res.Logs = nil, "", "", nil
	res.Events = slices.DeleteFunc(res.Events, func(x abci.Event) bool { return !strings.HasPrefix(x.Type, "tally.") })
	text, err := c.Codec.MarshalJSON(res)
	if err != nil {
		return err
	}
	return e.show(json.RawMessage(text), func(w io.Writer) { tellIncluded(w, res) })
}

// tellIncluded says what our modules have told of a transaction.
func tellIncluded(w io.Writer, res *sdk.TxResponse) {
	fmt.Fprintf(w, "Transaction %s is in block %d, for %d gas\n", res.TxHash, res.Height, res.GasUsed)
	for _, x := range res.Events {
		fields := make([]string, 0, len(x.Attributes))
		of := map[string]string{}
		for _, a := range x.Attributes {
			if of[a.Key] = said(a.Key, a.Value); a.Key != "msg_index" && of[a.Key] != "" {
				fields = append(fields, a.Key+" "+of[a.Key])
			}
		}
		if stops := x.Type == proto.MessageName(&workv1.EventPhase{}) && of["phase"] == "stopping"; stops || of["what"] == "stopped" {
			if stops {
				fmt.Fprintf(w, "Order %s ends: what is under way is finished and paid, and the rest of the price comes back. To fetch its model:\n  tally order watch %s\n", of["order"], of["order"])
			}
			continue
		}
		fmt.Fprintf(w, "  %s: %s\n", strings.TrimPrefix(x.Type[strings.LastIndex(x.Type, ".")+1:], "Event"), strings.Join(fields, ", "))
		switch {
		case x.Type == proto.MessageName(&policyv1.EventProposed{}):
			fmt.Fprintf(w, "Its deposit comes back unless the vote vetoes it or too few take part\nValidators, and who has computing power, vote: tally tx policy vote %s yes -y; tally policy shows how it stands\n", of["proposal"])
		case x.Type == proto.MessageName(&drillingv1.EventProject{}) && of["status"] == "proposed":
			fmt.Fprintf(w, "Its deposit is locked until it ends. A vote must admit it before it has tasks: tally drill project admit %s -y proposes that\n", of["project"])
		case x.Type == proto.MessageName(&providerv1.EventUnbonding{}) && of["lacks"] != "":
			fmt.Fprintf(w, "Its stake lacks %s of the least, so it gets no new work; to get some again: tally tx provider deposit %s -y\n", of["lacks"], strings.ToLower(strings.ReplaceAll(of["lacks"], " ", "")))
		case x.Type == proto.MessageName(&auctionv1.EventCapacity{}) && !strings.HasSuffix(of["capacity"], ": nothing"):
			fmt.Fprintln(w, "Clearings of open bids take lots that have a price, those of sealed bids lots that are large enough: tally market shows whether they take these")
		case x.Type == proto.MessageName(&auctionv1.EventSealed{}) && of["order"] == "":
			fmt.Fprintln(w, "Its deposit is burnt unless the ask is revealed, which waits for its time: tally tx auction reveal-ask -y")
		case x.Type == proto.MessageName(&auctionv1.EventSealed{}):
			fmt.Fprintf(w, "Its deposit is burnt unless the bid is revealed, which waits for its time: tally tx auction reveal-bid %s -y\n", of["order"])
		}
	}
}

// said is an attribute of an event for people: a text without its quotes, numbers with units, and of STATUS_ACTIVE active.
func said(key, value string) string {
	value = strings.Trim(value, `"`)
	if n, err := strconv.ParseUint(value, 10, 63); err == nil {
		if key == "lacks" && n == 0 {
			return ""
		}
		switch key {
		case "amount", "bond", "burnt", "deposit", "insurance", "lacks", "locked", "refund", "reserved", "stake", "welfare":
			return consume.Amount(n).String()
		case "price": // of a unit, or of all
			return value + " utally"
		case "drilled", "effective", "pending", "total", "weight":
			return wire.UtText(n)
		case "closes_at", "expires_at", "until":
			return wire.Moment(int64(n))
		}
	}
	if c := (auctionv1.Capacity{}); key == "capacity" && jsonpb.UnmarshalString(value, &c) == nil {
		value = "of " + c.Provider + ": " + wire.LotsText(c.Lots)
		if c.Ends > 0 {
			value += ", until " + wire.Moment(c.Ends)
		}
		return value
	}
	if _, name, found := strings.Cut(value, "_"); found && value == strings.ToUpper(value) {
		return strings.ToLower(name)
	}
	return value
}

// BroadcastTxSync hands tx to the node, which tries it.
func (r *receipts) BroadcastTxSync(ctx context.Context, tx cmttypes.Tx) (*coretypes.ResultBroadcastTx, error) {
	res, err := r.CometRPC.BroadcastTxSync(ctx, tx)
	if err == nil && res.Code != abci.CodeTypeOK {
		err = nodeclient.Refusal(res.Codespace, res.Code, res.Log)
	}
	if err != nil {
		// The SDK makes receipts without a text of errors that have these words.
		text := err.Error()
		why, counted := strings.CutSuffix(text, ": "+sdkerrors.ErrMempoolIsFull.Error())
		switch {
		case counted:
			return nil, errors.New(why)
		case strings.Contains(text, "mempool is full"):
			return nil, errors.New("the node has no room for another transaction: send it again later")
		case strings.Contains(strings.ToLower(text), "tx too large"):
			return nil, errors.New("the transaction has more bytes than the node takes: divide it")
		}
	}
	if err == nil {
		r.taken = tx
	}
	return res, err
}
